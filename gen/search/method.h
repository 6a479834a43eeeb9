/* method.h: which points a search evaluates, in which order.
 *
 * A method knows a space as a product of finite axes, and a point as its vector of levels, one for each axis; it knows
 * nothing of machines. Points have numbers from 0 on. The points of grid, list, random, lhs and sobol are known from the
 * start, and each is computed alone. nsga2 and halving go by batches: the points of a batch are known when all
 * evaluations of the batch before it were told.
 *
 *     struct method *method = method_begin(&space);
 *     for (uint64_t number = 0; number < budget; number++) {
 *         while (number >= method_known(method))
 *             ...                                          evaluate what is under way, tell it; if nothing is: the search ends
 *         method_point(method, number, levels);
 *         ...                                              evaluate it; later method_tell(method, number, &evaluation)
 *     }
 *
 * Points depend on the space, the seed and the evaluations only, whatever the order in which those of a batch are told.
 * So a search that goes on where it was tells the method again what the store has, from number 0 on. */
#ifndef GEN_SEARCH_METHOD_H
#define GEN_SEARCH_METHOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "space.h"

struct method_axis {
    uint64_t count;                                     /* levels: 1 to 2^32 */
    bool ordered;                                       /* neighbouring levels are alike */
};

struct method_space {
    const struct method_axis *axes;
    size_t axis_count, objective_count;
    uint64_t seed;
    uint64_t points;                                    /* of the budget; 0: no limit */
    struct method_choice choice;                        /* its name and options */
    const uint32_t *listed;                             /* of list: the vectors, one after the other */
    uint64_t listed_count;
};

/* What became of a point. Objectives are numbers of which less is better; a point with no objectives has `failed` or
 * conditions that are not met. */
struct evaluation {
    bool failed;                                        /* it is worse than any point that did not */
    unsigned violated;                                  /* conditions that are not met: fewer is better, whatever the objectives */
    const double *objectives;                           /* not read if it failed or violated is not 0 */
};

/* The space of a space file, in the arena; reads the file of list. Reports errors, also those of method_refusal. */
struct method_space *method_space_of(const struct space *space);

/* Why the method cannot search that space: "sobol has directions for 256 keys, and the space has 300". NULL: it can. */
const char *method_refusal(const struct method_space *space);

struct method;

/* Begins a method that is not refused, and is not ask. The space must live as long as the method. */
struct method *method_begin(const struct method_space *space);
void method_end(struct method *method);

/* Points in all, whatever the budget; METHOD_ENDLESS if there is no end, or one beyond 2^64. The number of points of
 * nsga2 is METHOD_ENDLESS until it has asked for each point of the space. */
#define METHOD_ENDLESS UINT64_MAX
uint64_t method_total(const struct method *method);

/* Points with a number below this one can be computed now. */
uint64_t method_known(const struct method *method);

/* The first number of the current batch. Earlier points of nsga2 and halving cannot be computed any more. */
uint64_t method_first(const struct method *method);

/* Computes the levels of a point. */
void method_point(const struct method *method, uint64_t number, uint32_t *levels);

/* Whether a point counts as a result: of halving, only those of the last fidelity. */
bool method_is_result(const struct method *method, const uint32_t *levels);

/* Tells the evaluation of a point of the current batch, each exactly once. The last one begins the next batch. */
void method_tell(struct method *method, uint64_t number, const struct evaluation *evaluation);

#endif
