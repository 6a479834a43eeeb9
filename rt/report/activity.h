/* activity.h: what every part of the machine did at which time: the pictures of a report. */
#ifndef KB_ACTIVITY_H
#define KB_ACTIVITY_H

#include "common/json.h"
#include "sim/observer.h"

extern struct observer activity_observer;

/* Watches the run from now on, and has its totals counted (usage.h). */
void activity_watch(void);

/* Writes "machine" and "activity" into an open object if the run was watched (docs/results.md). `end_ps` is the end of
 * the run. */
void activity_write(struct json *json, uint64_t end_ps);

#endif
