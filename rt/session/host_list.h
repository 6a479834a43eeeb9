/* host_list.h: the host of a command stream, which takes its steps one after the other.
 *
 * The host acts in place: in the event that completes what it waited for. After a request that did not end well it submits
 * nothing more and waits for what is in flight. */
#ifndef KB_HOST_LIST_H
#define KB_HOST_LIST_H

#include "stream.h"

struct failure;
struct host_list;

/* The host of a stream. `position` orders delays and timeouts of one instant: those of this host have the numbers after
 * it. */
struct host_list *host_list_new(const struct command_stream *stream, uint64_t position, void (*ended)(void *owner), void *owner);

/* Begins with its steps, in this instant. Calls ended(owner) in the event in which the last request is complete, which may
 * be during this call. */
void host_list_begin(struct host_list *list);

/* Records the launches that are left, after `ended`, as skipped. Returns whether all requests have ended well. */
bool host_list_end(struct host_list *list);

/* When the last request so far was complete; 0 if none was. */
uint64_t host_list_end_ps(const struct host_list *list);

/* The first failure that a request of it has met; NULL: none has. */
const struct failure *host_list_failure(const struct host_list *list);

/* The owner that it was made with. */
void *host_list_owner(const struct host_list *list);

/* The host that has submitted a request; NULL: another host has. */
struct fanout;
const struct host_list *host_list_of(const struct fanout *fanout);

#endif
