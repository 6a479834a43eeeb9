/* trace.h: the trace events of a run, as JSON lines in the model's order (time, node, token, stage, kind); and on request
 * those of all components: of one time these come first, in the order in which they happen. */
#ifndef KB_TRACE_H
#define KB_TRACE_H

#include "sim/observer.h"

extern struct observer trace_observer, components_observer;

/* Opens the file of the trace ("-": standard output), and watches the run from now on; `all`: all components. */
void trace_open(const char *path, bool all);

/* Ends the trace, if there is one: the file appears under its name. */
void trace_close(void);

/* Hands each event, in the order of a trace, to a function instead of a file: its time, its name, which stays, and its line,
 * without the end, during the call. NULL: no more. */
struct trace_visitor {
    void (*event)(void *user, uint64_t t_ps, const char *name, const char *line);
    void *user;
};
void trace_visit(struct trace_visitor visitor);

#endif
