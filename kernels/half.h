/* SPDX-License-Identifier: Apache-2.0
 * half.h - one fp16 or bf16 number from a float, and back.
 *
 * Branch-free, so that loops over them vectorise. The fp16 bit arithmetic follows F. Giesen,
 * "Float->half variants" (public domain). */
#ifndef STRAIT_KERNELS_HALF_H
#define STRAIT_KERNELS_HALF_H

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

#endif
