/* measure.h: what a bench measures a machine by: PEs in an order in which neighbours are near, the time that the links
 * need for some traffic, figures for the summary. None of it takes simulated time. */
#ifndef KB_MEASURE_H
#define KB_MEASURE_H

#include <kb/host.h>

/* The PEs of a set along a snake: position i has the PE at `position[i]` of the set, as tl_pe and tl_send count in a
 * launch on that set. It lives until the end of the run and can be an argument of a kernel. */
struct kb_order {
    const uint32_t *position;
    uint32_t count;
};

/* SIP by SIP; over the cubes of one row by row, every other row backwards; in a cube along the columns or the rows of
 * its routers, every other one backwards: so that a message from each to the next one loads the busiest link least. */
struct kb_order kb_snake(struct kb_pes pes);

/* ---- traffic: messages between PEs, as tl_send and tl_recv move them over the fabric */

typedef struct traffic *kb_traffic;

kb_traffic kb_traffic_new(void);

/* Adds messages of so many bytes in all from one PE to another, by their numbers over the machine. */
void kb_traffic_add(kb_traffic traffic, uint32_t from, uint32_t to, uint64_t bytes);

/* How long the busiest link is busy with it: no algorithm with this traffic takes less time, whatever it overlaps. */
uint64_t kb_traffic_ps(kb_traffic traffic);

/* How long a PE's part of a memory, its HBM slice, its TCM, its cube's sram, is busy with reading and writing so many
 * bytes, at its best. */
uint64_t kb_memory_ps(enum kb_space space, uint64_t read_bytes, uint64_t write_bytes);

/* From the departure of a message at one PE until its first byte can be at the other, when nothing is in its way. */
uint64_t kb_latency_ps(uint32_t from, uint32_t to);

/* ---- figures: lines of the summary, and "figures" in the result, in the order of the calls */

enum kb_unit { KB_PS, KB_BYTES_PER_S, KB_PERMILLE };

void kb_figure(const char *name, uint64_t value, enum kb_unit unit);

/* From the start of a launch's kernels, which is the same for all, until the last one's end. 0: one still runs. */
#define kb_kernels_ps(future) kb_kernels_ps_at(future, __FILE__, __LINE__)

uint64_t kb_kernels_ps_at(kb_future future, const char *file, uint32_t line);

#endif
