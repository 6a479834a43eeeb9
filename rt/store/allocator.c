/* allocator.c: for the host a mark that rises; for a kernel an interval map of blocks above it. */
#include "allocator.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/tables.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/interval_map.h"

enum { ALIGNMENT = 64, STAGED = STAGING_OPERANDS + 1 };

struct kernel_block {
    struct interval interval;
    struct call_site call;
};

static struct interval_kind blocks = {.size = sizeof(struct kernel_block)};

struct in_use {
    uint64_t host_bytes, host_end;                      /* host_bytes: without what alignment costs */
    uint64_t kernel_bytes;                              /* of all blocks */
    struct interval_map kernel;
};

static struct {
    struct in_use *memory;                              /* by memory */
    uint64_t message_slots;                             /* that were ever taken */
    struct ARRAY(uint64_t) free_slots;
    struct staged {
        uint64_t offset, bytes;
    } (*staged)[STAGED];                                /* by PE and operand */
    uint64_t staged_end;
} allocator;

static struct in_use *in_use(uint32_t memory)
{
    if (!allocator.memory) {
        allocator.memory = arena_alloc(memory_count(), sizeof *allocator.memory);
        for (uint32_t i = 0; i < memory_count(); i++)
            allocator.memory[i].kernel.kind = &blocks;
    }
    return &allocator.memory[memory];
}

/* The end of what can be given out: IPCQ rings of all PEs lie at the upper end of each memory of the space that
 * pe_ipcq's buffer names. In a TCM they lie outside the addressable part. */
static uint64_t limit(uint32_t memory)
{
    enum space space = memory_space(memory);
    uint64_t size = memory_size(memory), pes = pe_count();
    bool rings = space != SPACE_TCM && space == ring_space();
    unsigned __int128 ring_bytes =
        rings ? (unsigned __int128)pes * kb_attrs.pe_ipcq_slots * kb_attrs.pe_ipcq_slot_bytes : 0;
    return ring_bytes < size ? size - (uint64_t)ring_bytes : 0;
}

