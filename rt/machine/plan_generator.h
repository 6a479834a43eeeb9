/* plan_generator.h: plans that a user's generator makes (kb/plan.h). */
#ifndef KB_PLAN_GENERATOR_H
#define KB_PLAN_GENERATOR_H

#include "kb/plan.h"
#include "tiling.h"

/* Returns the generator that this simulator was linked with, or NULL if the built-in plan is used. */
const struct kb_plan *plan_generator(void);

/* Asks the generator for all tiles of a composite, and checks them. Returns NULL and the tiles, which are valid until the
 * next call, or what is wrong with them. The position of a tile in the grid is that of its first element. */
const char *plan_generate(const struct kb_plan *plan, const struct command *command, const struct tile **tiles,
                          uint64_t *count);

#endif
