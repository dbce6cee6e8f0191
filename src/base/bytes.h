/* SPDX-License-Identifier: Apache-2.0
 * bytes.h - little-endian numbers in byte buffers, on any host and any alignment. */
#ifndef STRAIT_BASE_BYTES_H
#define STRAIT_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LE_SWAP(bits, v) __builtin_bswap##bits(v)
#else
#define LE_SWAP(bits, v) (v)
#endif

/* memcpy keeps any alignment right and is one load or store after optimisation. */
#define LE_PAIR(bits)                                                     \
    static inline void le##bits##_put(uint8_t *p, uint##bits##_t v)       \
    {                                                                     \
        v = LE_SWAP(bits, v);                                             \
        memcpy(p, &v, sizeof v);                                          \
    }                                                                     \
    static inline uint##bits##_t le##bits##_get(const uint8_t *p)         \
    {                                                                     \
        uint##bits##_t v;                                                 \
        memcpy(&v, p, sizeof v);                                          \
        return LE_SWAP(bits, v);                                          \
    }

LE_PAIR(16)
LE_PAIR(32)
LE_PAIR(64)

static inline uint32_t float_bits(float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static inline float bits_float(uint32_t bits)
{
    float v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline void lef32_put(uint8_t *p, float v)
{
    le32_put(p, float_bits(v));
}

static inline float lef32_get(const uint8_t *p)
{
    return bits_float(le32_get(p));
}

#endif
