/* host_request.h: requests of the host other than launches: writes and reads of memory, maps and unmaps.
 *
 * Each is submitted in this instant; a host program can then wait for the answer (fanout_wait), or be told of it
 * (fanout.ended). */
#ifndef KB_HOST_REQUEST_H
#define KB_HOST_REQUEST_H

#include "fanout.h"
#include "kernel.h"

/* A write or a read of the same number of bytes at each of several physical addresses. */
struct memory_request {
    bool writes;
    const uint64_t *addresses;
    uint32_t count;
    uint64_t bytes;                                     /* at each of them */
    uint64_t submitted_ps, done_ps;                     /* done_ps: valid once fanout.answered is set */
    uint64_t xfer_ps;                                   /* longest drain time of a message between m_cpu and memory */
    struct failure failure;                             /* of the lowest rank */
    struct fanout fanout;
    struct memory_leaf *leaves;                         /* cubes by rank, within a cube in the order given */
    struct failure *failures;                           /* per leaf; only those of an m_cpu's first leaf are set */
    struct memory_request *next;                        /* in the order of submission */
};

/* Submits a request of which the first fields are set, up to bytes. The SIP and the cube of each address must exist. */
void memory_request_submit(struct memory_request *request);

/* Suspends the host program that acts until the request is complete. Returns false if it failed. */
bool memory_request_wait(struct memory_request *request);

/* All memory requests of this run, in the order of submission. */
extern struct memory_request *memory_requests;

/* Maps `pages` pages from va on, a multiple of the page size, to the bytes from addresses[i] on, on PE pes[i], in the
 * order of ranks. Unmaps them if addresses is NULL. There must be a PE. */
struct fanout *map_request_submit(const uint32_t *pes, const uint64_t *addresses, uint32_t count, uint64_t va,
                                  uint64_t pages);

/* A delay of the host: calls ended(delay) in the event in which it ends. */
struct host_delay {
    struct event event;
    void (*ended)(struct host_delay *delay);
};

/* `position` in what the host does orders its delays and timeouts of one instant. */
void host_delay_begin(struct host_delay *delay, uint64_t ps, uint64_t position,
                      void (*ended)(struct host_delay *delay));

/* Does nothing if the delay has ended, or has not begun. */
void host_delay_cancel(struct host_delay *delay);

/* Forgets all requests. */
void host_requests_reset(void);

extern const struct handler host_request_handlers[];

#endif
