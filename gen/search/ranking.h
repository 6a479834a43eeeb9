/* ranking.h: an order of evaluated points: constraint domination (Deb, 2000), non-dominated fronts, and within a front the
 * crowding distance (Deb, Pratap, Agarwal and Meyarivan, "NSGA-II", 2002). */
#ifndef GEN_SEARCH_RANKING_H
#define GEN_SEARCH_RANKING_H

#include <stddef.h>
#include <stdint.h>

#include "method.h"

#define RANK_FAILED UINT32_MAX

struct ranked {
    uint32_t violated;                                  /* conditions that are not met; RANK_FAILED: it failed */
    uint32_t front;                                     /* 0: no other point is better */
    double crowding;                                    /* larger: fewer points are near; infinite at the ends of a front */
    const double *objectives;                           /* less is better; as many as given below; NULL if violated is not 0 */
};

/* An evaluation to be ranked. Copies its objectives to `objectives`. One that is not a number counts as failed. */
struct ranked ranked_of(const struct evaluation *evaluation, double *objectives, size_t objective_count);

/* Computes front and crowding of each point, and the order of all points, the best one first: `order` gets their indices.
 * Equal points stay in the order of their indices. */
void rank(struct ranked *points, size_t count, size_t objective_count, uint32_t *order);

#endif
