/* profile.h: `--profile`: the host's time by kind of event and by phase. */
#ifndef KB_PROFILE_H
#define KB_PROFILE_H

#include "common/json.h"

extern bool profile_on;
extern struct observer profile_observer;

/* Starts the profile. It costs about ten nanoseconds per event. */
void profile_start(void);

/* Prints a table on standard error, the longest first. The last line estimates what the profile itself took. */
void profile_print(void);

/* Writes "profile" into an open object, if the profile is on: {what, event, count, ns} of each lap so far. `event` marks
 * kinds of events; their counts add up to the number of events that have fired. */
void profile_write(struct json *json);

#endif
