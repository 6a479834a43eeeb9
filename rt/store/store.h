/* store.h: the bytes of all memories.
 *
 * Byte-addressable, zero at the start, sparse: a memory costs address space, and pages for what is touched, in powers of
 * two from 64 KiB. There are two images: `base` is memory as it was when the interval that the op log records began,
 * `now` is memory as the running kernels have it. They part with store_part and are one again after store_join.
 *
 * Behind the memories that addresses name there are two that no kernel can see: one for the bytes of messages between PEs
 * under way, and one for operands that are brought together from several places.
 *
 * A byte of `now` is pending if it is a result that only the data pass will compute. */
#ifndef KB_STORE_H
#define KB_STORE_H

#include <stdbool.h>
#include <stdint.h>

struct op_ref;
struct view;

enum image { IMAGE_NOW, IMAGE_BASE };

/* Numbers of the memory that holds messages and of the one where operands are brought together, and the number of
 * memories with these. */
uint32_t store_messages(void);
uint32_t store_staging(void);
uint32_t store_count(void);

/* Bytes of any of them. */
uint64_t store_bytes(uint32_t memory);

/* Writes to `now` leave `base` alone from here on. */
void store_part(void);

/* Makes `now` equal to `base`, with nothing pending. */
void store_join(void);

/* Makes bytes [0, end) of a memory addressable. What store_at returns is valid until a greater end is asked for. */
void store_reach(enum image image, uint32_t memory, uint64_t end);

/* Makes the pages of a range of `base` at once instead of one by one as they are touched. It must be within reach. */
void store_populate(uint32_t memory, uint64_t offset, uint64_t bytes);

/* The bytes from an offset on, within reach. */
void *store_at(enum image image, uint32_t memory, uint64_t offset);

/* Copies bytes; in `now` they become as pending as those that they are copied from. The ranges may overlap. */
void store_copy(enum image image, uint32_t to, uint64_t to_offset, uint32_t from, uint64_t from_offset, uint64_t bytes);

/* Marks bytes of `now` as results of an operation; NULL: they are not pending. */
void store_mark(uint32_t memory, uint64_t offset, uint64_t bytes, struct op_ref *maker);

/* The same for all elements of a view. */
void store_mark_view(const struct view *view, struct op_ref *maker);

/* Finds the first pending byte of a range; returns false if there is none. */
bool store_pending(uint32_t memory, uint64_t offset, uint64_t bytes, uint64_t *first);

/* The operation whose result a byte is, wherever it was copied since; NULL if the byte is not pending. */
struct op_ref *store_maker(uint32_t memory, uint64_t offset);

/* In a forked process: what it writes to `base` from here on, the other process does not see. */
void store_forked(void);

/* The room's reset (cli/reset.c): every byte of every memory is zero, nothing is allocated, there are no references. */
void store_reset(void);

#endif
