/* sobol.h: Sobol's sequence: points of low discrepancy. The first 2^n points have one point in each of 2^n equal parts of
 * an axis, and any pair of keys is covered evenly as well. */
#ifndef GEN_SEARCH_SOBOL_H
#define GEN_SEARCH_SOBOL_H

#include "method_kind.h"

extern const struct method_kind method_sobol;

#endif
