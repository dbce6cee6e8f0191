/* SPDX-License-Identifier: Apache-2.0
 * test_plan.c - buckets, chunks and the verdict on fingerprints. */
#include <math.h>

#include "engine/engine.h"
#include "engine/settings.h"
#include "lib/unit.h"

static void add(struct tensor_list *list, const char *name, size_t elements)
{
    strait_tensor tensor = { .name = name, .ndim = 1, .shape = { elements } };
    int id;

    assert_ok(tensor_list_add(list, &tensor, &id));
    assert_int_equal(id, list->count - 1);
}

static void settings(struct strait_config *config, const char *bucket_mb, const char *dense_below)
{
    config_defaults(config);
    assert_ok(config_assign(config, bucket_mb));
    assert_ok(config_assign(config, dense_below));
}

static void buckets_fill_from_the_last_tensor(void **state)
{
    struct tensor_list list = { 0 };
    struct plan plan = { 0 };
    struct strait_config config;

    (void)state;
    settings(&config, "comm.bucket_mb=0.004", "comm.dense_below=0"); /* 1048 floats */
    add(&list, "a", 600);
    add(&list, "b", 500);
    add(&list, "c", 5000);
    add(&list, "d", 500);
    add(&list, "e", 500);
    assert_ok(plan_build(&plan, &list, &config));
    assert_int_equal(plan.count, 4);
    assert_int_equal(list.items[4].bucket, 0);
    assert_int_equal(list.items[3].bucket, 0);
    assert_int_equal(list.items[3].offset, 500);
    assert_int_equal(list.items[2].bucket, 1); /* larger than a bucket: alone */
    assert_int_equal(list.items[1].bucket, 2);
    assert_int_equal(list.items[0].bucket, 3);
    assert_int_equal(plan.buckets[0].elements, 1000);
    assert_int_equal(plan.buckets[0].tensors, 2);
    plan_free(&plan);
    tensor_list_free(&list);
}

static void small_tensors_travel_uncompressed(void **state)
{
    struct tensor_list list = { 0 };
    struct plan plan = { 0 };
    struct strait_config config;

    (void)state;
    settings(&config, "comm.bucket_mb=1", "comm.dense_below=100");
    add(&list, "w1", 5000);
    add(&list, "b1", 50);
    add(&list, "w2", 5000);
    add(&list, "b2", 99);
    assert_ok(plan_build(&plan, &list, &config));
    assert_int_equal(plan.count, 2);
    /* the biases' bucket is whole when b1 comes, before w1 completes the other */
    assert_int_equal(list.items[1].bucket, 0);
    assert_int_equal(list.items[3].bucket, 0);
    assert_string_equal(plan.buckets[0].codec->name, "fp32");
    assert_string_equal(plan.buckets[1].codec->name, "int8");
    plan_free(&plan);
    tensor_list_free(&list);
}

/* Two matrices with a bucket each; a vector, and a matrix that two columns of factors would not
 * make smaller, travel as fp32. */
static void first_factors_go_before_second_ones(void **state)
{
    static const strait_tensor tensors[] = {
        { .name = "a", .ndim = 2, .shape = { 100, 60 } },
        { .name = "v", .ndim = 1, .shape = { 6000 } },
        { .name = "c", .ndim = 2, .shape = { 4, 4 } }, /* 2 * (4 + 4) = 16 */
        { .name = "d", .ndim = 2, .shape = { 60, 100 } },
    };
    struct tensor_list list = { 0 };
    struct plan plan = { 0 };
    struct strait_config config;
    char order[64] = "";

    (void)state;
    settings(&config, "comm.bucket_mb=0.024", "comm.dense_below=0");
    assert_ok(config_assign(&config, "comm.codec=powersgd"));
    assert_ok(config_assign(&config, "comm.powersgd_rank=2"));
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        int id;

        assert_ok(tensor_list_add(&list, &tensors[i], &id));
    }
    assert_ok(plan_build(&plan, &list, &config));
    for (int i = 0; i < plan.leg_count; i++)
        snprintf(order + strlen(order), sizeof order - strlen(order), "%d%s ", plan.legs[i].bucket,
                 plan.legs[i].second ? "Q" : plan.buckets[plan.legs[i].bucket].codec->name);
    assert_string_equal(order, "0powersgd 1fp32 0Q 2powersgd 2Q ");
    plan_free(&plan);
    tensor_list_free(&list);
}

