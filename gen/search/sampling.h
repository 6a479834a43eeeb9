/* sampling.h: the methods whose points depend on nothing but their number. */
#ifndef GEN_SEARCH_SAMPLING_H
#define GEN_SEARCH_SAMPLING_H

#include "method_kind.h"

extern const struct method_kind method_grid, method_list, method_random, method_lhs;

/* Computes point k of a Latin hypercube of n points, n up to 2^32. Each of n equal parts of each axis has one point. */
void lhs_point(const struct method_space *space, uint64_t n, uint64_t k, uint32_t *levels);

#endif
