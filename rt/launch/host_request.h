/* host_request.h: what else the host asks of the machine: memory written and read, pages mapped and unmapped.
 *
 * All of these are called on the host's coroutine, and wait for the answer. */
#ifndef KB_HOST_REQUEST_H
#define KB_HOST_REQUEST_H

#include "fanout.h"
#include "kernel.h"

/* A write or read of some bytes at each of several physical addresses. */
struct memory_request {
    bool writes;
    const uint64_t *addresses;
    uint32_t count;
    uint64_t bytes;                                     /* at each of them */
    uint64_t submitted_ps, done_ps;
    uint64_t xfer_ps;                                   /* the largest drain of the messages between m_cpu and memory */
    struct failure failure;                             /* of the lowest rank */
    struct fanout fanout;
    struct memory_leaf *leaves;                         /* in rank order of cubes, within a cube in the order given */
    struct failure *failures;                           /* per leaf: only those of an m_cpu's first leaf are set */
    struct memory_request *next;                        /* in order of submission */
};

/* Runs it; true: it ended well. Sip and cube of each address must exist. */
bool memory_request_run(struct memory_request *request);

/* All memory requests of this run of the simulator, in order of submission. */
extern struct memory_request *memory_requests;
void memory_requests_reset(void);

/* Maps `pages` pages from va on (a multiple of the page) to addresses from addresses[i] on, on PE pes[i], in rank
 * order; or unmaps them (addresses is NULL). */
void map_request_run(const uint32_t *pes, const uint64_t *addresses, uint32_t count, uint64_t va, uint64_t pages);

#endif
