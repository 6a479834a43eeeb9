/* sweep.h: `SIM run BENCH --points FILE`, and of `SIM replay`: many runs in one process. */
#ifndef KB_SWEEP_H
#define KB_SWEEP_H

#include <stdbool.h>

/* Each answer is short: the metrics alone (report/metrics.h). */
extern bool sweep_metrics;

struct source;

/* Runs the selected bench, or a stream if it is not NULL, for each point, a line of JSON with parameters, and answers each
 * with a line of JSON, in that order, flushed. A point of a stream has --set alone; its answers are metrics. "-" is
 * standard input or output. Checks all lines of a file before the first run; lines of standard input as they arrive.
 * Returns the exit status: 0 good, 1 a run failed, 2 a line was wrong. Misuse by a bench ends the sweep: what was answered
 * on standard output stays, a file does not appear. */
int sweep_run(const struct source *stream, const char *from, const char *to);

#endif
