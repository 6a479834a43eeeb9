/* piece.h: where bytes come from, without the bytes: maps of pieces, each with an immutable source.
 *
 * What no piece covers is zero. A source lives as long as a piece names it. A read evaluates no more than it asks for. */
#ifndef KB_PIECE_H
#define KB_PIECE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/interval_map.h"
#include "fill.h"

struct op_ref;
struct patch;
struct view;

enum piece_kind {
    PIECE_stored,                                       /* the store has the bytes */
    PIECE_filled,                                       /* a fill makes them */
    PIECE_result,                                       /* the data pass will compute them: they are pending */
    PIECE_patched,                                      /* strided copies have put them together */
};

/* A fill that pieces name. */
struct filled {
    uint32_t holders;
    struct fill fill;                                   /* owns what it is given */
};

void filled_drop(struct filled *filled);

/* A shard whose elements are at consecutive positions in its tensor is part of that: pieces of several such shards can
 * continue one another. */
enum { NO_SHARD = UINT32_MAX };

struct piece {
    struct interval interval;
    enum piece_kind kind;
    uint32_t number;                                    /* stored: of the memory; filled: of the shard, or NO_SHARD */
    uint64_t offset;                                    /* of its first byte in the memory, shard (NO_SHARD: tensor) or patch */
    union {
        struct filled *filled;
        struct op_ref *maker;
        struct patch *patch;
    };
};

extern struct interval_kind piece_kind;

#define PIECES ((struct interval_map){.kind = &piece_kind})

/* The pieces that overlap [from, to), in order; from < to. The map must stay as it is. */
#define piece_for(map, p, from, to)                                                                                    \
    for (struct piece *p = (struct piece *)interval_find(map, from); p && p->interval.begin < (to);                    \
         p = (struct piece *)interval_find(map, p->interval.end))

/* Copies the bytes of a range; pending ones count as zero. */
void pieces_read(const struct interval_map *map, uint64_t offset, uint64_t bytes, void *to);

/* Whether all bytes of a range are known to be 0 without being read. */
bool pieces_known_zero(const struct interval_map *map, uint64_t offset, uint64_t bytes);

/* Returns the maker of the first pending byte of a range, and which byte that is; NULL if none is pending. */
struct op_ref *pieces_maker(const struct interval_map *map, uint64_t offset, uint64_t bytes, uint64_t *first);

/* Frees all sources and the free lists of pieces; all maps have been cleared. */
void pieces_reset(void);

/* ---- patches: strided elements laid over the bytes of a range
 *
 * A strided copy or result of many short runs would be many pieces. It is kept as one copy, over what the range held
 * before, and only becomes pieces when somebody looks, or when very many copies lie over one another. */

/* A new patch of a range that holds what the map holds from `offset` on. It has one holder. */
struct patch *patch_new(const struct interval_map *map, uint64_t offset, uint64_t bytes);

void patch_drop(struct patch *patch);

uint64_t patch_bytes(const struct patch *patch);

/* Whether only one piece or caller names it: it may be added to. */
bool patch_is_single(const struct patch *patch);

/* Lays a copy over a patch: `to` is relative to the patch, and `from` to the map that holds its source, from whose
 * `offset` on `bytes` bytes hold all of it. */
void patch_add(struct patch *patch, const struct view *to, const struct view *from, const struct interval_map *source,
               uint64_t offset, uint64_t bytes);

#endif
