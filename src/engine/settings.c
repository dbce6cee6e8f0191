/* SPDX-License-Identifier: Apache-2.0
 * settings.c - see settings.h. */
#include "engine/settings.h"

#include <math.h>

/* from^(1-f) * to^f for 0 <= f < 1, by halving the interval: pow() differs from libc to libc
 * in its last bit, a square root nowhere. */
static double between(double from, double to, double f)
{
    for (int bit = 0; bit < 40; bit++) {
        double middle = sqrt(from * to);
        bool upper = f >= 0.5;

        f = 2 * f - upper;
        if (upper) from = middle;
        else to = middle;
    }
    return from;
}

/* Deep Gradient Compression (arXiv 1712.01887, 3.3) lets the share that is sent fall
 * exponentially in the first epochs; here by step, after those that travel as fp32. */
static double ratio_at(const struct strait_config *config, double ratio, uint32_t step)
{
    int64_t since = (int64_t)step - config->comm.warmup_steps;
    int64_t steps = config->comm.ratio_warmup_steps;
    double from = config->comm.ratio_warmup_from;

    if (since >= steps || from <= ratio) return ratio;
    return between(from, ratio, since > 0 ? (double)since / (double)steps : 0);
}

struct codec_settings settings_at(const struct strait_config *config, uint32_t step)
{
    struct codec_settings settings = codec_settings_of(config);

    settings.topk_ratio = ratio_at(config, settings.topk_ratio, step);
    settings.randk_ratio = ratio_at(config, settings.randk_ratio, step);
    return settings;
}
