/* expression.h: derived values, conditions and objectives of a space: expressions of SQLite over the facts of a point
 * (facts.h). */
#ifndef GEN_SEARCH_EXPRESSION_H
#define GEN_SEARCH_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "value.h"

struct space;
struct facts;
struct facts_of_point;

struct expressions;

/* Compiles the expressions of a space and resolves its objectives. Reports all errors: unknown names with the nearest
 * one, cycles, what expressions may not do. */
struct expressions *expressions_begin(const struct space *space, const struct facts *facts);
void expressions_end(struct expressions *expressions);

/* The metrics that expressions or objectives name, each once: indices into the facts. */
const size_t *expressions_metrics(const struct expressions *expressions, size_t *count);

/* What the expressions say of a point. Both arrays are as long as the space's; `derived` is NULL and `met` true where an
 * expression is still to be computed. */
struct judgement {
    struct sql_value *derived;
    bool *met;                                          /* by condition */
    double *objectives;                                 /* as the space has them, or negated: less is better */
    unsigned violated;                                  /* conditions that are not met */
    const char *why;                                    /* the first of them: "where: area_mm2 <= 800", or why an expression has
                                                           no value: "derive: area_mm2: integer overflow"; NULL: none */
    bool failed;                                        /* an expression cannot be computed, or an objective is no number */
};

/* Computes the expressions that need no metrics. The judgement is in the arena. */
struct judgement expressions_before(struct expressions *expressions, const struct facts_of_point *point);

/* Computes the others: point->metrics must be there. */
void expressions_after(struct expressions *expressions, const struct facts_of_point *point, struct judgement *judgement);

#endif
