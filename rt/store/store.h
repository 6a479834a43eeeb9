/* store.h: the bytes of all memories, on which the data pass works.
 *
 * Byte-addressable, zero at the start, sparse: a memory costs address space, and pages for what is touched, in powers of
 * two from 64 KiB. The running kernels move none of these bytes: what memories hold for them is in contents.h.
 *
 * Behind the memories that addresses name there are two that no kernel can see: one for the bytes of messages between PEs
 * under way, and one for operands that are brought together from several places. */
#ifndef KB_STORE_H
#define KB_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"

/* Numbers of the memory that holds messages and of the one where operands are brought together, and the number of
 * memories with these. */
static inline uint32_t store_messages(void)
{
    return memory_count();
}

static inline uint32_t store_staging(void)
{
    return memory_count() + 1;
}

static inline uint32_t store_count(void)
{
    return memory_count() + 2;
}

/* Bytes of any of them. */
uint64_t store_bytes(uint32_t memory);

/* Makes bytes [0, end) of a memory addressable. What store_at returns is valid until a greater end is asked for. */
void store_reach(uint32_t memory, uint64_t end);

/* Makes the pages of a range at once instead of one by one as they are touched. It must be within reach. */
void store_populate(uint32_t memory, uint64_t offset, uint64_t bytes);

/* The bytes from an offset on, within reach. */
void *store_at(uint32_t memory, uint64_t offset);

/* Copies bytes between memories. The ranges may overlap. */
void store_copy(uint32_t to, uint64_t to_offset, uint32_t from, uint64_t from_offset, uint64_t bytes);

/* Pages that hold what a range of a memory held when they were made. Copies of the range share them, each until it is
 * written to. */
struct shared_pages {
    int file;
    uint64_t phase, bytes;                              /* of the range: its offset in a page */
};

/* Returns false if the range is too short to be worth it, or the system cannot. */
bool shared_pages_make(struct shared_pages *pages, uint32_t memory, uint64_t offset, uint64_t bytes);

/* Makes a range of a memory, within reach, a copy. Returns false if pages do not lie in it as in the first one; or, then with
 * other bytes in it, if the system cannot. */
bool shared_pages_map(const struct shared_pages *pages, uint32_t memory, uint64_t offset);

void shared_pages_drop(struct shared_pages *pages);

/* Copies bytes out of a memory, without making any addressable. */
void store_read(uint32_t memory, uint64_t offset, uint64_t bytes, void *to);

/* Whether any byte was ever addressable; if none was, all are zero. */
bool store_is_used(void);

/* Returns false only if no byte of a range was ever addressable. */
bool store_range_is_used(uint32_t memory, uint64_t offset, uint64_t bytes);

/* The room's reset (session/reset.c): every byte of every memory is zero, nothing is allocated, there are no references. */
void store_reset(void);

#endif
