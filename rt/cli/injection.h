/* injection.h: --inject: repeats the data pass with defects, one at a time, and counts those that the verification finds.
 *
 * Where a data pass begins, processes are forked that go on from there: one without a defect, which shows what the run
 * has and what its results are, then one for each defect. So the time before the first data pass is simulated once, and a
 * defect meets the references and expectations of the bench as they are. */
#ifndef KB_INJECTION_H
#define KB_INJECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/json.h"

/* How many defects; 0: none, and nothing of this is done. Set by the option --inject; a wrong number is a usage error. */
extern uint64_t injection_count;
void injection_option(const char *text);

/* Before the run. */
void injection_begin(void);

/* After the run, with its exit status: a process that was forked ends here. */
void injection_run_ended(int status);

void injection_print(FILE *out);
void injection_write(struct json *json);                /* "inject" into an open object, if there are defects */

#endif
