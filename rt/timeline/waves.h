/* waves.h: a run as waves for GTKWave and the like: engines busy, queue depths, credits, links busy. The format is VCD,
 * with a time unit of 1 ps; what never changes is not in the file. */
#ifndef KB_WAVES_H
#define KB_WAVES_H

#include "sim/observer.h"

/* Opens the file before the run. */
void waves_open(const char *path);

/* Completes the file, at the end of the run. */
void waves_close(uint64_t end_ps);

extern struct observer waves_observer;

#endif
