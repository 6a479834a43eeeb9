/* call.h: a call of the device library: who calls and from where, the checks that all calls share, and submission. */
#ifndef KB_CALL_H
#define KB_CALL_H

#include "base/address.h"
#include "common/fail.h"
#include "kb/tl.h"
#include "launch/kernel.h"
#include "oplog/oplog.h"

struct call {
    struct tl *tl;
    struct call_site site;
};

/* Every call of the device library begins with it. KERNEL_ERROR if `tl` is not that of the kernel that runs. */
static inline struct call call_of(struct tl *tl, const char *name, const char *file, uint32_t line)
{
    struct call call = {tl, {name, file, line}};
    kernel_calls(tl, call.site);
    return call;
}

/* Stops the kernel with a KERNEL_ERROR, or with another fault. The message names the call and its place. */
#define call_error(call, ...) call_fault(call, FAULT_KERNEL_ERROR, __VA_ARGS__)
_Noreturn void call_fault(const struct call *call, enum fault code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- addresses, shards and PEs; `what` names them in messages */

/* Returns whether the MMU has to translate an address. */
bool call_translates(bool is_virtual);

/* Decodes a physical range; BAD_ADDRESS if there is no such memory. */
struct range call_range(const struct call *call, const char *what, uint64_t address, uint64_t bytes);

/* Sets the view to the shape, strides and dtype of a shard, without its memory. Axes beyond the rank have shape 1; an axis of
 * one index has stride 0. KERNEL_ERROR: a bad rank or dtype, no elements, larger than any memory; BAD_ADDRESS: not
 * aligned to the dtype. */
void call_shape(const struct call *call, const char *what, const struct tl_shard *shard, struct view *view);

/* The same with its memory. The shard is at a physical address. */
void call_view(const struct call *call, const char *what, const struct tl_shard *shard, struct view *view);

/* The same for a shard in this PE's TCM that the call uses. KERNEL_ERROR also if it is elsewhere, virtual, freed, or
 * the target of a receive that the kernel has not waited for. */
void call_buffer(const struct call *call, const char *what, const struct tl_shard *shard, struct view *view);

/* The second half of call_buffer, for a caller that has the view from call_shape. */
void call_place_buffer(const struct call *call, const char *what, const struct tl_shard *shard, struct view *view);

/* Sets the runs of a view; KERNEL_ERROR if elements overlap. */
void call_runs(const struct call *call, const char *what, const struct view *view, struct runs *runs);

/* The same as call_buffer. KERNEL_ERROR also if elements overlap: for what is written, or moved as a whole. */
void call_buffer_distinct(const struct call *call, const char *what, const struct tl_shard *shard, struct view *view);

/* KERNEL_ERROR unless a and b of a gemm have the same dtype, one that gemms support. */
void call_gemm_dtypes(const struct call *call, uint8_t a, uint8_t b);

/* Returns the number over the machine of a PE that is given by its position in the launch, or by TL_NUMBER. */
uint32_t call_peer(const struct call *call, uint32_t peer);

/* Gives a shard the strides of consecutive elements, row-major. */
void shard_make_dense(struct tl_shard *shard);

/* What the op log calls loads, stores, sends and receives, by enum command_kind. */
extern const char *const move_names[COMMANDS];

/* ---- commands. A handle is the serial number of a kernel and the number of its command. */

/* Returns the number of a command; KERNEL_ERROR if the handle belongs to another kernel. */
uint32_t call_number(const struct call *call, tl_handle handle);

/* Makes the next command depend on this one. */
void call_after(const struct call *call, tl_handle handle);

/* Waits until the command is complete. */
void call_wait(const struct call *call, tl_handle handle);

/* Records an effect on data that the command submitted next has, at this instant. A command with several effects needs
 * it for all except the last one. The result is valid until pass 1 is done for it. */
struct op_ref *call_record(const struct call *call, struct op *op);

/* Submits a command, after pe_cpu's overhead. `op` is its effect on data, which is recorded at this instant, of a
 * receive at its completion. NULL: it has no effect. Nor has one that the kernel keeps out of the op log.
 *
 * Both are copied before other kernels run, so they may be static: on the stacks of many kernels such large structures
 * do not fit a cache. */
tl_handle call_submit(const struct call *call, struct request *ask, struct op *op);

/* The same with an effect that call_record has recorded. NULL: it has no effect. */
tl_handle call_submit_recorded(const struct call *call, struct request *ask, struct op_ref *record);

#endif
