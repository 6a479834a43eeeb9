/* simulation.h: one simulation of the selected bench, with its parameters as they are. */
#ifndef KB_SIMULATION_H
#define KB_SIMULATION_H

#include <sys/types.h>

#include "report/summary.h"

/* Catches what kernels may do to the process: traps, and calls of exit(). Call it once, before output files are opened:
 * so their removal at exit comes first. */
void simulation_prepare(void);

/* From now on each run is a point of a sweep: whatever would end the program ends the run, and is its "error". */
void simulation_in_points(void);

/* Simulates, and does the data pass; for the first time, or after simulator_reset. `began` is when the host began, in
 * seconds of clock_seconds. Returns the exit status: good if all ended well and all that was checked is right. */
int simulation_run(double began, struct host_times *times);

/* The exit status of the last run. */
int simulation_status(void);

/* What has ended the last run before its time, or NULL. */
const char *simulation_error(void);

/* Forks a process which goes on, in silence; in a run that is under way, or between two. It ends with this process. As
 * fork(). */
pid_t simulation_fork(void);

/* Writes the result into an open object; `times` is its struct host_times. The last key is "status": a result without it
 * is not complete. */
void simulation_write(struct json *json, void *times);

/* The end of a result: "interrupted" and "ended_by" if the run was ended from outside, and "status". */
void simulation_write_end(struct json *json, int status);

/* The last lines of a summary. */
void simulation_print_end(FILE *out, int status);

#endif
