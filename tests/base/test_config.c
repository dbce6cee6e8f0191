/* SPDX-License-Identifier: Apache-2.0
 * test_config.c - reading, checking and printing configurations. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/config.h"
#include "lib/unit.h"

static char path[64];

/* Write a configuration file and read it over the defaults. */
static strait_status read_text(struct strait_config *config, const char *text)
{
    FILE *file;

    snprintf(path, sizeof path, "test_config.%d.conf", (int)getpid());
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    config_defaults(config);
    return config_load(config, path);
}

static int remove_file(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static void every_default_is_allowed(void **state)
{
    struct strait_config config;

    (void)state;
    config_defaults(&config);
    for (int i = 0; i < config_option_count; i++) {
        struct text why = { 0 }, value = { 0 };

        option_write(&config_options[i], &config, &value);
        if (!option_set_text(&config_options[i], &config, text_string(&value), &why))
            fail_msg("%s: %s", config_options[i].key, text_string(&why));
        assert_true(strlen(config_options[i].help) > 10);
        text_free(&why);
        text_free(&value);
    }
}

static void a_file_goes_over_defaults(void **state)
{
    struct strait_config config;

    (void)state;
    assert_ok(read_text(&config,
                        "comm = { codec = \"topk\"; topk_ratio = 1;\n"
                                 "  error_feedback = false; };\n"
                                 "model = { hidden = [64, 32]; };\n"
                        "run = { seed = 12345678901L; };"));
    assert_string_equal(config.comm.codec, "topk");
    assert_true(config.comm.topk_ratio == 1.0);
    assert_false(config.comm.error_feedback);
    assert_int_equal(config.model.hidden.count, 2);
    assert_int_equal(config.model.hidden.values[1], 32);
    assert_true(config.run.seed == 12345678901);
    assert_string_equal(config.comm.schedule, "sra");
}

static void all_errors_come_at_once_with_lines(void **state)
{
    struct strait_config config, before;
    const char *message;

    (void)state;
    config_defaults(&before);
    assert_int_equal(read_text(&config, "comm = {\n  codek = \"int8\";\n  block = 4;\n"
                                        "  schedule = \"ring-a\";\n  check_every = 1.5;\n};\n"
                                        "train = { lr = \"high\"; };\n"
                                        "model = { hidden = [0]; };\n"),
                     STRAIT_ERR_CONFIG);
    message = strait_error_message();
    assert_contains(message, ".conf:2: comm.codek: unknown key; did you mean comm.codec?");
    assert_contains(message, ".conf:3: comm.block: 4 is out of range; allowed: an integer, 8 ..");
    assert_contains(message, ".conf:4: comm.schedule: \"ring-a\" is unknown; allowed: sra, ring");
    assert_contains(message, ".conf:5: comm.check_every: a fraction");
    assert_contains(message, ".conf:7: train.lr: a string");
    assert_contains(message, ".conf:8: model.hidden: 0 is out of range");
    assert_memory_equal(&config, &before, sizeof config);
}

static void a_block_is_a_multiple_of_8(void **state)
{
    struct strait_config config;

    (void)state;
    config_defaults(&config);
    assert_int_equal(config_assign(&config, "comm.block=65"), STRAIT_ERR_CONFIG);
    assert_contains(strait_error_message(), "65 is between two steps; allowed: an integer, 8 .. "
                                            "65536, a multiple of 8");
    assert_int_equal(config.comm.block, 256);
    assert_ok(config_assign(&config, "comm.block=72"));
}

static void a_key_outside_a_group_is_pointed_to_its_group(void **state)
{
    struct strait_config config;

    (void)state;
    assert_int_equal(read_text(&config, "codec = \"int8\";\nnonsense = 1;"), STRAIT_ERR_CONFIG);
    assert_contains(strait_error_message(), "codec: unknown key; did you mean comm.codec?");
    assert_contains(strait_error_message(), ":2: nonsense: unknown key; allowed:");
}

static void a_syntax_error_has_its_line(void **state)
{
    struct strait_config config;

    (void)state;
    assert_int_equal(read_text(&config, "comm = {\n  codec = ;\n};"), STRAIT_ERR_CONFIG);
    assert_contains(strait_error_message(), ".conf:2: ");
}

static void a_missing_file_is_an_error(void **state)
{
    struct strait_config config;

    (void)state;
    config_defaults(&config);
    assert_int_equal(config_load(&config, "no/such/file.conf"), STRAIT_ERR_CONFIG);
    assert_contains(strait_error_message(), "cannot read the configuration: no/such/file.conf");
}

static void a_path_is_relative_to_its_file(void **state)
{
    struct strait_config config;

    (void)state;
    assert_ok(read_text(&config, "data = { path = \"x/y.csv\"; images = \"/abs\"; };"));
    assert_int_equal(config.data.path[0], '/');
    assert_contains(config.data.path, "/x/y.csv");
    assert_string_equal(config.data.images, "/abs");
}

static void set_parses_every_type(void **state)
{
    struct strait_config config;

    (void)state;
    config_defaults(&config);
    assert_ok(config_assign(&config, "comm.codec=fp16"));
    assert_ok(config_assign(&config, "comm.block=64"));
    assert_ok(config_assign(&config, "train.lr=1e-3"));
    assert_ok(config_assign(&config, "comm.error_feedback=false"));
    assert_ok(config_assign(&config, "model.hidden=[10, 20]"));
    assert_ok(config_assign(&config, "run.name=\"a b=c\""));
    assert_string_equal(config.comm.codec, "fp16");
    assert_int_equal(config.comm.block, 64);
    assert_true(config.train.lr == 1e-3);
    assert_false(config.comm.error_feedback);
    assert_int_equal(config.model.hidden.values[1], 20);
    assert_string_equal(config.run.name, "a b=c");
    assert_ok(config_assign(&config, "model.hidden=7,8,9"));
    assert_int_equal(config.model.hidden.count, 3);
}

static void set_refuses_nonsense(void **state)
{
    static const char *const bad[] = { "comm.codec", "=x", "comm.codec=zip", "comm.block=ten",
                                       "comm.block=", "comm.block=1e3", "train.lr=nan",
                                       "train.lr=", "model.hidden=1,,2", "model.hidden=[1,2",
                                       "comm.error_feedback=yes", "comm.nothing=1",
                                       "run.seed=99999999999999999999", "run.name=a\"b" };
    struct strait_config config, before;

    (void)state;
    config_defaults(&config);
    before = config;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (config_assign(&config, bad[i]) != STRAIT_ERR_CONFIG) fail_msg("%s was taken", bad[i]);
    assert_memory_equal(&config, &before, sizeof config);
}

static void print_reads_back_as_the_same(void **state)
{
    struct strait_config config, again;
    struct text printed = { 0 };

    (void)state;
    config_defaults(&config);
    assert_ok(config_assign(&config, "train.lr=0.30000000000000004"));
    assert_ok(config_assign(&config, "run.seed=8589934592"));
    assert_ok(config_assign(&config, "data.path=/d/x.csv"));
    config_print(&config, &printed);
    assert_contains(text_string(&printed), "# --set");
    assert_contains(text_string(&printed), "# default");
    assert_ok(read_text(&again, text_string(&printed)));
    assert_true(again.train.lr == config.train.lr);
    assert_true(again.run.seed == config.run.seed);
    assert_string_equal(again.data.path, "/d/x.csv");
    assert_string_equal(again.comm.codec, config.comm.codec);
    assert_int_equal(again.model.hidden.count, config.model.hidden.count);
    text_free(&printed);
}

static void packing_keeps_everything(void **state)
{
    struct strait_config config, again;
    struct text packed = { 0 };

    (void)state;
    assert_ok(read_text(&config, "comm = { codec = \"bf16\"; };\ntrain = { lr = 0.1; };"));
    assert_ok(config_assign(&config, "run.dir=/somewhere"));
    config_pack(&config, &packed);
    assert_ok(config_unpack(&again, text_string(&packed)));
    assert_memory_equal(&again, &config, sizeof config);
    text_free(&packed);
    assert_int_equal(config_unpack(&again, "file\n1 2 3\n"), STRAIT_ERR_FORMAT);
}

static void rules_between_keys_are_checked_together(void **state)
{
    struct strait_config config;

    (void)state;
    config_defaults(&config);
    assert_ok(config_assign(&config, "data.format=idx"));
    assert_ok(config_assign(&config, "data.test_images=/x"));
    assert_ok(config_assign(&config, "run.name=a/b"));
    assert_int_equal(config_check(&config), STRAIT_ERR_CONFIG);
    assert_contains(strait_error_message(), "data.images: missing");
    assert_contains(strait_error_message(), "data.labels: missing");
    assert_contains(strait_error_message(), "data.test_images: goes with");
    assert_contains(strait_error_message(), "run.name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_a_multiple_of_8),
        cmocka_unit_test(every_default_is_allowed),
        cmocka_unit_test_teardown(a_file_goes_over_defaults, remove_file),
        cmocka_unit_test_teardown(all_errors_come_at_once_with_lines, remove_file),
        cmocka_unit_test_teardown(a_key_outside_a_group_is_pointed_to_its_group, remove_file),
        cmocka_unit_test_teardown(a_syntax_error_has_its_line, remove_file),
        cmocka_unit_test(a_missing_file_is_an_error),
        cmocka_unit_test_teardown(a_path_is_relative_to_its_file, remove_file),
        cmocka_unit_test(set_parses_every_type),
        cmocka_unit_test(set_refuses_nonsense),
        cmocka_unit_test_teardown(print_reads_back_as_the_same, remove_file),
        cmocka_unit_test_teardown(packing_keeps_everything, remove_file),
        cmocka_unit_test(rules_between_keys_are_checked_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
