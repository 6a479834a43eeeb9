/* best.h: the best points of a search: its Pareto front, or with one objective the first ones. */
#ifndef GEN_SEARCH_BEST_H
#define GEN_SEARCH_BEST_H

#include "rows.h"

/* Points of the search that have run. */
struct census {
    size_t points;
    size_t failed;                                      /* of them */
    size_t partial;                                     /* that ended well, below the last fidelity of successive halving */
    size_t infeasible;                                  /* that ended well; a condition of the search refuses them */
    size_t without;                                     /* that are left, with an objective that is no number */
};

struct best {
    struct census census;
    struct row *rows;                                   /* in the order of the objectives, then by trial; of malloc */
    size_t count;
};

/* Requires: an objective. Finds at most `most` rows. Points with equal objectives are a row each with `ties`, else one row,
 * that of the first trial. */
struct best best_points(const struct stored *stored, const struct stored_points *points, bool ties, uint64_t most);

#endif
