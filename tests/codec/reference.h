/* SPDX-License-Identifier: Apache-2.0
 * reference.h - each codec once more, as plainly as possible, in double precision and
 * with sorting: what the kernels are held against. Shares no code with them. */
#ifndef STRAIT_TESTS_REFERENCE_H
#define STRAIT_TESTS_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

/* What a decoder must give for the n values v under the named codec. `param` is the block
 * (of the codecs that have one) or k (topk). */
void reference_decoded(const char *codec, const float *v, size_t n, uint32_t param, float *out);

/* Round to the nearest value with `digits` binary digits of precision and exponents from
 * `lowest` (of the last digit of a subnormal) up to `largest`, ties to even. */
double reference_round(double v, int digits, int lowest, double largest);

#endif
