/* SPDX-License-Identifier: Apache-2.0
 * test_model.c - gradients against finite differences, optimisers against their formulas,
 * the meter and the verdict against numbers made by hand. */
#include <math.h>

#include "base/random.h"
#include "lib/unit.h"
#include "train/meter.h"
#include "train/optimizer.h"
#include "train/report.h"

enum { FEATURES = 5, CLASSES = 3, SAMPLES = 4 };
static const struct config_list hidden = { 2, { 7, 6 } };
static float x[SAMPLES * FEATURES];
static const int32_t labels[SAMPLES] = { 0, 2, 1, 2 };

static struct mlp *new_model(void)
{
    struct mlp *m = NULL;

    assert_ok(mlp_open(&m, FEATURES, &hidden, CLASSES, SAMPLES, 11));
    for (int i = 0; i < SAMPLES * FEATURES; i++) x[i] = (float)random_unit(1, 1, (uint64_t)i);
    return m;
}

static double loss(struct mlp *m)
{
    size_t correct;

    mlp_forward(m, x, SAMPLES);
    return mlp_loss(m, labels, SAMPLES, &correct);
}

struct order { int ids[8], count; };

static strait_status note(void *arg, int id)
{
    struct order *order = arg;

    order->ids[order->count++] = id;
    return STRAIT_OK;
}

static strait_status refuse(void *arg, int id)
{
    (void)arg, (void)id;
    return STRAIT_ERR_TIMEOUT;
}

static void gradients_equal_finite_differences(void **state)
{
    struct mlp *m = new_model();
    struct order order = { .count = 0 };

    (void)state;
    loss(m);
    assert_ok(mlp_backward(m, x, labels, SAMPLES, 1.0f, note, &order));
    for (int id = 0; id < mlp_parameter_count(m); id++) {
        struct parameter *p = mlp_parameter(m, id);

        for (size_t i = 0; i < p->rows * p->columns; i++) {
            float value = p->value[i], step = 1e-3f;
            double up, down, slope;

            p->value[i] = value + step;
            up = loss(m);
            p->value[i] = value - step;
            down = loss(m);
            p->value[i] = value;
            slope = (up - down) / (2 * (double)step);
            if (fabs(slope - (double)p->grad[i]) > 5e-3)
                fail_msg("%s[%zu]: gradient %g, slope %g", p->name, i, (double)p->grad[i], slope);
        }
    }
    mlp_close(m);
}

static void gradients_come_last_layer_first_and_errors_end_the_pass(void **state)
{
    static const int expected[6] = { 5, 4, 3, 2, 1, 0 };
    struct mlp *m = new_model();
    struct order order = { .count = 0 };

    (void)state;
    loss(m);
    assert_ok(mlp_backward(m, x, labels, SAMPLES, 1.0f, note, &order));
    assert_int_equal(order.count, 6);
    assert_memory_equal(order.ids, expected, sizeof expected);
    assert_int_equal(mlp_backward(m, x, labels, SAMPLES, 1.0f, refuse, NULL), STRAIT_ERR_TIMEOUT);
    mlp_close(m);
}

static void no_samples_give_zero_gradients(void **state)
{
    struct mlp *m = new_model();
    struct order order = { .count = 0 };

    (void)state;
    loss(m);
    assert_ok(mlp_backward(m, x, labels, SAMPLES, 1.0f, note, &order));
    order.count = 0;
    mlp_forward(m, x, 0);
    assert_ok(mlp_backward(m, x, labels, 0, 1.0f, note, &order));
    assert_int_equal(order.count, 6);
    for (int id = 0; id < mlp_parameter_count(m); id++)
        for (size_t i = 0; i < mlp_parameter(m, id)->rows * mlp_parameter(m, id)->columns; i++)
            assert_true(mlp_parameter(m, id)->grad[i] == 0.0f);
    mlp_close(m);
}

static void weights_depend_on_the_seed_alone(void **state)
{
    struct mlp *a = new_model(), *b = new_model(), *c = NULL;

    (void)state;
    assert_ok(mlp_open(&c, FEATURES, &hidden, CLASSES, 1, 12));
    assert_memory_equal(mlp_parameter(a, 0)->value, mlp_parameter(b, 0)->value, 4 * 35);
    assert_memory_not_equal(mlp_parameter(a, 0)->value, mlp_parameter(c, 0)->value, 4 * 35);
    mlp_close(a);
    mlp_close(b);
    mlp_close(c);
}

