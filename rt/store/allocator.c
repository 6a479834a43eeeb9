/* allocator.c: which part of each memory is given out: a mark that rises for the host, above it a kernel's blocks. */
#include "allocator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/address.h"
#include "machine/emitted.h"
#include "common/arena.h"
#include "common/diag.h"

enum { ALIGNMENT = 64 };

struct block {
    struct block *next;                                 /* higher up */
    uint64_t offset, bytes;
    struct call_site call;
};

static struct room {
    uint64_t host_bytes, host_end;                      /* bytes without what alignment costs */
    struct block *blocks;                               /* of a kernel, upwards */
} *rooms;

static struct room *room_of(uint32_t memory)
{
    if (!rooms)
        rooms = arena_alloc(memory_count(), sizeof *rooms);
    return &rooms[memory];
}

static enum space space_of(uint32_t memory)
{
    uint32_t pes = pe_count();
    return memory < pes ? SPACE_HBM : memory < 2 * pes ? SPACE_TCM : SPACE_SRAM;
}

/* The ring of each PE of the machine lies at the upper end of the memory that pe_ipcq's buffer names. In a TCM rings
 * are outside the addressable part. */
static uint64_t limit(uint32_t memory)
{
    enum space space = space_of(memory);
    uint64_t size = memory_size(memory), pes = pe_count();
    bool rings = (space == SPACE_HBM && kb_attrs.pe_ipcq_buffer == BUFFER_HBM) ||
                 (space == SPACE_SRAM && kb_attrs.pe_ipcq_buffer == BUFFER_SRAM);
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

/* The first offset above all that the host holds. */
static uint64_t above_host(uint32_t memory)
{
    const struct room *room = room_of(memory);
    uint64_t first = space_of(memory) == SPACE_TCM ? kb_attrs.pe_tcm_reserved_bytes : 0;
    return aligned(room->host_end > first ? room->host_end : first);
}

/* The first offset above a kernel's block, or above the host's if that is higher. */
static uint64_t above(uint32_t memory, const struct block *block)
{
    uint64_t least = above_host(memory), end = block ? aligned(block->offset + block->bytes) : 0;
    return end > least ? end : least;
}

/* ---- the host */

static uint64_t next_offset(uint32_t memory)
{
    const struct block *last = room_of(memory)->blocks;
    while (last && last->next)
        last = last->next;
    return above(memory, last);
}

uint64_t room_left(uint32_t memory)
{
    return gap(next_offset(memory), limit(memory));
}

bool room_take(uint32_t memory, uint64_t bytes, uint64_t *offset)
{
    struct room *room = room_of(memory);
    if (bytes > room_left(memory))
        return false;
    *offset = next_offset(memory);
    room->host_end = *offset + bytes;
    room->host_bytes += bytes;
    return true;
}

uint64_t room_host_bytes(uint32_t memory)
{
    return room_of(memory)->host_bytes;
}

/* ---- a kernel */

uint64_t room_kernel_bytes(uint32_t memory)
{
    uint64_t bytes = 0;
    for (const struct block *block = room_of(memory)->blocks; block; block = block->next)
        bytes += block->bytes;
    return bytes;
}

uint64_t room_kernel_left(uint32_t memory)
{
    uint64_t most = 0, from = above_host(memory);
    for (const struct block *block = room_of(memory)->blocks; block; block = block->next) {
        uint64_t bytes = gap(from, block->offset);
        most = bytes > most ? bytes : most;
        from = above(memory, block);
    }
    uint64_t bytes = gap(from, limit(memory));
    return bytes > most ? bytes : most;
}

bool room_kernel_take(uint32_t memory, uint64_t bytes, struct call_site call, uint64_t *offset)
{
    uint64_t from = above_host(memory);
    struct block **link = &room_of(memory)->blocks;
    while (*link && gap(from, (*link)->offset) < bytes) {
        from = above(memory, *link);
        link = &(*link)->next;
    }
    if (!*link && gap(from, limit(memory)) < bytes)
        return false;
    struct block *block = malloc(sizeof *block);
    if (!block)
        die("no memory for a buffer's record:");
    *block = (struct block){*link, from, bytes, call};
    *link = block;
    *offset = from;
    return true;
}

bool room_kernel_free(uint32_t memory, uint64_t offset, uint64_t bytes)
{
    struct block **link = &room_of(memory)->blocks;
    while (*link && (*link)->offset != offset)
        link = &(*link)->next;
    struct block *block = *link;
    if (!block || block->bytes != bytes)
        return false;
    *link = block->next;
    free(block);
    return true;
}

void room_kernel_ended(uint32_t memory)
{
    struct room *room = room_of(memory);
    for (struct block *block = room->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    room->blocks = NULL;
}

/* ---- for messages */

static bool same_call(const struct block *a, const struct block *b)
{
    return a->call.file == b->call.file && a->call.line == b->call.line;
}

/* The blocks of one call: how many, and their bytes; nothing when an earlier block stands for them. */
static uint64_t blocks_of_call(const struct room *room, const struct block *block, uint64_t *bytes)
{
    uint64_t count = 0;
    *bytes = 0;
    for (const struct block *other = room->blocks; other; other = other->next) {
        if (!same_call(block, other))
            continue;
        if (count++ == 0 && other != block)
            return 0;
        *bytes += other->bytes;
    }
    return count;
}

void room_describe(uint32_t memory, char *out, size_t size)
{
    enum { MOST_CALLS = 6 };
    const struct room *room = room_of(memory);
    uint64_t bytes, calls = 0;
    int at = snprintf(out, size, "tensors hold %" PRIu64, room->host_bytes);
    for (const struct block *block = room->blocks; block && (size_t)at < size; block = block->next) {
        uint64_t count = blocks_of_call(room, block, &bytes);
        if (count == 0 || ++calls > MOST_CALLS)
            continue;
        at += snprintf(out + at, size - (size_t)at, ", %s at %s:%" PRIu32 " %" PRIu64, block->call.name,
                       block->call.file, block->call.line, bytes);
        if (count > 1 && (size_t)at < size)
            at += snprintf(out + at, size - (size_t)at, " in %" PRIu64 " buffers", count);
    }
    if (calls > MOST_CALLS && (size_t)at < size)
        snprintf(out + at, size - (size_t)at, ", %" PRIu64 " other calls the rest of %" PRIu64, calls - MOST_CALLS,
                 room_kernel_bytes(memory));
}

/* ---- messages */

/* Places of a slot's size. Those that are free are a chain, last in first out: the memory stays as small as the most
 * messages that were under way. */
static uint64_t *next_free, first_free, place_count;    /* next_free by place, first_free: 1 more, 0 is the end */

static uint64_t place_bytes(void)
{
    return aligned(kb_attrs.pe_ipcq_slot_bytes);
}

uint64_t room_message_take(void)
{
    uint64_t place = first_free;
    if (place) {
        first_free = next_free[place - 1];
        return (place - 1) * place_bytes();
    }
    next_free = arena_grow(next_free, place_count, sizeof *next_free);
    return place_count++ * place_bytes();
}

void room_message_free(uint64_t offset)
{
    uint64_t place = offset / place_bytes();
    next_free[place] = first_free;
    first_free = place + 1;
}

/* ---- staging */

enum { STAGED = 16 };                                   /* operands of a PE, at most */

static struct staged {
    uint64_t offset, bytes;
} (*staged)[STAGED];
static uint64_t staged_end;

uint64_t room_staging(uint32_t pe, unsigned operand, uint64_t bytes)
{
    if (!staged)
        staged = arena_alloc(pe_count(), sizeof *staged);
    struct staged *s = &staged[pe][operand];
    if (s->bytes < bytes) {
        *s = (struct staged){staged_end, aligned(bytes > 2 * s->bytes ? bytes : 2 * s->bytes)};
        staged_end += s->bytes;
    }
    return s->offset;
}

void room_reset(void)
{
    staged = NULL;
    staged_end = 0;
    rooms = NULL;
    next_free = NULL;
    first_free = place_count = 0;
}
