/* SPDX-License-Identifier: Apache-2.0
 * reference.h - each codec once more, as plainly as possible, in double precision and
 * with sorting: what the kernels are held against. Shares no code with them. */
#ifndef STRAIT_TESTS_REFERENCE_H
#define STRAIT_TESTS_REFERENCE_H

#include "codec/codec.h"

/* What a decoder must give for the values v of that shape, encoded with that draw. */
void reference_decoded(const struct codec_shape *shape, struct codec_draw draw, const float *v,
                       float *out);

/* Round to the nearest value with `digits` binary digits of precision and exponents from
 * `lowest` (of the last digit of a subnormal) up to `largest`, ties to even. */
double reference_round(double v, int digits, int lowest, double largest);

#endif
