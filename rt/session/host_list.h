/* host_list.h: the host of a replayed stream, which takes its steps one after the other. */
#ifndef KB_HOST_LIST_H
#define KB_HOST_LIST_H

#include "stream.h"

/* The body of the host program (sim_run) of a stream. The host acts in place: in the event that completes what it waited
 * for. After a request that did not end well it submits nothing more, skips the launches that are left, and waits for
 * what is in flight. */
void host_list_run(void *stream);

/* When the last request was complete: the end of the run. 0 if there was none. */
uint64_t host_list_end_ps(void);

#endif
