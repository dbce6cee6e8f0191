/* SPDX-License-Identifier: Apache-2.0
 * payload.c - see payload.h. */
#include "schedule/payload.h"

#include <string.h>

#include "base/bytes.h"

static const uint8_t magic[4] = { 'S', 'T', 'R', 'P' };
enum { FLAG_POISONED = 1 };

void payload_put(uint8_t *to, const struct payload_header *header)
{
    memcpy(to, magic, 4);
    to[4] = PAYLOAD_VERSION;
    to[5] = header->codec;
    to[6] = header->poisoned ? FLAG_POISONED : 0;
    to[7] = header->leg;
    le32_put(to + 8, header->step);
    le16_put(to + 12, header->bucket);
    le16_put(to + 14, header->owner);
    le32_put(to + 16, header->tile);
    le32_put(to + 20, header->elements);
    le32_put(to + 24, header->param);
    le32_put(to + 28, header->variant);
}

static strait_status differs(const char *field, uint32_t got, uint32_t due)
{
    return error_set(STRAIT_ERR_FORMAT, "payload header: %s is %u, due is %u", field, got, due);
}

strait_status payload_check(const uint8_t *message, size_t bytes,
                            const struct payload_header *due, bool *poisoned)
{
    if (bytes < PAYLOAD_HEADER_BYTES)
        return error_set(STRAIT_ERR_FORMAT, "payload header: %zu bytes are too few", bytes);
    if (memcmp(message, magic, 4) != 0)
        return error_set(STRAIT_ERR_FORMAT, "payload header: this is no payload");
    if (message[4] != PAYLOAD_VERSION) return differs("the version", message[4], PAYLOAD_VERSION);
    if (message[5] != due->codec) return differs("the codec", message[5], due->codec);
    if (message[6] & ~FLAG_POISONED) return differs("the flag byte", message[6], 0);
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
    *poisoned = message[6] & FLAG_POISONED;
    if (*poisoned && bytes != PAYLOAD_HEADER_BYTES)
        return error_set(STRAIT_ERR_FORMAT, "payload header: poisoned, yet a body follows");
    return STRAIT_OK;
}
