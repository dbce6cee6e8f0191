/* SPDX-License-Identifier: Apache-2.0
 * test_data.c - readers of data files, good and bad, and the split into shares. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/unit.h"
#include "train/dataset.h"
#include "train/sampler.h"

static void write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

static int remove_files(void **state)
{
    (void)state;
    unlink("test_data.csv");
    unlink("test_data.images");
    unlink("test_data.labels");
    return 0;
}

static strait_status read_csv(struct dataset *set, const char *text)
{
    memset(set, 0, sizeof *set);
    write_file("test_data.csv", text, strlen(text));
    return dataset_read_csv(set, "test_data.csv");
}

static void csv_lines_become_samples(void **state)
{
    struct dataset set;

    (void)state;
    assert_ok(read_csv(&set, "1,2.5,0\n-3,4e1,1\r\n5,6,2"));
    assert_int_equal(set.count, 3);
    assert_int_equal(set.features, 2);
    assert_true(set.x[1] == 2.5f && set.x[3] == 40.0f && set.x[5] == 6.0f);
    assert_int_equal(set.labels[1], 1);
    assert_int_equal(set.labels[2], 2);
    dataset_free(&set);
}

static void bad_csv_is_refused_with_its_line(void **state)
{
    static const struct { const char *text, *message; } bad[] = {
        { "", "the file is empty" },
        { "5\n6\n", ":1: one column only" },
        { "1,2,0\n1,2\n", ":2: 2 columns where the first line has 3; is the file cut short?" },
        { "1,2,0\n1,2,0\n1,", ":3: 2 columns" },
        { "1,x,0\n", ":1: a column is not a number" },
        { "1,nan,0\n", ":1: a column is not a number" },
        { "1,,0\n", ":1: a column is not a number" },
        { "1,2,0.5\n", ":1: the last column is not a class" },
        { "1,2,-1\n", ":1: the last column is not a class" },
        { "1,2,100000\n", ":1: the last column is not a class" },
        { "1,2,0\n\n", ":2: 1 columns" },
    };
    struct dataset set;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(read_csv(&set, bad[i].text), STRAIT_ERR_DATA);
        assert_contains(strait_error_message(), bad[i].message);
    }
    write_file("test_data.csv", "1,2\0,3\n", 7);
    assert_int_equal(dataset_read_csv(&set, "test_data.csv"), STRAIT_ERR_DATA);
    assert_contains(strait_error_message(), "binary");
    assert_int_equal(dataset_read_csv(&set, "no/such.csv"), STRAIT_ERR_IO);
    assert_contains(strait_error_message(), "no/such.csv: cannot open: No such file");
}

static const uint8_t images[] = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1, 10, 20, 30, 255 };
static const uint8_t labels[] = { 0, 0, 8, 1, 0, 0, 0, 2, 7, 1 };

static strait_status read_idx(struct dataset *set, const uint8_t *x, size_t x_bytes,
                              const uint8_t *y, size_t y_bytes)
{
    memset(set, 0, sizeof *set);
    write_file("test_data.images", x, x_bytes);
    write_file("test_data.labels", y, y_bytes);
    return dataset_read_idx(set, "test_data.images", "test_data.labels");
}

static void idx_files_become_samples(void **state)
{
    struct dataset set;

    (void)state;
    assert_ok(read_idx(&set, images, sizeof images, labels, sizeof labels));
    assert_int_equal(set.count, 2);
    assert_int_equal(set.features, 2);
    assert_true(set.x[0] == 10.0f && set.x[3] == 255.0f);
    assert_int_equal(set.labels[0], 7);
    dataset_free(&set);
}

static void bad_idx_is_refused(void **state)
{
    uint8_t broken[sizeof images + 1];
    struct dataset set;

    (void)state;
    for (size_t bytes = 0; bytes < sizeof images; bytes++) {
        assert_int_equal(read_idx(&set, images, bytes, labels, sizeof labels), STRAIT_ERR_DATA);
        assert_contains(strait_error_message(), "test_data.images: ");
    }
    memcpy(broken, images, sizeof images);
    broken[sizeof images] = 0;
    assert_int_equal(read_idx(&set, broken, sizeof broken, labels, sizeof labels), STRAIT_ERR_DATA);
    assert_contains(strait_error_message(), "cut short");
    for (size_t at = 0; at < 16; at++) { /* magic, type, dimensions and sizes */
        memcpy(broken, images, sizeof images);
        broken[at] ^= 0x55;
        assert_int_equal(read_idx(&set, broken, sizeof images, labels, sizeof labels),
                         STRAIT_ERR_DATA);
    }
    assert_int_equal(read_idx(&set, images, sizeof images, labels, sizeof labels - 1),
                     STRAIT_ERR_DATA);
    assert_int_equal(read_idx(&set, labels, sizeof labels, images, sizeof images),
                     STRAIT_ERR_DATA);
    assert_int_equal(read_idx(&set, (const uint8_t *)"\x1f\x8b\x08\0\0\0\0\0", 8, labels,
                              sizeof labels), STRAIT_ERR_DATA);
    assert_contains(strait_error_message(), "unpack it first");
}

