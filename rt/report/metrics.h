/* metrics.h: the short answer of a point: a flat object of integers (metrics.def), for programs that run many points. */
#ifndef KB_METRICS_H
#define KB_METRICS_H

#include "common/json.h"

/* Writes all metrics into an open object. */
void metrics_write(struct json *json, uint64_t end_ps);

/* Writes "max_err" if data were compared, "status", how the run has ended (rt/kb/endings.def) and why. `error` is the last
 * message of what has ended it before its time; NULL: nothing has. */
void metrics_write_end(struct json *json, int status, const char *error);

#endif
