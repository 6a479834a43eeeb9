/* nsga2.h: NSGA-II: K. Deb, A. Pratap, S. Agarwal and T. Meyarivan, "A fast and elitist multiobjective genetic algorithm:
 * NSGA-II", IEEE Trans. Evolutionary Computation 6 (2002), on a lattice. */
#ifndef GEN_SEARCH_NSGA2_H
#define GEN_SEARCH_NSGA2_H

#include "method_kind.h"

extern const struct method_kind method_nsga2;

#endif
