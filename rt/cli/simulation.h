/* simulation.h: one simulation of the selected bench, with its parameters as they are. */
#ifndef KB_SIMULATION_H
#define KB_SIMULATION_H

#include "report/summary.h"

/* Catches what kernels may do to the process: traps, and calls of exit(). Call it once, before output files are opened:
 * so their removal at exit comes first. */
void simulation_prepare(void);

/* Simulates, and does the data pass; for the first time, or after simulator_reset. `began` is when the host began, in
 * seconds of clock_seconds. Returns whether all ended well and all that was checked is right. */
bool simulation_run(double began, struct host_times *times);

/* Writes the result into an open object; `times` is its struct host_times. */
void simulation_write(struct json *json, void *times);

#endif
