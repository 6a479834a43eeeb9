/* buffer.c: buffers of a kernel in its TCM: allocated, freed, and read by the kernel itself. */
#include "buffer.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/diag.h"
#include "device.h"
#include "machine/pe.h"
#include "store/allocator.h"
#include "store/contents.h"

/* What tl_data returned; freed when the kernel ends. */
struct data_copy {
    struct data_copy *next;
    struct filled *given;                               /* what holds the bytes; NULL: they follow */
    max_align_t bytes[];
};

static uint32_t own_tcm(const struct tl *tl)
{
    return device_state(tl)->tcm;
}

void buffer_free_all(struct tl *tl)
{
    struct device_state *state = device_state(tl);
    allocator_kernel_ended(own_tcm(tl));
    for (struct data_copy *copy = state->copies, *next; copy; copy = next) {
        next = copy->next;
        if (copy->given)
            filled_drop(copy->given);
        free(copy);
    }
    state->copies = NULL;
}

/* ---- allocation */

uint64_t tl_room_bytes(struct tl *tl)
{
    return allocator_kernel_left(own_tcm(tl));
}

uint64_t buffer_alloc(const struct call *call, uint64_t bytes)
{
    uint32_t tcm = own_tcm(call->tl);
    uint64_t offset;
    if (allocator_kernel_take(tcm, bytes, call->site, &offset)) {
        hazards_allocated(call->tl, offset, bytes);
        return memory_address(tcm, offset);
    }
    char holders[600];
    allocator_describe(tcm, holders, sizeof holders);
    call_error(call, "no room for %" PRIu64 " bytes in the TCM: %" PRIu64 " left in one piece; %s", bytes,
               allocator_kernel_left(tcm), holders);
}

struct tl_shard tl_alloc_at(struct tl *tl, enum kb_dtype dtype, const uint64_t *shape, uint64_t rank, const char *file,
                            uint32_t line)
{
    struct call call = call_of(tl, "tl_alloc", file, line);
    if ((unsigned)dtype >= DTYPES || rank < 1 || rank > KB_RANK)
        call_error(&call, "not a valid buffer: rank %" PRIu64 ", dtype number %u", rank, (unsigned)dtype);
    struct tl_shard buffer = {.dtype = dtype, .rank = rank, .shape = {1, 1, 1, 1}, .stride = {1, 1, 1, 1}};
    memcpy(buffer.shape, shape, rank * sizeof *shape);
    shard_make_dense(&buffer);
    struct view view;
    call_shape(&call, "the buffer", &buffer, &view);
    buffer.addr = buffer_alloc(&call, view_bytes_of(&view));
    return buffer;
}

void tl_free_at(struct tl *tl, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_free", file, line);
    struct view view;
    call_view(&call, "the buffer", &buffer, &view);
    uint64_t bytes = view_bytes_of(&view);
    hazards_check_free(&call, &view);
    if (view.memory != own_tcm(tl) || !allocator_kernel_free(view.memory, view.offset, bytes))
        call_error(&call, "no buffer of %" PRIu64 " bytes was allocated at %s", bytes, address_name(buffer.addr));
    hazards_freed(&call, view.offset, bytes);
}

/* ---- data */

/* A copy for tl_data under way. */
struct data_cursor {
    const struct call *call;
    uint32_t memory;
    char *to;
};

/* Copies a run of bytes; PENDING_RESULT if a compute has yet to make one of them. */
static void copy_run(uint64_t offset, uint64_t bytes, void *arg)
{
    struct data_cursor *cursor = arg;
    struct pending first;
    if (contents_first_pending(cursor->memory, offset, bytes, &first))
        call_fault(cursor->call, FAULT_PENDING_RESULT,
                   "the bytes at %s are the pending result of %s, operation %" PRIu64 " of kernel %s, called at %s:%u",
                   address_name(memory_address(cursor->memory, first.at)), first.maker->call.name, first.operation,
                   first.maker->kernel, first.maker->call.file, (unsigned)first.maker->call.line);
    contents_read(cursor->memory, offset, bytes, cursor->to);
    cursor->to += bytes;
}

void buffer_look(const struct call *call, const struct view *view)
{
    hazards_check_read(call, view);
    oplog_settle(false, device_state(call->tl)->pe);
}

void buffer_read(const struct call *call, const struct view *view, void *to)
{
    view_each_run(view, copy_run, &(struct data_cursor){call, view->memory, to});
}

bool buffer_known_zero(const struct view *view)
{
    return contents_known_zero(view->memory, view->offset, view_span(view));
}

/* The view of a buffer that the kernel may look at now. */
static struct view view_to_look_at(const struct call *call, const struct tl_shard *shard)
{
    struct view view;
    call_view(call, "the buffer", shard, &view);
    if (view.memory != own_tcm(call->tl))
        call_error(call, "the buffer at %s is not in this PE's TCM: load it first", address_name(shard->addr));
    buffer_look(call, &view);
    return view;
}

const void *tl_data_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_data", file, line);
    struct device_state *state = device_state(tl);
    struct view view = view_to_look_at(&call, &shard), dense = view_without_gaps(&view);
    uint64_t bytes = view_bytes_of(&view);
    bool one_run = view_runs_of_two(&dense, &view) == 1;
    struct filled *given = NULL;
    const void *found = one_run ? contents_given(view.memory, view.offset, bytes, &given) : NULL;
    struct data_copy *copy = malloc(sizeof *copy + (given ? 0 : bytes));
    if (!copy)
        die("no memory for %" PRIu64 " bytes of data:", bytes);
    *copy = (struct data_copy){state->copies, given};
    state->copies = copy;
    if (given)
        return found;
    buffer_read(&call, &view, copy->bytes);
    return copy->bytes;
}

void tl_data_into_at(struct tl *tl, void *to, struct tl_shard shard, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_data_into", file, line);
    if (!to)
        call_error(&call, "a null pointer for the elements");
    struct view view = view_to_look_at(&call, &shard);
    buffer_read(&call, &view, to);
}
