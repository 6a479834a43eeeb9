/* launches.h: launches that a bench makes. */
#ifndef KB_LAUNCHES_H
#define KB_LAUNCHES_H

#include "kb/host.h"
#include "launch/launch.h"

/* A kernel with a copy of its arguments, for launch_submit. The list of PEs stays the caller's. */
struct launch_part launches_part(const struct kb_part *part);

/* Waits for all launches that the bench has not waited for; ends the run if one does not end well. */
void launches_wait(void);

#endif
