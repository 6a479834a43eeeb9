/* store.h: the bytes of all memories.
 *
 * Byte-addressable, zero at the start, sparse: a memory costs address space and pages for what is touched, in powers of
 * two from 64 KiB. There are two images. `base` is memory as it was when the interval that the op log records began;
 * `now` is memory as the running kernels have it. They part with store_part and are one again after store_join.
 *
 * Behind the memories that addresses name there is one for the bytes of messages between PEs while they are
 * under way, and another one for operands that are brought together from several places: no kernel can see them.
 *
 * A byte is pending in `now` when it is the result of a compute that only the data pass will do. */
#ifndef KB_STORE_H
#define KB_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "pending.h"

enum image { IMAGE_NOW, IMAGE_BASE };

/* The number of the memory that holds messages. */
uint32_t store_messages(void);

/* That of the memory where operands are brought together, and how many memories there are with these. */
uint32_t store_staging(void);
uint32_t store_count(void);

/* Bytes of any of them. */
uint64_t store_bytes(uint32_t memory);

/* From here on writes to `now` leave `base` alone. */
void store_part(void);

/* Makes `now` what `base` is, nothing pending. */
void store_join(void);

/* Makes bytes [0, end) of a memory addressable: what store_at gives holds until a later end is asked for. */
void store_reach(enum image image, uint32_t memory, uint64_t end);

/* Has the pages of a range of `base` made at once, not one by one as they are touched. It is within reach. */
void store_populate(uint32_t memory, uint64_t offset, uint64_t bytes);

/* The place of an offset within reach. */
void *store_at(enum image image, uint32_t memory, uint64_t offset);

/* Copies bytes, in `now` with their being pending. Ranges may overlap. */
void store_copy(enum image image, uint32_t to, uint64_t to_offset, uint32_t from, uint64_t from_offset, uint64_t bytes);

/* Marks a range of `now` as what a compute will make; NULL: it is not pending. */
void store_mark(uint32_t memory, uint64_t offset, uint64_t bytes, struct origin *maker);

/* The same for all elements of a view. */
struct view;
void store_mark_view(const struct view *view, struct origin *maker);

/* Finds the first pending byte of a range; false: there is none. */
bool store_pending(uint32_t memory, uint64_t offset, uint64_t bytes, uint64_t *first);

/* The compute whose result a byte is, wherever it was copied since; NULL: it is not pending. */
struct origin *store_maker(uint32_t memory, uint64_t offset);

/* The room's reset (cli/reset.c): every byte of every memory is zero, none is taken. */
void store_reset(void);

#endif
