/* tl.c: the device library's calls that submit nothing: where a kernel is, shards, waiting, words. buffer.c has
 * buffers, move.c what moves bytes, simple.c simple compute, composite.c composites. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "device.h"
#include "emitted.h"
#include "flight.h"
#include "plan.h"
#include "sim.h"
#include "tensor.h"
#include "text/base.h"

void device_run(struct tl *tl, const void *arg)
{
    const struct device_program *program = arg;
    tl->data = arena_alloc(1, sizeof(struct device_state));
    program->kernel->body(tl, program->arg);
    buffers_end(tl);
}

uint32_t tl_pe(const struct tl *tl)
{
    return tl->index;
}

uint32_t tl_num_pes(const struct tl *tl)
{
    return tl->count;
}

uint32_t tl_sip(const struct tl *tl)
{
    return pe_number(tl->pe) / kb_shape.pes / kb_shape.cubes;
}

uint32_t tl_cube(const struct tl *tl)
{
    return pe_number(tl->pe) / kb_shape.pes % kb_shape.cubes;
}

uint64_t tl_now(const struct tl *tl)
{
    (void)tl;                                           /* one clock for all */
    return sim_now_ps();
}

/* ---- time */

void tl_delay(struct tl *tl, uint64_t ps)
{
    kernel_delay(tl, ps);
}

void tl_wait_at(struct tl *tl, tl_handle handle, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_wait", file, line};
    uint32_t number = call_number(&call, handle);
    kernel_wait(tl, number);
    flights_waited(tl, number);
}

/* ---- words */

void tl_fail_at(struct tl *tl, int code, const char *file, uint32_t line, const char *format, ...)
{
    struct call call = {tl, "tl_fail", file, line};
    char message[600];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    call_error(&call, "code %d: %s", code, message);
}

void tl_log(struct tl *tl, const char *format, ...)
{
    char message[600];                                  /* whole before it is said: its arguments may be wrong */
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fprintf(stderr, "%" PRIu64 " ps %s kernel %s: %s\n", sim_now_ps(),
            place_name(place_pe(pe_number(tl->pe), NODE_pe_cpu)), tl->name, message);
}

/* ---- shards */

uint32_t tl_shards_at(kb_tensor tensor, const char *file, uint32_t line)
{
    struct call call = {kernel_running(), "tl_shards", file, line};
    if (!call.tl)                                       /* the host asks */
        tensor_check(tensor, call.name, file, line);
    else if (!tensor)
        call_error(&call, "there is no tensor");
    return tensor->shards;
}

struct tl_shard tl_shard_at(struct tl *tl, kb_tensor tensor, uint64_t i, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_shard", file, line};
    if (!tensor)
        call_error(&call, "there is no tensor");
    if (i >= tensor->shards)
        call_error(&call, "tensor '%s' has %u shards, there is no %" PRIu64, tensor->name, tensor->shards, i);
    return tensor->shard[i].view;
}

struct tl_shard tl_my_shard_at(struct tl *tl, kb_tensor tensor, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_my_shard", file, line};
    if (!tensor)
        call_error(&call, "there is no tensor");
    uint32_t pe = pe_number(tl->pe), low = 0, high = tensor->shards;
    while (low < high) {                                /* shards are in the order of their PEs */
        uint32_t middle = low + (high - low) / 2;
        if (tensor->shard[middle].pe < pe)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == tensor->shards || tensor->shard[low].pe != pe)
        call_error(&call, "tensor '%s' is not placed with this PE", tensor->name);
    return tensor->shard[low].view;
}

struct tl_shard tl_part_at(struct tl *tl, struct tl_shard shard, uint32_t axis, uint64_t first, uint64_t count,
                           const char *file, uint32_t line)
{
    struct call call = {tl, "tl_part", file, line};
    if (axis >= shard.rank || shard.rank > KB_RANK || shard.dtype >= DTYPES)
        call_error(&call, "a shard of %u axes has no axis %u", shard.rank, axis);
    if (first > shard.shape[axis] || count > shard.shape[axis] - first)
        call_error(&call, "%" PRIu64 " indices from %" PRIu64 " on, but axis %u has %" PRIu64, count, first, axis,
                   shard.shape[axis]);
    uint64_t bytes = first * shard.stride[axis] * dtype_bytes[shard.dtype];
    shard.addr = shard.is_virtual ? shard.addr + bytes : address_add(shard.addr, bytes);
    shard.first[axis] += first;
    shard.shape[axis] = count;
    return shard;
}
