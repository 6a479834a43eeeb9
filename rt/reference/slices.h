/* slices.h: products in f64 of operands in f32: slices of k are multiplied by sgemm, in half of the time of dgemm, and added up. */
#ifndef KB_SLICES_H
#define KB_SLICES_H

#include <stdbool.h>
#include <stdint.h>

#include "kb/arith.h"

/* Terms that are added up in f32: of floats, and of i8, whose sums are exact: 2^10 * 2^7 * 2^7 = 2^24. */
enum { SLICE = 128, EXACT_SLICE = 1024 };

/* The roundings that slices of floats add to those of a sum of `terms` terms, as accumulation_power (error.h) counts them. */
static inline double slices_roundings(uint64_t terms)
{
    return (double)kb_min(SLICE, terms);
}

/* Sets c, m x n and without gaps, to a b, or to a b^T if b has its rows along n. Returns false if a sum is not finite, as one beyond
 * the range of f32. */
bool slices_multiply(uint64_t m, uint64_t n, uint64_t k, uint64_t slice, const float *a, uint64_t lda, const float *b, uint64_t ldb,
                     bool transposed, double *c);

#endif
