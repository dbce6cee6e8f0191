/* SPDX-License-Identifier: Apache-2.0
 * clip.h - hold a gradient down before it is added to anything. */
#ifndef STRAIT_ENGINE_CLIP_H
#define STRAIT_ENGINE_CLIP_H

#include <stddef.h>

/* Scale `grad` down to an L2 norm of at most `limit`. One that is not finite stays as it is:
 * its exchange finds that out. The same bits whatever the instruction set. */
void clip_norm(float *grad, size_t n, double limit);

#endif
