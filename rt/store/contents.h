/* contents.h: what each memory holds for the kernels that run: bytes of the store as it was when the interval that the op
 * log records began, what the host and copies have put over them since, and results that only the data pass will compute.
 *
 * Nothing here moves bytes: memories are maps of pieces (piece.h), and copies copy pieces. Their number grows with the
 * ranges of different origin, not with the operations. Copies and results wait, in their order, until somebody looks, or until
 * many wait; and where they would become very many pieces, in a file (waiting.h). */
#ifndef KB_CONTENTS_H
#define KB_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "fill.h"
#include "piece.h"
#include "view.h"

/* Bytes that pieces, patches and their copies may take before further copies and results wait until somebody looks. */
extern uint64_t contents_most_bytes;

/* Puts the values of a fill into all copies of its tensor. What the fill is given is copied. */
void contents_fill(const struct fill *fill);

/* Copies the elements of a view to another of the same shape and size of elements; what is pending stays so in the
 * copy. Views that are one run of bytes each may overlap. */
void contents_copy(const struct view *to, const struct view *from);

/* Makes the elements of a view the pending results of an operation, by its number in data order. */
void contents_compute(const struct view *view, const struct maker *maker, uint64_t operation);

/* Whether a range has a pending byte; if so, sets which operation's result the first one is, wherever it was copied since.
 * Where very many results are pending, it may be another operation, of the same call or with results between those of it. */
bool contents_first_pending(uint32_t memory, uint64_t offset, uint64_t bytes, struct pending *first);

/* Whether a range has a pending byte. */
static inline bool contents_pending(uint32_t memory, uint64_t offset, uint64_t bytes)
{
    struct pending first;
    return contents_first_pending(memory, offset, bytes, &first);
}

/* Whether all bytes of a range are known to be 0 without being read, and none is pending. */
bool contents_known_zero(uint32_t memory, uint64_t offset, uint64_t bytes);

/* The bytes of a range, without a copy, if they are part of what one fill was given (pieces_given). Otherwise NULL. */
const void *contents_given(uint32_t memory, uint64_t offset, uint64_t bytes, struct filled **filled);

/* Copies bytes out of a memory, none of which is pending. */
void contents_read(uint32_t memory, uint64_t offset, uint64_t bytes, void *to);

/* Every memory holds what the store has: an interval begins. */
void contents_begin_interval(void);

/* Frees everything. */
void contents_reset(void);

#endif
