/* device_call.h: what the calls of the device library share: who called, and what they check alike. */
#ifndef KB_DEVICE_CALL_H
#define KB_DEVICE_CALL_H

#include "address.h"
#include "kb/tl.h"
#include "kernel.h"
#include "oplog.h"

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

/* The range of an address; a bad one is a BAD_ADDRESS of what is named. */
struct range call_range(const struct call *call, const char *what, uint64_t address, uint64_t bytes);

/* Whether a range lies in the TCM of the PE that calls. */
bool call_owns(const struct call *call, const struct range *range);

/* The bytes of a shard as one piece; one that is empty, or not in one piece, is a KERNEL_ERROR. */
uint64_t call_bytes(const struct call *call, const struct tl_shard *shard);

/* The range of a buffer in this PE's TCM that the call reads or writes: whole, and not to be written by a receive that
 * was not waited for; else a fault. */
struct range call_buffer(const struct call *call, const struct tl_shard *shard);

/* Two shards have to be of one shape and dtype. */
void call_same_shape(const struct call *call, const struct tl_shard *a, const struct tl_shard *b);

/* Submits what is asked, whose effect on data is recorded as `op` at this instant, or a receive's when it completes.
 * Takes pe_cpu's overhead. */
struct command *call_submit(const struct call *call, struct request *ask, struct op *op);

#endif
