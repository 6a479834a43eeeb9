/* profile.h: `--profile`: where the host's time went, by kind of event and by phase. */
#ifndef KB_PROFILE_H
#define KB_PROFILE_H

#include "common/json.h"

extern bool profile_on;
extern struct observer profile_observer;

/* From now on. Costs some ten nanoseconds an event. */
void profile_start(void);

/* A table on standard error, the longest first; its last line says what the profile itself took, about. */
void profile_print(void);

/* "profile" into an open object, as it stands: {what, event, count, ns} of each; `event` tells kinds of events, whose
 * counts add up to the events fired. Nothing, while it is off. */
void profile_write(struct json *json);

#endif
