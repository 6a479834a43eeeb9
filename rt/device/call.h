/* call.h: what the calls of the device library share: who called, and what they check alike. */
#ifndef KB_DEVICE_CALL_H
#define KB_DEVICE_CALL_H

#include "base/address.h"
#include "kb/tl.h"
#include "launch/kernel.h"
#include "oplog/oplog.h"

struct call {
    struct tl *tl;
    const char *name;                                   /* "tl_load" */
    const char *file;
    uint32_t line;
};

/* Stops with a KERNEL_ERROR, or another fault, that names the call and the place. */
#define call_error(call, ...) call_fault(call, FAULT_KERNEL_ERROR, __VA_ARGS__)
_Noreturn void call_fault(const struct call *call, enum fault code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Where an address in a memory leads: ranges in order of address, there until the next such call. None: a page is
 * unmapped or an address bad, so that the DMA will fault, and no data move. */
struct reach {
    struct range *range;
    size_t count;
};
struct reach call_reach(const struct call *call, uint64_t address, bool is_virtual, uint64_t bytes);

/* Whether the MMU has to translate such an address. */
bool call_translates(bool is_virtual);

/* The range of a physical address; a bad one is a BAD_ADDRESS of what is named. */
struct range call_range(const struct call *call, const char *what, uint64_t address, uint64_t bytes);

/* Whether a range lies in the TCM of the PE that calls. */
bool call_owns(const struct call *call, const struct range *range);

/* What is left of a shard without its place: shape, strides, dtype. Axes beyond the rank have shape 1, and an axis of
 * one index has stride 0. KERNEL_ERROR: no such axes or dtype, empty, larger than any memory; BAD_ADDRESS: not aligned
 * to the dtype. */
struct view call_shape(const struct call *call, const char *what, const struct tl_shard *shard);

/* A shard in this PE's TCM that the call reads or writes, with any strides. KERNEL_ERROR also: elsewhere, virtual,
 * given back, or to be written by a receive that was not waited for. */
struct view call_buffer(const struct call *call, const char *what, const struct tl_shard *shard);

/* A shard at a physical address, in any memory. */
struct view call_view(const struct call *call, const char *what, const struct tl_shard *shard);

/* Bytes that a call uses: not given back, not to be written by a receive that was not waited for; else KERNEL_ERROR. */
void call_check_use(const struct call *call, const struct view *view);

/* Strides of elements that follow one another, row-major. */
void shard_tight(struct tl_shard *shard);

/* Two shards have to be of one shape and dtype. */
void call_same_shape(const struct call *call, const struct tl_shard *a, const struct tl_shard *b);

/* a and b of a gemm are of one dtype, which gemms are defined on; else KERNEL_ERROR. */
void call_gemm_dtypes(const struct call *call, uint8_t a, uint8_t b);

/* The number of a kernel's command, which a handle is, with that of the kernel: it can outlive both. Another's is a
 * KERNEL_ERROR. */
uint32_t call_number(const struct call *call, tl_handle handle);

/* The command of a handle; NULL: it is complete. It lives until it is complete, or longer if somebody holds it. */
struct command *call_command(const struct call *call, tl_handle handle);

/* The next command depends on it. */
void call_after(const struct call *call, tl_handle handle);

/* Waits until it is complete. */
void call_wait(const struct call *call, tl_handle handle);

/* Records an effect on data at this instant, of the command that is submitted next, ahead of its last one. The record
 * is held until pass 1 is done for it. */
struct origin *call_record(const struct call *call, struct op *op);

/* Submits what is asked, whose effect on data is recorded as `op` at this instant, or a receive's when it completes;
 * NULL: it has none. Takes pe_cpu's overhead. */
tl_handle call_submit(const struct call *call, struct request *ask, struct op *op);

/* The same with what was recorded before; NULL: it has no effect on data. */
tl_handle call_submit_recorded(const struct call *call, struct request *ask, struct origin *record);

#endif
