/* trace.h: the trace events of a run, as JSON lines in the model's order (time, node, token, stage, kind). */
#ifndef KB_TRACE_H
#define KB_TRACE_H

#include "sim/observer.h"

extern struct observer trace_observer;

/* Begins a trace into a file ("-": standard output). */
void trace_open(const char *path);

/* Ends the trace; only now the file appears under its name. */
void trace_close(void);

#endif
