/* measure.h: what a bench measures a machine by: PEs in an order in which neighbours are near, the time that links,
 * memories and engines need for some work at their best, figures for the summary. None of it takes simulated time. */
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

/* How long a PE's pe_gemm is busy with so many multiply-adds when its array is full, and its pe_math with so many
 * elements of an op of cost 1, by the dtype of the operands and by that which decides the lanes. 0: the engine lacks
 * the dtype. */
uint64_t kb_gemm_ps(enum kb_dtype dtype, uint64_t macs);
uint64_t kb_math_ps(enum kb_dtype dtype, uint64_t elements);

/* What an op costs on this machine, such as 4 for "exp": as many ops of cost 1. 0: pe_math lacks it. */
uint64_t kb_op_cost(const char *op);

/* ---- rooflines */

/* What an algorithm cannot leave out, all PEs together: multiply-adds; elements of simple ops, each as often as the op
 * costs, with the lanes of math_dtype, and beside them those with the lanes of f32; bytes that have to be read and
 * written at least once, in the HBM slices and in the cubes' sram; messages. What is left out is 0. */
struct kb_work {
    enum kb_dtype gemm_dtype, math_dtype;
    uint64_t macs, math, math_f32;
    uint64_t hbm_read, hbm_written, sram_read, sram_written;
    kb_traffic traffic;
};

/* Figures of launches on a set of PEs that took time_ps (kb_kernels_ps): "time"; "array_bound", "math_bound" and
 * "memory_bound", how long the work takes pe_gemm, pe_math and the memories if all of the set, and what is beside it,
 * have an equal share, where that is not 0; of work for both engines "accel_bound", which is the sum of their times
 * where they are one server (shared_resource), else the longer one; "link_bound", how long the messages take the
 * busiest link, where there are any; and "bound_reached", the largest one's part of the time:
 *     kb_roofline(kb_kernels_ps(launch), pes, &(struct kb_work){.gemm_dtype = KB_f16, .macs = m * k * n}); */
void kb_roofline(uint64_t time_ps, struct kb_pes pes, const struct kb_work *work);

/* ---- figures: lines of the summary, and "figures" in the result, in the order of the calls */

enum kb_unit { KB_PS, KB_BYTES_PER_S, KB_PERMILLE };

void kb_figure(const char *name, uint64_t value, enum kb_unit unit);

/* From the start of a launch's kernels, which is the same for all, until the last one's end. 0: one still runs. */
#define kb_kernels_ps(future) kb_kernels_ps_at(future, __FILE__, __LINE__)

uint64_t kb_kernels_ps_at(kb_future future, const char *file, uint32_t line);

#endif
