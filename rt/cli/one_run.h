/* one_run.h: one run of the bench that was taken, with the values of its parameters as they are. */
#ifndef KB_ONE_RUN_H
#define KB_ONE_RUN_H

#include "report/summary.h"

/* Watches for what kernels may do to the process: traps, and calls of exit(). Once, before output files are opened, so
 * that it acts behind their removal. */
void one_run_prepare(void);

/* Simulates and does the data pass; on the simulator as new, or after simulator_reset. `began` is when the host's work on it
 * began, in seconds of clock_seconds. True: all ended well, and nothing that was checked is wrong. */
bool one_run(double began, struct host_times *times);

/* Its result into an open object; `times` is its struct host_times. */
void one_run_write(struct json *json, void *times);

#endif
