/* SPDX-License-Identifier: Apache-2.0
 * half.c - fp16 and bf16 payloads: 2 bytes an element, round to nearest, ties to even.
 *
 * A finite value too large for the format becomes its largest finite value; the
 * residual keeps the rest. Encode reads 8 and writes 6 bytes an element. */
#include "kernels/half.h"

/* The same loops for both formats. */
#define HALF_KERNELS(name)                                                                     \
    uint32_t OF_ISA(name##_encode)(const float *restrict x, const float *residual_in,          \
                                   float *residual_out, size_t n, const struct encoding *e,    \
                                   uint8_t *restrict wire)                                     \
    {                                                                                          \
        int32_t largest = 0;                                                                   \
                                                                                               \
        (void)e;                                                                               \
        INDEPENDENT                                                                            \
        for (size_t i = 0; i < n; i++) {                                                       \
            float v = x[i] + residual_in[i];                                                   \
            int32_t magnitude = (int32_t)(float_bits(v) & 0x7fffffffu);                        \
            uint16_t h = name##_from(v);                                                       \
                                                                                               \
            largest = magnitude > largest ? magnitude : largest;                               \
            le16_put(wire + 2 * i, h);                                                         \
            residual_out[i] = v - name##_to(h);                                                \
        }                                                                                      \
        return (uint32_t)largest;                                                              \
    }                                                                                          \
    static inline __attribute__((always_inline)) bool name##_read(                             \
        const uint8_t *restrict wire, size_t n, bool add, float *restrict out)                 \
    {                                                                                          \
        uint16_t bad = 0;                                                                      \
                                                                                               \
        for (size_t i = 0; i < n; i++) {                                                       \
            uint16_t h = le16_get(wire + 2 * i);                                               \
                                                                                               \
            bad |= name##_bad(h);                                                              \
            out[i] = add ? out[i] + name##_to(h) : name##_to(h);                               \
        }                                                                                      \
        return bad == 0;                                                                       \
    }                                                                                          \
    bool OF_ISA(name##_decode)(const uint8_t *wire, size_t n, const struct encoding *e,        \
                               float *out)                                                     \
    {                                                                                          \
        (void)e;                                                                               \
        return name##_read(wire, n, false, out);                                               \
    }                                                                                          \
    bool OF_ISA(name##_decode_add)(const uint8_t *wire, size_t n, const struct encoding *e,    \
                                   float *out)                                                 \
    {                                                                                          \
        (void)e;                                                                               \
        return name##_read(wire, n, true, out);                                                \
    }

HALF_KERNELS(bf16)
HALF_KERNELS(fp16)

void OF_ISA(half_to_bf16)(const float *restrict x, size_t n, uint8_t *restrict out)
{
    for (size_t i = 0; i < n; i++) le16_put(out + 2 * i, bf16_from(x[i]));
}
