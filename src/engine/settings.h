/* SPDX-License-Identifier: Apache-2.0
 * settings.h - what the configuration says about codecs in a given step. */
#ifndef STRAIT_ENGINE_SETTINGS_H
#define STRAIT_ENGINE_SETTINGS_H

#include "base/config.h"
#include "codec/codec.h"

/* A function of its arguments alone, the same bits on every rank: so all ranks know the
 * sizes of a step in advance. Those of step 0 are the largest. */
struct codec_settings settings_at(const struct strait_config *config, uint32_t step);

#endif
