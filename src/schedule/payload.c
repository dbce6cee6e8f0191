/* SPDX-License-Identifier: Apache-2.0
 * payload.c - see payload.h. */
#include "schedule/payload.h"

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"

static const uint8_t magic[4] = { 'S', 'T', 'R', 'P' };
enum { FLAG_POISONED = 1, FLAG_CHECKED = 2, CHECKSUM_AT = 32 };

/* Of the body, seeded by that of the header before it. */
static uint64_t checksum_of(const uint8_t *message, size_t bytes)
{
    return hash_bytes(message + PAYLOAD_HEADER_BYTES, bytes - PAYLOAD_HEADER_BYTES,
                      hash_bytes(message, CHECKSUM_AT, 0));
}

void payload_put(uint8_t *to, const struct payload_header *header, size_t bytes)
{
    memcpy(to, magic, 4);
    to[4] = PAYLOAD_VERSION;
    to[5] = header->codec;
    to[6] = (header->poisoned ? FLAG_POISONED : 0) + (header->checked ? FLAG_CHECKED : 0);
    to[7] = header->leg;
    le32_put(to + 8, header->step);
    le16_put(to + 12, header->bucket);
    le16_put(to + 14, header->owner);
    le32_put(to + 16, header->tile);
    le32_put(to + 20, header->elements);
    le32_put(to + 24, header->param);
    le32_put(to + 28, header->variant);
    le64_put(to + CHECKSUM_AT, header->checked ? checksum_of(to, bytes) : 0);
}

static strait_status differs(const char *field, uint32_t got, uint32_t due)
{
    return error_set(STRAIT_ERR_FORMAT, "payload header: %s is %u, due is %u", field, got, due);
}

strait_status payload_check(const uint8_t *message, size_t bytes,
                            const struct payload_header *due, bool *poisoned)
{
    uint8_t flags = due->checked ? FLAG_CHECKED : 0;

    if (bytes < PAYLOAD_HEADER_BYTES)
        return error_set(STRAIT_ERR_FORMAT, "payload header: %zu bytes are too few", bytes);
    if (memcmp(message, magic, 4) != 0)
        return error_set(STRAIT_ERR_FORMAT, "payload header: this is no payload");
    if (message[4] != PAYLOAD_VERSION) return differs("the version", message[4], PAYLOAD_VERSION);
    if (message[5] != due->codec) return differs("the codec", message[5], due->codec);
    if ((message[6] & ~FLAG_POISONED) != flags) return differs("the flag byte", message[6], flags);
    if (message[7] != due->leg) return differs("the leg", message[7], due->leg);
    if (le32_get(message + 8) != due->step)
        return differs("the step", le32_get(message + 8), due->step);
    if (le16_get(message + 12) != due->bucket)
        return differs("the bucket", le16_get(message + 12), due->bucket);
    if (le16_get(message + 14) != due->owner)
        return differs("the owner", le16_get(message + 14), due->owner);
    if (le32_get(message + 16) != due->tile)
        return differs("the tile", le32_get(message + 16), due->tile);
    if (le32_get(message + 20) != due->elements)
        return differs("the element count", le32_get(message + 20), due->elements);
    if (le32_get(message + 24) != due->param)
        return differs("the codec's parameter", le32_get(message + 24), due->param);
    if (le32_get(message + 28) != due->variant)
        return differs("the codec's variant", le32_get(message + 28), due->variant);
    if (le64_get(message + CHECKSUM_AT) != (due->checked ? checksum_of(message, bytes) : 0))
        return error_set(STRAIT_ERR_FORMAT, "payload: the checksum is wrong, so some of its %zu "
                         "bytes changed on the way: check memory, network cards and cables", bytes);
    *poisoned = message[6] & FLAG_POISONED;
    if (*poisoned && bytes != PAYLOAD_HEADER_BYTES)
        return error_set(STRAIT_ERR_FORMAT, "payload header: poisoned, yet a body follows");
    return STRAIT_OK;
}
