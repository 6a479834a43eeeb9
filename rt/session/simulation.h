/* simulation.h: one simulation of the selected bench, with its parameters as they are. */
#ifndef KB_SIMULATION_H
#define KB_SIMULATION_H

#include <stdbool.h>

#include "launch/watchdog.h"
#include "report/summary.h"

/* Simulates, and does the data pass; for the first time, or after simulator_reset. `began` is when the host began, in
 * seconds of clock_seconds. Returns the exit status: good if all ended well and all that was checked is right. */
int simulation_run(double began, const struct watchdog_limits *limits, struct host_times *times);

/* From now on each run is a point of a sweep: whatever would end the program ends the run, and is its "error". */
void simulation_in_points(void);

/* What has ended the last run before its time, or NULL. */
const char *simulation_error(void);

/* What options of the command line add to a run; nothing at first. */
extern struct simulation_extras {
    void (*pass_done)(void);                            /* after the data pass of a run with an op log */
    void (*write_checks)(struct json *json);            /* into the result: what --inject has found, */
    void (*write_probes)(struct json *json);            /* and what --probe-matrix has */
    double seconds;                                     /* of the host, within the bench, that are no set-up */
} simulation_extras;

/* ---- what the program around the run tells it */

/* Whether this process is in the middle of a run. */
bool simulation_is_under_way(void);

/* This process is a child of one that was in the middle of a run; the run goes on here. */
void simulation_forked(void);

/* The program is to fail with a status: if that is the end of the run alone, does not return to the caller. */
void simulation_fails(int status);

/* The place of progress() (base/progress.h) where a run can be ended. */
void simulation_attend(void);

/* A piece of the messages: the last line is kept for the result. */
void simulation_said(const char *text);

/* Ends the run as a fault of the bench, from the bench's coroutine. */
void simulation_bench_fault(const char *text);

/* ---- results */

/* Writes the result into an open object; `times` is its struct host_times. The last key is "status": a result without it
 * is not complete. */
void simulation_write(struct json *json, void *times);

/* The last lines of a summary. */
void simulation_print_end(FILE *out, int status);

#endif
