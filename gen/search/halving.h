/* halving.h: successive halving: K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and hyperparameter
 * optimization", 2016.
 *
 * One axis is the fidelity: the size of a problem, say. Points are evaluated at its first level, and the best one of each
 * `keep` at the next level as well, and so on to the last level, where one is left at least. */
#ifndef GEN_SEARCH_HALVING_H
#define GEN_SEARCH_HALVING_H

#include "method_kind.h"

extern const struct method_kind method_halving;

/* Points of a rung, if the first one has n. */
uint64_t halving_rung(uint64_t n, uint64_t keep, uint64_t rung);

/* The largest n for which all rungs together have at most `points` points; 0 if even n = 1 has more. */
uint64_t halving_points(uint64_t points, uint64_t keep, uint64_t rungs);

#endif
