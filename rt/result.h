/* result.h: what a run gives: launches, PEs and commands as JSON. */
#ifndef KB_RESULT_H
#define KB_RESULT_H

#include "json.h"

/* Writes "system", "end_ps" and "launches" into an open object. */
void result_write(struct json *json);

/* Writes a whole file through a temporary one; "-" is standard output. `fill` gets the open object. */
void json_write_file(const char *path, void (*fill)(struct json *, void *), void *arg);

#endif
