/* result.h: what a run gives: launches, PEs and commands as JSON. */
#ifndef KB_RESULT_H
#define KB_RESULT_H

#include "common/json.h"
#include "base/output.h"

/* Whether every memory request and launch ended well. */
bool result_good(void);

/* Writes "system", "end_ps", "memory" where there was any, and "launches" into an open object. */
void result_write(struct json *json);

/* Writes one object into an output that was opened before the run, and completes it. `fill` gets the open object. */
void json_write_output(struct output *output, void (*fill)(struct json *, void *), void *arg);

/* Writes one object as a line, and flushes it; a write that fails is an error of the host system, status 3. */
void json_write_line(const struct output *output, void (*fill)(struct json *, void *), void *arg);

/* The room's reset (cli/reset.c): no rows of commands, no file of them. */
void report_reset(void);

#endif