/* Both optimisers for three steps on one weight, in double precision beside. */
static void optimisers_follow_their_formulas(void **state)
{
    static const char *const kinds[] = { "train.optimizer=sgd", "train.optimizer=adam" };

    (void)state;
    for (int adam = 0; adam < 2; adam++) {
        struct mlp *m = new_model();
        struct optimizer *o = NULL;
        struct strait_config config;
        struct parameter *p = mlp_parameter(m, 0);
        double w = p->value[0], first = 0, second = 0;

        config_defaults(&config);
        assert_ok(config_assign(&config, kinds[adam]));
        assert_ok(config_assign(&config, "train.lr=0.01"));
        assert_ok(config_assign(&config, "train.weight_decay=0.1"));
        assert_ok(optimizer_open(&o, &config, m));
        for (int t = 1; t <= 3; t++) {
            double g = 0.3 * t + 0.1 * w;

            p->grad[0] = 0.3f * (float)t;
            optimizer_apply(o);
            if (adam) {
                first = 0.9 * first + 0.1 * g;
                second = 0.999 * second + 0.001 * g * g;
                w -= 0.01 * (first / (1 - pow(0.9, t))) /
                     (sqrt(second / (1 - pow(0.999, t))) + 1e-8);
            } else {
                first = 0.9 * first + g;
                w -= 0.01 * first;
            }
            if (fabs(w - (double)p->value[0]) > 1e-5)
                fail_msg("%s, step %d: %g, formula %g", kinds[adam], t, (double)p->value[0], w);
        }
        optimizer_close(o);
        mlp_close(m);
    }
}

static void the_meter_cuts_exact_percentiles(void **state)
{
    struct meter *m = meter_open(100);
    strait_statistics statistics = { .wire_bytes = { 100, 7 }, .dense_bytes = 428, .encode_s = 1,
                                     .decode_s = 2, .skipped_steps = 3 };
    struct record r;

    (void)state;
    for (int i = 100; i > 0; i--) meter_step(m, i * 1e-3, 1e-3, 2, 0.5);
    r = meter_cut(m, &statistics);
    assert_int_equal(r.steps, 100);
    assert_int_equal(r.samples, 200);
    assert_true(fabs(r.step_median_s - 0.0505) < 1e-9);
    assert_true(fabs(r.step_p95_s - 0.095) < 1e-9);
    assert_true(fabs(record_ratio(&r) - 4.0) < 1e-9);
    assert_true(r.encode_decode_s == 3 && r.skipped == 3);
    r = meter_cut(m, &statistics);
    assert_int_equal(r.steps, 0);
    assert_true(record_ratio(&r) == 0);
    r = meter_total(m, &statistics);
    assert_int_equal(r.steps, 100);
    assert_int_equal(r.wire_bytes[1], 7);
    meter_close(m);
}

static void the_slowest_rank_and_its_reason_are_named(void **state)
{
    struct place places[3] = { { .host = "a" }, { .host = "b" }, { .host = "c" } };
    struct cluster cluster = { .size = 3, .places = places };
    struct record records[3];
    struct text out = { 0 };

    (void)state;
    for (int r = 0; r < 3; r++)
        records[r] = (struct record){ .steps = 200, .step_s = 1.0, .exposed_s = 0.5,
                                      .encode_decode_s = 0.1 };
    verdict_slowest(records, &cluster, &out);
    assert_contains(text_string(&out), "no rank is markedly slower");
    text_free(&out);
    records[1].exposed_s = 0.1;
    verdict_slowest(records, &cluster, &out);
    assert_contains(text_string(&out), "rank 1 on b, 4.50 ms");
    assert_contains(text_string(&out), "its compute takes longer");
    text_free(&out);
    records[1].encode_decode_s = 0.6;
    verdict_slowest(records, &cluster, &out);
    assert_contains(text_string(&out), "encoding and decoding take longer");
    text_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(gradients_come_last_layer_first_and_errors_end_the_pass),
        cmocka_unit_test(no_samples_give_zero_gradients),
        cmocka_unit_test(weights_depend_on_the_seed_alone),
        cmocka_unit_test(optimisers_follow_their_formulas),
        cmocka_unit_test(the_meter_cuts_exact_percentiles),
        cmocka_unit_test(the_slowest_rank_and_its_reason_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
