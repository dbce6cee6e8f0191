/* SPDX-License-Identifier: Apache-2.0
 * half.c - fp16 and bf16 payloads: 2 bytes an element, round to nearest, ties to even.
 *
 * A finite value too large for the format becomes its largest finite value; the
 * residual keeps the rest. Encode reads 8 and writes 6 bytes an element; branch-free,
 * so that compilers vectorise it. The fp16 bit arithmetic follows F. Giesen,
 * "Float->half variants" (public domain). */
#include "base/bytes.h"
#include "kernels.h"

/* Signed where it compares: SSE2 and AVX2 have no unsigned comparison. */
static inline uint16_t bf16_from(float v)
{
    uint32_t bits = float_bits(v), rounded = bits + 0x7fffu + (bits >> 16 & 1);
    uint32_t largest = 0x7f7fu | (bits >> 16 & 0x8000u);

    return (uint16_t)((int32_t)(rounded & 0x7fffffffu) < 0x7f800000 ? rounded >> 16 : largest);
}

/* which ? a : b by masks: compilers would make a branch of it, and no vectors then. */
static inline int32_t selected(bool which, int32_t a, int32_t b)
{
    int32_t mask = -(int32_t)which;

    return (a & mask) | (b & ~mask);
}

static inline float bf16_to(uint16_t h)
{
    return bits_float((uint32_t)h << 16);
}

static inline bool bf16_bad(uint16_t h)
{
    return (h & 0x7f80u) == 0x7f80u;
}

static inline uint16_t fp16_from(float v)
{
    uint32_t bits = float_bits(v), sign = bits >> 16 & 0x8000u;
    int32_t m = (int32_t)(bits & 0x7fffffffu);
    /* below 2^-14: adding 0.5 moves the rounding to the subnormal's last bit */
    int32_t small = (int32_t)float_bits(bits_float((uint32_t)m) + 0.5f) - 0x3f000000;
    /* otherwise: rebias the exponent by 15 - 127 and round the 13 dropped bits */
    int32_t normal = (m - 0x38000000 + 0xfff + (m >> 13 & 1)) >> 13;
    int32_t h = selected(m < 0x38800000, small, normal);

    h = selected(m >= 0x477ff000, 0x7bff, h); /* would round to 65536 or more */
    return (uint16_t)((uint32_t)h | sign);
}

static inline float fp16_to(uint16_t h)
{
    /* the half's exponent and fraction in a float's place, the exponent rebiased; below
     * 2^-14 the fraction under an exponent that makes its last bit 2^-24. No subnormal
     * float takes part: processors are slow with them. */
    int32_t m = h & 0x7fff;
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    float small = bits_float(0x3f000000u | (uint32_t)m) - 0.5f;
    int32_t normal = (m << 13) + 0x38000000;

    return bits_float((uint32_t)selected(m < 0x400, (int32_t)float_bits(small), normal) | sign);
}

static inline bool fp16_bad(uint16_t h)
{
    return (h & 0x7c00u) == 0x7c00u;
}

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
