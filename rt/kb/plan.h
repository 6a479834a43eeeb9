/* plan.h: plan generators of users: into which tiles a composite is cut, and in which order they are fed.
 *
 * KB_PLAN(name) { ... } in a file of --impl or -k defines the body of
 *     static struct kb_plan_tile name(const struct kb_plan_request *ask, uint64_t number)
 * which replaces the built-in order, loops over m, n and k, for all composites of the machine. It returns tile `number`
 * of the plan, from 0 on, and a tile that is all 0 after the last one. It decides times, never data, and is pure: equal
 * arguments give equal tiles, so it uses no clock, no random numbers and no static variables.
 *
 * The tiles of a plan cover all of m x k x n once. Those with the same rows and columns of the result form an output tile
 * and accumulate: their parts of k follow one another from 0 on, in the order of the plan; other tiles may come between
 * them. The last of them stores. With an epilogue of scope k_tile, the parts of k are those that the kernel asks for.
 * Stages follow from the tile, as in the built-in plan (docs/model.md, Plans). A plan that breaks a rule ends the kernel
 * with KERNEL_ERROR, and a tile whose buffers do not fit with TILE_TOO_LARGE; the message names the file and the line. */
#ifndef KB_PLAN_H
#define KB_PLAN_H

#include <kb/tl.h>

struct kb_plan_request {
    bool is_math;                                       /* a math composite; else a gemm */
    enum kb_dtype dtype, out_dtype;                     /* of the operands; of the result */
    bool pinned_a, pinned_b;                            /* the operand is in the TCM: no DMA, no buffer */
    uint64_t m, k, n;                                   /* math: k is 1 */
    uint64_t tile_m, tile_k, tile_n;                    /* the tile that the kernel asks for; math: tile_k is 1 */
    uint64_t buffer_bytes;                              /* the region of the TCM for the buffers of all tiles under way */
};

/* Elements [m0, m0 + m) x [k0, k0 + k) x [n0, n0 + n). Math: k0 is 0, k is 1. */
struct kb_plan_tile {
    uint64_t m0, k0, n0, m, k, n;
};

struct kb_plan {
    const char *name, *file;
    uint32_t line;
    struct kb_plan_tile (*tile)(const struct kb_plan_request *ask, uint64_t number);
};

#define KB_PLAN(name)                                                                                                  \
    static struct kb_plan_tile name(const struct kb_plan_request *ask, uint64_t number);                               \
    static const struct kb_plan name##_kb_plan = {#name, __FILE__, __LINE__, name};                                    \
    static const struct kb_plan *const name##_kb_entry __attribute__((used, section("kb_plans"))) = &name##_kb_plan;   \
    static struct kb_plan_tile name(const struct kb_plan_request *ask, uint64_t number)

#endif
