/* commands.h: what results say of commands, beyond their lives.
 *
 * A command goes when it is complete; a run may have very many. What its row of the JSON needs is kept here, a few
 * bytes each, beyond a bound in a temporary file; and only if there will be such rows. */
#ifndef KB_FINISHED_H
#define KB_FINISHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tables.h"
#include "sim/observer.h"

struct finished {
    uint64_t submitted_ps;
    uint64_t complete_ps;                               /* NOT_COMPLETE: it never was */
    uint8_t kind;
};

#define NOT_COMPLETE UINT64_MAX

/* Watches all runs of benches and streams. */
extern struct observer commands_observer;

/* Whether rows are kept. Before the start. */
extern bool finished_on;

/* Operations of the gemms that are complete, by dtype. */
extern double finished_work[DTYPES];

/* The command of a number of a kernel. */
struct finished finished_row(const struct tl *tl, uint32_t number);

/* There are no rows, and no file. */
void finished_reset(void);

#endif
