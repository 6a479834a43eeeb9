/* ledger.h: which simplifications of the model a run has touched, and how much (ledger.def).
 *
 * All figures are known at the end of a run: from statistics and from plans of commands (demand.h). An entry has the most
 * that its simplification can make of the run's time, if that is known. */
#ifndef KB_LEDGER_H
#define KB_LEDGER_H

#include <stdio.h>

#include "common/json.h"

/* Prints the entries that can make 1 % of the run's time or more, and how many others there are; and the longest queue of
 * a link, if --stats or --report has counted queues. `option` writes all of them. */
void ledger_print(FILE *out, const char *option);

/* Writes "ledger" into an open object: all entries; nothing if there are none. It is the same with and without --stats. */
void ledger_write(struct json *json);

#endif
