/* measure.h: the host library: how a bench compares a launch with the machine: an order of PEs for rings, the least
 * time that links, memories and engines need for some work, and figures for the summary. No call takes simulated
 * time. Kernels may call kb_memory_ps, kb_gemm_ps, kb_gemm_tile_ps, kb_gemm_k_step, kb_math_ps and kb_op_cost too. */
#ifndef KB_MEASURE_H
#define KB_MEASURE_H

#include <kb/host.h>

/* An order of the PEs of a set: the i-th PE is the one at position[i] of the set, as tl_pe and tl_send count in a
 * launch on that set. It lives until the end of the run and can be an argument of a kernel. */
struct kb_order {
    const uint32_t *position;
    uint32_t count;
};

/* The order along a snake, in which neighbours are near: SIP by SIP, row by row of cubes, every other row backwards,
 * and within a cube along the columns or rows of its routers, every other one backwards. Of these ways through a cube
 * it takes the one for which a message from each PE to the next loads the busiest link least. */
struct kb_order kb_snake(struct kb_pes pes);

/* The order that begins with a position, and goes round at its end; the same order if that is not in it. */
struct kb_order kb_order_from(struct kb_order order, uint32_t position);

/* ---- traffic: messages between PEs, as tl_send, tl_multicast and tl_recv move them over the fabric */

typedef struct traffic *kb_traffic;

/* No messages yet. */
kb_traffic kb_traffic_new(void);

/* Adds messages of `bytes` bytes in all from one PE to another, which are named by their numbers over the machine. */
void kb_traffic_add(kb_traffic traffic, uint32_t from, uint32_t to, uint64_t bytes);

/* The same for messages from one PE to `count` others at once, as tl_multicast sends them: each link of their ways carries
 * the bytes once. */
void kb_traffic_multicast(kb_traffic traffic, uint32_t from, const uint32_t *to, uint32_t count, uint64_t bytes);

/* How long the busiest link is busy with the traffic, in ps: no algorithm with this traffic takes less time. */
uint64_t kb_traffic_ps(kb_traffic traffic);

/* How long one memory, a PE's HBM slice, its TCM or its cube's sram, is busy at its full bandwidth with reading and
 * writing these bytes, in ps. */
uint64_t kb_memory_ps(enum kb_space space, uint64_t read_bytes, uint64_t write_bytes);

/* The time in ps from the departure of a message at one PE until its first byte can be at the other, on idle links. */
uint64_t kb_latency_ps(uint32_t from, uint32_t to);

/* How long a PE's pe_gemm is busy with `macs` multiply-adds of a dtype when its array is full, and its pe_math with
 * `elements` elements of an op of cost 1 in the lanes of a dtype, in ps. 0 if the engine lacks the dtype. */
uint64_t kb_gemm_ps(enum kb_dtype dtype, uint64_t macs);
uint64_t kb_math_ps(enum kb_dtype dtype, uint64_t elements);

/* How long pe_gemm is busy with one tile of m x k x n, with its fill and the parts of the array that are idle, in ps; and
 * how many elements along k it multiplies in a cycle. 0 if it lacks the dtype. */
uint64_t kb_gemm_tile_ps(enum kb_dtype dtype, uint64_t m, uint64_t k, uint64_t n);
uint64_t kb_gemm_k_step(enum kb_dtype dtype);

/* The cost of an op on this machine, in ops of cost 1, such as 4 for "exp". 0 if pe_math lacks the op. */
uint64_t kb_op_cost(const char *op);

/* ---- rooflines: two bounds of a launch, and how near it came to them */

enum { KB_OPERANDS = 16 };                              /* most tensors of a problem that are read, or written */

/* What a problem requires of any algorithm: each element of the tensors `reads` read once, of copies those of one copy;
 * each element of `writes` written once, in every copy; `read_bytes` bytes of kb_main_memory beside those, of tensors
 * that are read in part; multiply-adds; elements of ops, times the op's cost, in the lanes of math_dtype (math) and in
 * those of f32 (math_f32). Members that are not set are 0; a NULL among the tensors is left out. */
struct kb_problem {
    enum kb_dtype gemm_dtype, math_dtype;
    uint64_t macs, math, math_f32, read_bytes;
    kb_tensor reads[KB_OPERANDS], writes[KB_OPERANDS];
};

/* What an algorithm does where that is more than the problem requires, of all PEs together: multiply-adds; ops, as in
 * the problem; bytes that it reads and writes in the HBM slices, which count for the srams where they are
 * kb_main_memory, and in the cubes' srams; messages; the time of the busiest memory (memory_ps) and of the longest chain
 * of messages that wait for one another (latency_ps). The problem's figure holds for macs that are 0, for ops if both
 * math and math_f32 are, and for bytes if all four of them are. */
struct kb_work {
    uint64_t macs, math, math_f32;
    uint64_t hbm_read, hbm_written, sram_read, sram_written;
    kb_traffic traffic;
    uint64_t memory_ps, latency_ps;
};

/* Adds two bounds of the time of a launch that has ended, from its submission until the host has the last answer, to
 * the summary and to "bounds" in the result:
 *   problem    of any algorithm: all PEs of the machine share the work equally, every memory of the kinds that the
 *              tensors lie in works at its full bandwidth, wherever in these memories they lie
 *   algorithm  of this one: the PEs of the launch share the work, and the bytes are those that the algorithm moves
 * Both consist of the least time of a launch and the longest of these, which the figures show of the algorithm:
 *   array_bound    the time of pe_gemm
 *   math_bound     that of pe_math
 *   accel_bound    for work of both engines: the sum of their times where they share a slot (shared_resource), else the
 *                  longer one
 *   memory_bound   the time of the HBM slices, the srams or the TCMs, of that kind which needs the longest
 *   link_bound     the time of the links between memories, routers and PEs, which every byte crosses wherever the
 *                  tensors lie; of the algorithm also that of the link that is busiest with messages
 *   latency_bound  the time of one command that moves a byte; of the algorithm also that of the chain of messages
 * A bound that is 0 is left out. The figure `time` is that of the kernels (kb_kernels_ps).
 *     kb_roofline(launch, &(struct kb_problem){.gemm_dtype = KB_f16, .macs = m * k * n, .reads = {a, b}, .writes = {c}},
 *                 NULL); */
#define kb_roofline(launch, ...) kb_roofline_at(launch, __FILE__, __LINE__, __VA_ARGS__)

void kb_roofline_at(kb_future launch, const char *file, uint32_t line, const struct kb_problem *problem,
                    const struct kb_work *work);

/* ---- figures: lines of the summary and "figures" in the result, in the order of the calls */

enum kb_unit { KB_PS, KB_BYTES_PER_S, KB_PERMILLE };

/* Adds a figure. In the result its name gets the unit as a suffix: _ps, _bytes_per_s, _permille. */
void kb_figure(const char *name, uint64_t value, enum kb_unit unit);

/* The time in ps from the start of a launch's kernels, which is the same for all, to the end of the last one. 0 while a
 * kernel still runs. */
#define kb_kernels_ps(future) kb_kernels_ps_at(future, __FILE__, __LINE__)

uint64_t kb_kernels_ps_at(kb_future future, const char *file, uint32_t line);

#endif
