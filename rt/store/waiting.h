/* waiting.h: copies and results that memories wait for, in their order: some in memory, further ones in a file. */
#ifndef KB_WAITING_H
#define KB_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "piece.h"
#include "view.h"

/* The most bytes of the file. */
extern uint64_t waiting_file_bytes;

/* A copy or a result, of consecutive bytes or of strided elements: as little as says so, for very many wait. */
struct waiting {
    uint32_t to_memory, from_memory;
    uint64_t to, from, bytes;                           /* offsets; from: of a result, its operation; 0 bytes: it is strided */
    const struct maker *maker;                          /* NULL: a copy */
    uint64_t strided[];                                 /* if it is: dtype, rank; of each axis elements and both strides */
};

/* A new one, behind all others. A strided one gets the dtype and the axes of two views of one shape; `to` is NULL for one of
 * consecutive bytes. The caller sets all else. NULL: as many wait in memory as may. Dies if there is no memory. */
struct waiting *waiting_new(const struct view *to, const struct view *from);

/* Sets the dtype and the axes of two views to those of a strided one. */
void waiting_views(const struct waiting *one, struct view *to, struct view *from);

/* Takes out the one that has waited longest; it stays until the next call. NULL: none waits. Dies if it cannot be read back from the
 * file. */
const struct waiting *waiting_take(void);

/* Whether some wait in the file. */
bool waiting_in_file(void);

/* Moves those that wait in memory to the file. Returns false if some stay: the file has its most bytes, or cannot be made or
 * written. */
bool waiting_to_file(void);

/* Forgets them all. */
void waiting_clear(void);

/* The same, and as many may wait in memory as at the start. */
void waiting_reset(void);

#endif