static void the_shipped_digits_load(void **state)
{
    struct strait_config config;
    struct data data = { 0 };
    char assignment[1024];

    (void)state;
    config_defaults(&config);
    snprintf(assignment, sizeof assignment, "data.path=%s/data/digits.csv", getenv("SRCDIR"));
    assert_ok(config_assign(&config, assignment));
    assert_ok(data_load(&data, &config));
    assert_int_equal(data.train.count, 1438);
    assert_int_equal(data.test.count, 359);
    assert_int_equal(data.train.features, 64);
    assert_int_equal(data.train.classes, 10);
    for (size_t i = 0; i < data.train.count * 64; i++)
        assert_true(data.train.x[i] >= 0.0f && data.train.x[i] <= 1.0f);
    data_free(&data);
}

static void holding_out_takes_each_sample_once(void **state)
{
    static const double shares[] = { 0, 0.1, 0.25, 0.5, 0.9 };

    (void)state;
    for (size_t s = 0; s < 5; s++) {
        struct dataset set = { 0 }, test = { 0 };
        bool seen[103] = { false };

        assert_ok(dataset_allocate(&set, 103, 1));
        for (int i = 0; i < 103; i++) {
            set.x[i] = (float)i;
            set.labels[i] = i;
        }
        assert_ok(dataset_hold_out(&set, shares[s], &test));
        assert_int_equal(test.count, (size_t)(shares[s] * 103 + 0.5));
        assert_int_equal(set.count + test.count, 103);
        for (size_t i = 0; i < 103; i++) {
            const struct dataset *from = i < set.count ? &set : &test;
            size_t at = i < set.count ? i : i - set.count;

            assert_true(from->x[at] == (float)from->labels[at]);
            assert_false(seen[from->labels[at]]);
            seen[from->labels[at]] = true;
        }
        dataset_free(&set);
        dataset_free(&test);
    }
}

static void an_epoch_is_a_permutation_of_its_own(void **state)
{
    enum { N = 1000 };
    uint32_t order[N], other[N];
    bool seen[N] = { false };

    (void)state;
    sampler_shuffle(order, N, 3, 1);
    for (int i = 0; i < N; i++) {
        assert_true(order[i] < N && !seen[order[i]]);
        seen[order[i]] = true;
    }
    sampler_shuffle(other, N, 3, 1);
    assert_memory_equal(order, other, sizeof order);
    sampler_shuffle(other, N, 3, 2);
    assert_memory_not_equal(order, other, sizeof order);
    sampler_shuffle(other, N, 4, 1);
    assert_memory_not_equal(order, other, sizeof order);
}

static void shares_cover_every_sample_once(void **state)
{
    (void)state;
    for (size_t samples = 1; samples < 120; samples += 7)
        for (size_t batch = 1; batch < 9; batch += 3)
            for (int ranks = 1; ranks < 8; ranks++) {
                size_t next = 0;

                for (size_t s = 0; s < sampler_steps(samples, batch, ranks); s++) {
                    size_t in_step = 0;

                    for (int r = 0; r < ranks; r++) {
                        struct share share = sampler_share(samples, batch, ranks, r, s);

                        assert_int_equal(share.begin, next);
                        assert_true(share.count <= batch);
                        next += share.count;
                        in_step += share.count;
                        if (r + 1 == ranks) assert_int_equal(in_step, share.global_count);
                    }
                }
                assert_int_equal(next, samples);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(csv_lines_become_samples, remove_files),
        cmocka_unit_test_teardown(bad_csv_is_refused_with_its_line, remove_files),
        cmocka_unit_test_teardown(idx_files_become_samples, remove_files),
        cmocka_unit_test_teardown(bad_idx_is_refused, remove_files),
        cmocka_unit_test(the_shipped_digits_load),
        cmocka_unit_test(holding_out_takes_each_sample_once),
        cmocka_unit_test(an_epoch_is_a_permutation_of_its_own),
        cmocka_unit_test(shares_cover_every_sample_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
