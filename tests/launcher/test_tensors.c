/* SPDX-License-Identifier: Apache-2.0
 * test_tensors.c - the known models have as many tensors and elements as was published. */
#include "lib/unit.h"

#include "../../launcher/bench.h"

static void holds(const char *model, int tensors, size_t elements, const char *last)
{
    struct bench_tensors list;
    size_t sum = 0;

    assert_ok(bench_tensors_load(model, &list));
    assert_int_equal(list.count, tensors);
    assert_int_equal(list.elements, elements);
    assert_string_equal(list.items[list.count - 1].name, last);
    for (int t = 0; t < list.count; t++) {
        size_t product = 1;

        for (int i = 0; i < list.items[t].ndim; i++) product *= list.items[t].shape[i];
        assert_int_equal(list.items[t].elements, product);
        assert_int_equal(list.items[t].begin, sum);
        sum += product;
        for (int other = 0; other < t; other++)
            assert_string_not_equal(list.items[t].name, list.items[other].name);
    }
    assert_int_equal(sum, elements);
    bench_tensors_free(&list);
}

static void models_have_their_published_sizes(void **state)
{
    (void)state;
    holds("resnet50", 161, 25557032, "fc.bias");
    holds("bert-large", 391, 335141888, "pooler.bias");
    holds("gpt2", 148, 124439808, "ln_f.bias");
}

static void equal_tensors_cover_all_elements(void **state)
{
    struct bench_tensors list;

    (void)state;
    assert_ok(bench_tensors_even(1001, 300, &list));
    assert_int_equal(list.count, 300);
    assert_int_equal(list.elements, 1001);
    assert_int_equal(list.items[299].begin + list.items[299].elements, 1001);
    bench_tensors_free(&list);
    assert_ok(bench_tensors_even(3, 300, &list));
    assert_int_equal(list.count, 3);
    bench_tensors_free(&list);
    /* matrices, as near to a square as they go */
    assert_ok(bench_tensors_even(24 + 24 + 23, 3, &list));
    assert_true(list.items[2].shape[0] == 4 && list.items[2].shape[1] == 6);
    assert_true(list.items[0].shape[0] == 1 && list.items[0].shape[1] == 23);
    bench_tensors_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_have_their_published_sizes),
        cmocka_unit_test(equal_tensors_cover_all_elements),
    };

    return cmocka_run_group_tests_name("tensors", tests, NULL, NULL);
}
