/* timeline.h: a run as a trace for Perfetto: what each part of the machine did, and when.
 *
 * Tracks stand as the machine does: host, SIP, cube, PE; below a PE its kernels with their calls, its commands, its
 * servers and its rings; below a cube its memories and links. Arrows lead from a command to its stages and to its
 * completion, from a send to the receive, from a launch to its kernels and to the answer. */
#ifndef KB_TIMELINE_H
#define KB_TIMELINE_H

#include <stdint.h>

#include "sim/observer.h"

/* Opens the file before the run. `title` names the trace. */
void timeline_open(const char *path, const char *title);

/* Ends what is under way at end_ps and completes the file. Says on standard error what the window leaves out. */
void timeline_close(uint64_t end_ps);

/* The track of the critical path, the first of all, for who knows the path; 0: there is no timeline. Its slices are written
 * between the end of the run and timeline_close. */
uint32_t timeline_path_track(void);

/* The second one takes over when the timeline has all the slices that it may have. */
extern struct observer timeline_observer, timeline_end_observer;

#endif
