/* plan_generator.h: plans that a user's generator makes (kb/plan.h). */
#ifndef KB_PLAN_GENERATOR_H
#define KB_PLAN_GENERATOR_H

#include "kb/plan.h"
#include "tiling.h"

/* Returns the generator that this simulator was linked with, or NULL if the built-in plan is used. */
const struct kb_plan *plan_generator(void);

struct planned_tile {
    uint64_t id;
    uint64_t i_m, i_k, i_n;                             /* its first element */
    uint64_t m, k, n;                                   /* elements along each edge */
    enum tile_kind kind;
};

/* Asks the generator for all tiles of a composite, and checks them. Returns NULL and the tiles, which are valid until the
 * next call, or what is wrong with them. */
const char *plan_generate(const struct kb_plan *plan, const struct command *command,
                          const struct planned_tile **tiles, uint64_t *count);

#endif
