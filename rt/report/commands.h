/* commands.h: what results say of commands, beyond their lives.
 *
 * A command goes when it is complete; a run may have very many. What its row of the JSON needs is kept here, a few
 * bytes each, beyond a bound in a temporary file; and only if there will be such rows. */
#ifndef KB_FINISHED_H
#define KB_FINISHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tables.h"

struct command;

struct finished {
    uint64_t submitted_ps;
    uint64_t complete_ps;                               /* NOT_COMPLETE: it never was */
    uint8_t kind;
};

#define NOT_COMPLETE UINT64_MAX

/* The rows of one kernel on one PE, by number. All 0 at first. */
struct finished_rows {
    struct finished_chunk *chunk;
    uint32_t chunks;
};

/* Whether rows are kept. Before the start. */
extern bool finished_on;

/* Operations of the gemms that are complete, by dtype. */
extern double finished_work[DTYPES];

/* The next command of a kernel is submitted; and one of them is complete. */
void finished_submitted(struct finished_rows *rows, const struct command *command);
void finished_completed(struct finished_rows *rows, const struct command *command);

struct finished finished_row(const struct finished_rows *rows, uint32_t number);

/* There are no rows, and no file. */
void finished_reset(void);

#endif
