/* device.h: the device library: how the host library starts a kernel, and what the library keeps while it runs. */
#ifndef KB_DEVICE_H
#define KB_DEVICE_H

#include "common/array.h"
#include "hazards.h"
#include "kb/tl.h"
#include "launch/kernel.h"

/* A kernel with a copy of its arguments: what a launch carries to its PEs. */
struct kernel_start {
    const struct kb_kernel *kernel;
    const void *arg;
    const struct vector_clock *known;                   /* what the host knows at the launch; NULL: races are off */
};

/* A running kernel's state, in its tl's `data`. */
struct device_state {
    uint32_t pe, tcm;                                   /* number of its PE, and of that one's TCM */
    uint64_t tcm_address;
    struct data_copy *copies;                           /* that tl_data returned (buffer.c) */
    struct hazards hazards;
    struct ARRAY(uint32_t) after;                       /* numbers of the commands that the next one depends on */
    bool keeps_out, keeps_next_out;                     /* of the op log: later commands, the next one (tl_data_op) */
};

/* The commands of this run that kernels have kept out of the op log. */
extern struct kept_out {
    uint64_t commands;
    const char *kernel;                                 /* of the first */
    struct call_site first;
} kept_out;

/* What kernels of this run have asked for that takes no simulated time. */
extern struct untimed {
    uint64_t operand_bytes;                             /* second operands of epilogues and math composites */
    uint64_t after;                                     /* calls of tl_after */
} untimed;

static inline struct device_state *device_state(const struct tl *tl)
{
    return tl->data;
}

/* The shard of a tensor that is placed with a PE, by its number; NULL if there is none. */
const struct tl_shard *shard_with(kb_tensor tensor, uint32_t pe);

/* The kernel_fn of every kernel of the device library; `arg` is a struct kernel_start. */
void device_run(struct tl *tl, const void *arg);

/* The room's reset (session/reset.c): frees what the kernels of all PEs hold, also of those that did not end. */
void device_reset(void);

#endif
