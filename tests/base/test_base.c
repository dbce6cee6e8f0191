/* SPDX-License-Identifier: Apache-2.0
 * test_base.c - bytes, text, statuses, hashes, random numbers and files. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/random.h"
#include "base/text.h"
#include "lib/unit.h"

static void bytes_are_little_endian_at_any_alignment(void **state)
{
    uint8_t b[12] = { 0 };
    static const uint8_t expected[8] = { 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01 };

    (void)state;
    le64_put(b + 1, 0x0123456789abcdefu);
    assert_memory_equal(b + 1, expected, 8);
    assert_true(le64_get(b + 1) == 0x0123456789abcdefu);
    assert_int_equal(le32_get(b + 1), 0x89abcdef);
    assert_int_equal(le16_get(b + 3), 0x89ab);
    lef32_put(b + 3, -1.5f);
    assert_true(lef32_get(b + 3) == -1.5f);
}

static void text_grows(void **state)
{
    struct text text = { 0 };

    (void)state;
    assert_string_equal(text_string(&text), "");
    for (int i = 0; i < 1000; i++) text_add(&text, "%d,", i % 10);
    assert_int_equal(text.length, 2000);
    assert_int_equal(strlen(text_string(&text)), 2000);
    text_free(&text);
}

static void distance_counts_edits(void **state)
{
    (void)state;
    assert_int_equal(text_distance("", ""), 0);
    assert_int_equal(text_distance("codec", "codec"), 0);
    assert_int_equal(text_distance("codek", "codec"), 1);
    assert_int_equal(text_distance("kitten", "sitting"), 3);
    assert_int_equal(text_distance("", "abc"), 3);
}

static void statuses_have_names_texts_and_exit_codes(void **state)
{
    (void)state;
    assert_string_equal(error_name(STRAIT_ERR_CONFIG), "STRAIT_ERR_CONFIG");
    assert_int_equal(error_exit_code(STRAIT_OK), 0);
    assert_int_equal(error_exit_code(STRAIT_ERR_USAGE), 2);
    assert_int_equal(error_exit_code(STRAIT_ERR_TIMEOUT), 1);
    assert_string_equal(strait_status_text(STRAIT_OK), "success");
    assert_int_equal(error_exit_code((strait_status)9999), 1);
}

static void a_message_may_quote_the_last_one(void **state)
{
    (void)state;
    assert_int_equal(error_set(STRAIT_ERR_IO, "inner %d", 7), STRAIT_ERR_IO);
    error_set(STRAIT_ERR_IO, "outer: %s", strait_error_message());
    assert_string_equal(strait_error_message(), "outer: inner 7");
}

static void hashes_are_xxhash64(void **state)
{
    (void)state; /* the value of the empty input, from the xxHash specification */
    assert_true(hash_bytes("", 0, 0) == 0xef46db3751d8e999u);
    assert_true(hash_bytes("a", 1, 0) != hash_bytes("a", 1, 1));
}

static void random_numbers_are_the_same_for_ever(void **state)
{
    double sum = 0;

    (void)state; /* SplitMix64's first output for seed 0 */
    assert_true(random_mix(0) == 0xe220a8397b1dcdafu);
    for (uint64_t i = 0; i < 10000; i++) {
        double u = random_unit(1, 2, i);

        assert_true(u >= 0.0 && u < 1.0);
        sum += u;
    }
    assert_true(sum > 4900 && sum < 5100);
}

static void a_file_is_written_whole_or_not_at_all(void **state)
{
    char *content;
    size_t bytes;

    (void)state;
    assert_ok(file_write("test_base.file", "hello", 5));
    assert_ok(file_read("test_base.file", 100, &content, &bytes));
    assert_int_equal(bytes, 5);
    assert_string_equal(content, "hello");
    free(content);
    assert_int_equal(file_read("test_base.file", 4, &content, &bytes), STRAIT_ERR_DATA);
    unlink("test_base.file");
    assert_int_equal(access("test_base.file.new", F_OK), -1);
    assert_int_equal(file_write("no/such/folder/x", "a", 1), STRAIT_ERR_IO);
    assert_int_equal(file_read("test_base.file", 4, &content, &bytes), STRAIT_ERR_IO);
    assert_int_equal(file_read(".", 4, &content, &bytes), STRAIT_ERR_DATA);
}

static void a_full_disk_is_an_error(void **state)
{
    int fd = open("/dev/full", O_WRONLY);

    (void)state;
    if (fd < 0) skip();
    assert_int_equal(file_write_all(fd, "x", 1, "/dev/full"), STRAIT_ERR_IO);
    assert_contains(strait_error_message(), "/dev/full: cannot write: No space left");
    close(fd);
}

static void records_are_lines_of_json(void **state)
{
    struct jsonl *file = NULL;
    char *content;
    size_t bytes;

    (void)state;
    unlink("test_base.jsonl");
    assert_ok(jsonl_open(&file, "test_base.jsonl"));
    for (int i = 0; i < 2; i++) {
        cJSON *record = cJSON_CreateObject();

        cJSON_AddNumberToObject(record, "i", i);
        assert_ok(jsonl_write(file, record));
    }
    assert_ok(jsonl_close(file));
    assert_ok(file_read("test_base.jsonl", 100, &content, &bytes));
    assert_string_equal(content, "{\"i\":0}\n{\"i\":1}\n");
    free(content);
    assert_int_equal(jsonl_open(&file, "test_base.jsonl"), STRAIT_ERR_IO); /* it exists */
    unlink("test_base.jsonl");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_little_endian_at_any_alignment),
        cmocka_unit_test(text_grows),
        cmocka_unit_test(distance_counts_edits),
        cmocka_unit_test(statuses_have_names_texts_and_exit_codes),
        cmocka_unit_test(a_message_may_quote_the_last_one),
        cmocka_unit_test(hashes_are_xxhash64),
        cmocka_unit_test(random_numbers_are_the_same_for_ever),
        cmocka_unit_test(a_file_is_written_whole_or_not_at_all),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(records_are_lines_of_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
