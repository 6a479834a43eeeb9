/* usage.h: `--stats`: what each node, link, memory channel and engine served, how long it was busy and was waited for. */
#ifndef KB_USAGE_H
#define KB_USAGE_H

#include "sim/observer.h"

extern struct observer usage_observer;

/* Opens the file ("-": standard output), and watches the run from now on. */
void usage_open(const char *path);

/* Writes the file, if it was opened, and completes it. `end_ps` is the end of the run. */
void usage_close(uint64_t end_ps);

#endif