static void bad_tensors_are_refused(void **state)
{
    static const strait_tensor bad[] = {
        { .name = NULL, .ndim = 1, .shape = { 1 } },
        { .name = "", .ndim = 1, .shape = { 1 } },
        { .name = "x", .ndim = 0 },
        { .name = "x", .ndim = 9, .shape = { 1 } },
        { .name = "x", .ndim = 2, .shape = { 1, 0 } },
        { .name = "x", .ndim = 2, .shape = { SIZE_MAX, 2 } },
        { .name = "x", .ndim = 1, .shape = { 1ul << 32 } },
        { .name = "x", .ndim = 1, .shape = { 1 }, .dtype = (strait_dtype)7 },
        { .name = "taken", .ndim = 1, .shape = { 1 } },
        { .name = "two\nlines", .ndim = 1, .shape = { 1 } },
    };
    struct tensor_list list = { 0 };
    int id;

    (void)state;
    add(&list, "taken", 1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(tensor_list_add(&list, &bad[i], &id), STRAIT_ERR_USAGE);
    assert_int_equal(list.count, 1);
    tensor_list_free(&list);
}

static void chunks_cover_a_bucket_once_for_any_rank_count(void **state)
{
    (void)state;
    for (int ranks = 1; ranks < 40; ranks++)
        for (size_t n = 0; n < 200; n++) {
            assert_int_equal(slice_begin(n, ranks, 0), 0);
            assert_int_equal(slice_begin(n, ranks, ranks), n);
            for (int c = 0; c < ranks; c++) {
                size_t size = slice_begin(n, ranks, c + 1) - slice_begin(n, ranks, c);

                assert_true(size >= n / (size_t)ranks && size <= n / (size_t)ranks + 1);
            }
        }
}

static void the_rank_that_differs_is_named(void **state)
{
    struct place places[4] = { { .host = "a" }, { .host = "b" }, { .host = "c" }, { .host = "d" } };
    struct cluster cluster = { .size = 4, .places = places };
    uint64_t same[8] = { 1, 2, 1, 2, 1, 2, 1, 2 }, differ[8] = { 1, 2, 1, 2, 1, 9, 1, 2 };
    uint64_t first[8] = { 7, 2, 1, 2, 1, 2, 1, 2 };
    struct text why = { 0 };

    (void)state;
    assert_int_equal(fingerprint_compare(same, 4, 2, &cluster, &why), -1);
    assert_int_equal(fingerprint_compare(differ, 4, 2, &cluster, &why), 1);
    assert_string_equal(text_string(&why), "bucket 1: rank 2 on c against rank 0 and 2 like it");
    text_free(&why);
    assert_int_equal(fingerprint_compare(first, 4, 2, &cluster, &why), 0);
    assert_contains(text_string(&why), "rank 0 on a against rank 1");
    text_free(&why);
}

static void the_ratio_warms_up_by_one_factor_a_step(void **state)
{
    struct strait_config config;

    (void)state;
    settings(&config, "comm.topk_ratio=0.001", "comm.ratio_warmup_steps=100");
    assert_ok(config_assign(&config, "comm.warmup_steps=7"));
    for (uint32_t step = 0; step < 120; step++) {
        double since = step < 7 ? 0 : step - 7;
        double due = since < 100 ? 0.25 * pow(0.001 / 0.25, since / 100) : 0.001;
        double ratio = settings_at(&config, step).topk_ratio;

        if (fabs(ratio / due - 1) > 1e-9) fail_msg("step %u: %.12g, not %.12g", step, ratio, due);
    }
    assert_true(settings_at(&config, 0).topk_ratio == 0.25);
    assert_true(settings_at(&config, 107).topk_ratio == 0.001);
    /* a start below the end is none */
    assert_ok(config_assign(&config, "comm.ratio_warmup_from=0.0005"));
    assert_true(settings_at(&config, 0).topk_ratio == 0.001);
    assert_true(settings_at(&config, UINT32_MAX).topk_ratio == 0.001);
    /* randk's likewise */
    settings(&config, "comm.randk_ratio=0.1", "comm.ratio_warmup_steps=2");
    assert_true(settings_at(&config, 0).randk_ratio == 0.25);
    assert_true(fabs(settings_at(&config, 1).randk_ratio - sqrt(0.25 * 0.1)) < 1e-9);
    assert_true(settings_at(&config, 2).randk_ratio == 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_fill_from_the_last_tensor),
        cmocka_unit_test(small_tensors_travel_uncompressed),
        cmocka_unit_test(first_factors_go_before_second_ones),
        cmocka_unit_test(bad_tensors_are_refused),
        cmocka_unit_test(chunks_cover_a_bucket_once_for_any_rank_count),
        cmocka_unit_test(the_rank_that_differs_is_named),
        cmocka_unit_test(the_ratio_warms_up_by_one_factor_a_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
