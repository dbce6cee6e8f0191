/* SPDX-License-Identifier: Apache-2.0
 * half.c - fp16 and bf16 payloads: 2 bytes an element, round to nearest, ties to even.
 *
 * A finite value too large for the format becomes its largest finite value; the
 * residual keeps the rest. Encode reads 8 and writes 6 bytes an element; branch-free,
 * so that compilers vectorise it. The fp16 bit arithmetic follows F. Giesen,
 * "Float->half variants" (public domain). */
#include "base/bytes.h"
#include "kernels.h"

static inline uint16_t bf16_from(float v)
{
    uint32_t bits = float_bits(v), rounded = bits + 0x7fffu + (bits >> 16 & 1);
    uint32_t largest = 0x7f7fu | (bits >> 16 & 0x8000u);

    return (uint16_t)((rounded & 0x7fffffffu) < NONFINITE_BITS ? rounded >> 16 : largest);
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
    uint32_t bits = float_bits(v), sign = bits >> 16 & 0x8000u, m = bits & 0x7fffffffu;
    /* below 2^-14: adding 0.5 moves the rounding to the subnormal's last bit */
    uint32_t small = float_bits(bits_float(m) + 0.5f) - 0x3f000000u;
    /* otherwise: rebias the exponent by 15 - 127 and round the 13 dropped bits */
    uint32_t normal = (m - 0x38000000u + 0xfffu + (m >> 13 & 1)) >> 13;
    uint32_t h = m < 0x38800000u ? small : normal;

    h = m >= 0x477ff000u ? 0x7bffu : h; /* would round to 65536 or more */
    return (uint16_t)(h | sign);
}

static inline float fp16_to(uint16_t h)
{
    /* the half's exponent and fraction in a float's place, scaled by 2^(127 - 15) */
    float magnitude = bits_float((uint32_t)(h & 0x7fffu) << 13) * 0x1p112f;

    return bits_float(float_bits(magnitude) | (uint32_t)(h & 0x8000u) << 16);
}

static inline bool fp16_bad(uint16_t h)
{
    return (h & 0x7c00u) == 0x7c00u;
}

/* The same three loops for both formats. */
#define HALF_KERNELS(name)                                                                 \
    uint32_t name##_encode(const float *restrict x, const float *residual_in,     \
                                  float *residual_out, size_t n, const struct encoding *e,  \
                                  uint8_t *restrict wire)                                  \
    {                                                                                      \
        uint32_t largest = 0;                                                              \
                                                                                           \
        (void)e;                                                                       \
        for (size_t i = 0; i < n; i++) {                                                   \
            float v = x[i] + residual_in[i];                                               \
            uint32_t magnitude = float_bits(v) & 0x7fffffffu;                              \
            uint16_t h = name##_from(v);                                                   \
                                                                                           \
            largest = magnitude > largest ? magnitude : largest;                           \
            le16_put(wire + 2 * i, h);                                                     \
            residual_out[i] = v - name##_to(h);                                            \
        }                                                                                  \
        return largest;                                                                    \
    }                                                                                      \
    bool name##_decode(const uint8_t *restrict wire, size_t n, const struct encoding *e,             \
                              float *restrict out)                                         \
    {                                                                                      \
        unsigned bad = 0;                                                                  \
                                                                                           \
        (void)e;                                                                       \
        for (size_t i = 0; i < n; i++) {                                                   \
            uint16_t h = le16_get(wire + 2 * i);                                           \
                                                                                           \
            bad |= name##_bad(h);                                                          \
            out[i] = name##_to(h);                                                         \
        }                                                                                  \
        return bad == 0;                                                                   \
    }                                                                                      \
    bool name##_decode_add(const uint8_t *restrict wire, size_t n, const struct encoding *e,         \
                                  float *restrict out)                                     \
    {                                                                                      \
        unsigned bad = 0;                                                                  \
                                                                                           \
        (void)e;                                                                       \
        for (size_t i = 0; i < n; i++) {                                                   \
            uint16_t h = le16_get(wire + 2 * i);                                           \
                                                                                           \
            bad |= name##_bad(h);                                                          \
            out[i] += name##_to(h);                                                        \
        }                                                                                  \
        return bad == 0;                                                                   \
    }

HALF_KERNELS(bf16)
HALF_KERNELS(fp16)
