/* room.c: which part of each memory is given out: a mark that rises, for the host and above it for a kernel. */
#include "room.h"

#include "address.h"
#include "emitted.h"
#include "text/base.h"

enum { ALIGNMENT = 64 };

static struct room {
    uint64_t host_bytes, kernel_bytes;                  /* given out, without what alignment costs */
    uint64_t host_end, kernel_end;                      /* kernel_end 0: no kernel holds anything */
} *rooms;

static struct room *room_of(uint32_t memory)
{
    if (!rooms)
        rooms = arena_alloc(memory_count(), sizeof *rooms);
    return &rooms[memory];
}

static enum space space_of(uint32_t memory)
{
    uint32_t pes = kb_shape.sips * kb_shape.cubes * kb_shape.pes;
    return memory < pes ? SPACE_HBM : memory < 2 * pes ? SPACE_TCM : SPACE_SRAM;
}

/* The ring of each PE of the machine lies at the upper end of the memory that pe_ipcq's buffer names. In a TCM rings
 * are outside the addressable part. */
static uint64_t limit(uint32_t memory)
{
    enum space space = space_of(memory);
    uint64_t size = memory_size(memory), pes = kb_shape.sips * kb_shape.cubes * kb_shape.pes;
    bool rings = (space == SPACE_HBM && kb_attrs.pe_ipcq_buffer == BUFFER_HBM) ||
                 (space == SPACE_SRAM && kb_attrs.pe_ipcq_buffer == BUFFER_SRAM);
    unsigned __int128 ring_bytes =
        rings ? (unsigned __int128)pes * kb_attrs.pe_ipcq_slots * kb_attrs.pe_ipcq_slot_bytes : 0;
    return ring_bytes < size ? size - (uint64_t)ring_bytes : 0;
}

static uint64_t next_offset(uint32_t memory)
{
    const struct room *room = room_of(memory);
    uint64_t first = space_of(memory) == SPACE_TCM ? kb_attrs.pe_tcm_reserved_bytes : 0;
    uint64_t end = room->kernel_end > room->host_end ? room->kernel_end : room->host_end;
    end = end > first ? end : first;
    return (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

uint64_t room_left(uint32_t memory)
{
    uint64_t next = next_offset(memory), end = limit(memory);
    return next < end ? end - next : 0;
}

bool room_take(uint32_t memory, uint64_t bytes, bool kernel, uint64_t *offset)
{
    struct room *room = room_of(memory);
    if (bytes > room_left(memory))
        return false;
    *offset = next_offset(memory);
    *(kernel ? &room->kernel_end : &room->host_end) = *offset + bytes;
    *(kernel ? &room->kernel_bytes : &room->host_bytes) += bytes;
    return true;
}

void room_kernel_ended(uint32_t memory)
{
    struct room *room = room_of(memory);
    room->kernel_end = 0;
    room->kernel_bytes = 0;
}

uint64_t room_host_bytes(uint32_t memory)
{
    return room_of(memory)->host_bytes;
}

uint64_t room_kernel_bytes(uint32_t memory)
{
    return room_of(memory)->kernel_bytes;
}
