/* trace.h: the trace events of a run, as JSON lines in the model's order (time, node, token, stage, kind). */
#ifndef KB_TRACE_H
#define KB_TRACE_H

#include "sim/observer.h"

extern struct observer trace_observer;

/* Opens the file of the trace ("-": standard output), and watches the run from now on. */
void trace_open(const char *path);

/* Ends the trace, if there is one: the file appears under its name. */
void trace_close(void);

#endif