static uint64_t aligned(uint64_t offset)
{
    return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint64_t gap(uint64_t from, uint64_t to)
{
    return from < to ? to - from : 0;
}

static uint64_t above_host(uint32_t memory)
{
    uint64_t reserved = memory_space(memory) == SPACE_TCM ? kb_attrs.pe_tcm_reserved_bytes : 0;
    uint64_t end = in_use(memory)->host_end;
    return aligned(end > reserved ? end : reserved);
}

/* Above a kernel's block, and above the host's bytes, which may have come to lie there later. */
static uint64_t above_block(uint32_t memory, const struct interval *block)
{
    uint64_t least = above_host(memory), end = aligned(block->end);
    return end > least ? end : least;
}

/* ---- the host */

static uint64_t next_offset(uint32_t memory)
{
    const struct interval *last = in_use(memory)->kernel.root;
    while (last && last->right)
        last = last->right;
    return last ? above_block(memory, last) : above_host(memory);
}

uint64_t allocator_host_left(uint32_t memory)
{
    return gap(next_offset(memory), limit(memory));
}

bool allocator_host_take(uint32_t memory, uint64_t bytes, uint64_t *offset)
{
    struct in_use *host = in_use(memory);
    if (bytes > allocator_host_left(memory))
        return false;
    *offset = next_offset(memory);
    host->host_end = *offset + bytes;
    host->host_bytes += bytes;
    return true;
}

void allocator_host_take_back(uint32_t memory, uint64_t offset, uint64_t bytes)
{
    struct in_use *host = in_use(memory);
    host->host_end = offset;
    host->host_bytes -= bytes;
}

uint64_t allocator_host_bytes(uint32_t memory)
{
    return in_use(memory)->host_bytes;
}

/* ---- a kernel */

uint64_t allocator_kernel_bytes(uint32_t memory)
{
    return in_use(memory)->kernel_bytes;
}

uint64_t allocator_kernel_left(uint32_t memory)
{
    uint64_t most = 0, from = above_host(memory);
    interval_for(&in_use(memory)->kernel, block, 0, UINT64_MAX) {
        uint64_t bytes = gap(from, block->begin);
        most = bytes > most ? bytes : most;
        from = above_block(memory, block);
    }
    uint64_t bytes = gap(from, limit(memory));
    return bytes > most ? bytes : most;
}

bool allocator_kernel_take(uint32_t memory, uint64_t bytes, struct call_site call, uint64_t *offset)
{
    struct in_use *use = in_use(memory);
    struct interval_map *kernel = &use->kernel;
    uint64_t from = above_host(memory), to = limit(memory);
    assert(bytes > 0);
    interval_for(kernel, block, 0, UINT64_MAX) {
        if (gap(from, block->begin) >= bytes) {
            to = block->begin;
            break;
        }
        from = above_block(memory, block);
    }
    if (gap(from, to) < bytes)
        return false;
    interval_set(kernel, &(struct kernel_block){{.begin = from, .end = from + bytes}, call}.interval);
    use->kernel_bytes += bytes;
    *offset = from;
    return true;
}

bool allocator_kernel_free(uint32_t memory, uint64_t offset, uint64_t bytes)
{
    struct in_use *use = in_use(memory);
    struct interval_map *kernel = &use->kernel;
    const struct interval *block = interval_find(kernel, offset);
    if (!block || block->begin != offset || block->end - block->begin != bytes)
        return false;
    interval_erase(kernel, block->begin, block->end);
    use->kernel_bytes -= bytes;
    return true;
}

void allocator_kernel_ended(uint32_t memory)
{
    struct in_use *use = in_use(memory);
    interval_clear(&use->kernel);
    use->kernel_bytes = 0;
}

/* ---- for messages */

static bool same_call(const struct interval *a, const struct interval *b)
{
    const struct call_site *x = &((const struct kernel_block *)a)->call;
    const struct call_site *y = &((const struct kernel_block *)b)->call;
    return x->file == y->file && x->line == y->line;
}

/* The number of blocks of a block's call, and their bytes; 0 if an earlier block has the same call. */
static uint64_t blocks_of_call(const struct interval_map *kernel, const struct interval *block, uint64_t *bytes)
{
    uint64_t count = 0;
    *bytes = 0;
    interval_for(kernel, other, 0, UINT64_MAX) {
        if (!same_call(block, other))
            continue;
        if (count++ == 0 && other != block)
            return 0;
        *bytes += other->end - other->begin;
    }
    return count;
}

void allocator_describe(uint32_t memory, char *out, size_t size)
{
    enum { MOST_CALLS = 6 };
    const struct interval_map *kernel = &in_use(memory)->kernel;
    uint64_t bytes, calls = 0;
    size_t at = (size_t)snprintf(out, size, "tensors hold %" PRIu64, in_use(memory)->host_bytes);
    interval_for(kernel, block, 0, UINT64_MAX) {
        const struct call_site *call = &((const struct kernel_block *)block)->call;
        uint64_t count = blocks_of_call(kernel, block, &bytes);
        if (count == 0 || ++calls > MOST_CALLS || at >= size)
            continue;
        at += (size_t)snprintf(out + at, size - at, ", %s at %s:%" PRIu32 " %" PRIu64, call->name, call->file,
                               call->line, bytes);
        if (count > 1 && at < size)
            at += (size_t)snprintf(out + at, size - at, " in %" PRIu64 " buffers", count);
    }
    if (calls > MOST_CALLS && at < size)
        snprintf(out + at, size - at, ", %" PRIu64 " other calls the rest of %" PRIu64, calls - MOST_CALLS,
                 allocator_kernel_bytes(memory));
}

/* ---- messages */

static uint64_t slot_bytes(void)
{
    return aligned(kb_attrs.pe_ipcq_slot_bytes);
}

/* The slot that was freed last comes first: the memory stays as small as the most messages that were under way. */
uint64_t allocator_message_take(void)
{
    if (allocator.free_slots.count)
        return allocator.free_slots.at[--allocator.free_slots.count] * slot_bytes();
    return allocator.message_slots++ * slot_bytes();
}

void allocator_message_free(uint64_t offset)
{
    *array_add(&allocator.free_slots) = allocator_message_slot(offset);
}

uint64_t allocator_message_slot(uint64_t offset)
{
    return offset / slot_bytes();
}

/* ---- staging */

uint64_t allocator_staging(uint32_t pe, unsigned operand, uint64_t bytes)
{
    if (!allocator.staged)
        allocator.staged = arena_alloc(pe_count(), sizeof *allocator.staged);
    struct staged *s = &allocator.staged[pe][operand];
    if (s->bytes < bytes) {
        *s = (struct staged){allocator.staged_end, aligned(bytes > 2 * s->bytes ? bytes : 2 * s->bytes)};
        allocator.staged_end += s->bytes;
    }
    return s->offset;
}

void allocator_reset(void)
{
    array_free(&allocator.free_slots);
    memset(&allocator, 0, sizeof allocator);
    pool_release(&blocks.pool);
}
