/* SPDX-License-Identifier: Apache-2.0
 * unit.h - what every cmocka test includes, in the order that cmocka wants. */
#ifndef STRAIT_TESTS_UNIT_H
#define STRAIT_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define assert_contains(text, part)                                                   \
    do {                                                                              \
        if (strstr((text), (part)) == NULL)                                           \
            fail_msg("\"%s\" is not in \"%s\"", (part), (text));                      \
    } while (0)

#define assert_ok(call)                                                               \
    do {                                                                              \
        if ((call) != STRAIT_OK) fail_msg("%s: %s", #call, strait_error_message());   \
    } while (0)

#endif
