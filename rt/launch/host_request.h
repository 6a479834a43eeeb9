/* host_request.h: what the host asks of the machine besides launches: writes and reads of memory, maps and unmaps.
 *
 * A host program calls these, and is suspended until the answer is there. */
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
    uint64_t submitted_ps, done_ps;
    uint64_t xfer_ps;                                   /* the largest drain of the messages between m_cpu and memory */
    struct failure failure;                             /* of the lowest rank */
    struct fanout fanout;
    struct memory_leaf *leaves;                         /* cubes by rank, within a cube in the order given */
    struct failure *failures;                           /* per leaf; only those of an m_cpu's first leaf are set */
    struct memory_request *next;                        /* in the order of submission */
};

/* Runs it. Returns false if it failed. The SIP and the cube of each address must exist. */
bool memory_request_run(struct memory_request *request);

/* All memory requests of this run, in the order of submission. */
extern struct memory_request *memory_requests;

/* Maps `pages` pages from va on, a multiple of the page size, to the bytes from addresses[i] on, on PE pes[i], in the
 * order of ranks. Unmaps them if addresses is NULL. */
void map_request_run(const uint32_t *pes, const uint64_t *addresses, uint32_t count, uint64_t va, uint64_t pages);

/* Forgets all requests. */
void host_requests_reset(void);

extern const struct handler host_request_handlers[];

#endif
