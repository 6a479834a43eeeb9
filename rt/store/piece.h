/* piece.h: where bytes come from, without the bytes: maps of pieces, each with an immutable source.
 *
 * What no piece covers is zero. A source lives as long as a piece names it. A read evaluates no more than it asks for. */
#ifndef KB_PIECE_H
#define KB_PIECE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/fail.h"
#include "common/interval_map.h"
#include "fill.h"

struct listed;
struct patch;
struct patch_copy;
struct view;

enum piece_kind {
    PIECE_stored,                                       /* the store has the bytes */
    PIECE_filled,                                       /* a fill makes them */
    PIECE_result,                                       /* the data pass will compute them: they are pending */
    PIECE_patched,                                      /* strided copies have put them together */
    PIECE_listed,                                       /* a list says where in one source each part is */
};

/* A fill that pieces name. */
struct filled {
    uint32_t holders;
    struct fill fill;                                   /* owns what it is given */
};

void filled_drop(struct filled *filled);

/* A call of a kernel that computes: what is known of all operations that it makes, on any PE. */
struct maker {
    const char *kernel;
    struct call_site call;                              /* name: of the operation, such as "gemm_f16" */
};

enum { MAKER_CHAINS = 64 };                             /* of the hash table of all makers */

/* The one maker that is like another. It stays until pieces_reset. */
const struct maker *maker_like(struct maker maker);

/* Bytes that are pending: the maker of the first of them, the operation's number in data order, and where it is. */
struct pending {
    const struct maker *maker;
    uint64_t operation, at;
};

/* A shard whose elements are at consecutive positions in its tensor is part of that: pieces of several such shards can
 * continue one another. */
enum { PIECE_KIND_BITS = 3, NO_SHARD = UINT32_MAX >> PIECE_KIND_BITS };

union origin {
    const void *any;
    struct filled *filled;
    const struct maker *maker;
    struct patch *patch;
    struct listed *listed;
    struct interval *several;                           /* of a copy: the root of a map of pieces */
};

/* A line of the host's caches: there are many. */
struct piece {
    struct interval interval;                           /* its tag: kind and number, below */
    uint64_t offset;                                    /* of its first byte in the memory, shard (NO_SHARD: tensor), patch
                                                           or list; of a result: the operation's number in data order */
    union origin source;
};

_Static_assert(sizeof(struct piece) <= 64, "it is a line");

/* The tag of a kind of piece and a number. Stored: of the memory; filled: of the shard, or NO_SHARD; otherwise 0. */
static inline uint32_t piece_tag(enum piece_kind kind, uint32_t number)
{
    return number << PIECE_KIND_BITS | kind;
}

static inline enum piece_kind tag_kind(uint32_t tag)
{
    return tag & ((1 << PIECE_KIND_BITS) - 1);
}

static inline enum piece_kind piece_kind(const struct piece *piece)
{
    return tag_kind(piece->interval.tag);
}

static inline uint32_t piece_number(const struct piece *piece)
{
    return piece->interval.tag >> PIECE_KIND_BITS;
}

extern struct interval_kind pieces;

#define PIECES ((struct interval_map){.kind = &pieces})

/* The pieces that overlap [from, to), in order; from < to. The map must stay as it is. */
#define piece_for(map, p, from, to)                                                                                    \
    for (struct piece *p = (struct piece *)interval_find(map, from); p && p->interval.begin < (to);                    \
         p = (struct piece *)interval_find(map, p->interval.end))

/* Copies bytes of a piece, from a position in its map on; pending ones count as zero. */
void piece_read(const struct piece *piece, uint64_t from, uint64_t bytes, uint8_t *to);

/* The same of a range, whatever pieces it has. */
void pieces_read(const struct interval_map *map, uint64_t offset, uint64_t bytes, void *to);

/* The bytes of a range, if they are part of what one fill was given, and aligned for any type: the fill holds them, and stays
 * for the caller until filled_drop. Otherwise NULL. */
const void *pieces_given(const struct interval_map *map, uint64_t offset, uint64_t bytes, struct filled **filled);

/* Whether all bytes of a range are known to be 0 without being read. */
bool pieces_known_zero(const struct interval_map *map, uint64_t offset, uint64_t bytes);

/* Whether a byte of a range is pending, and if so what is known of the first one. */
bool pieces_pending(const struct interval_map *map, uint64_t offset, uint64_t bytes, struct pending *first);

/* The bytes of all pieces, patches and their copies. */
uint64_t pieces_bytes(void);

/* Adds or removes a holder of the source of a piece with a tag. */
void origin_hold(uint32_t tag, union origin source);
void origin_drop(uint32_t tag, union origin source);

/* Frees all sources, makers and the free lists of pieces; all maps have been cleared. */
void pieces_reset(void);

/* ---- how strided elements are copied */

/* How the elements of a view get those of another one of the same shape, or are a maker's result: without where both are. It
 * has one holder. */
struct patch_copy *copy_new(const struct view *to, const struct view *from, const struct maker *maker);

void copy_drop(struct patch_copy *copy);

/* NULL: it is not a result. */
const struct maker *copy_maker(const struct patch_copy *copy);

/* ---- patches: strided elements laid over the bytes of a range
 *
 * A strided copy or result of many short runs would be many pieces. It is kept as one copy, over what the range held
 * before, and only becomes pieces when somebody looks, or when very many copies lie over one another. Where there are very
 * many results, those of one call that continue one another along an axis are one copy. */

/* A new patch of a range that holds what the map holds from `offset` on. It has one holder. */
struct patch *patch_new(const struct interval_map *map, uint64_t offset, uint64_t bytes);

void patch_hold(struct patch *patch);
void patch_drop(struct patch *patch);

uint64_t patch_bytes(const struct patch *patch);

/* Whether only one piece or caller names it: it may be added to. */
bool patch_is_single(const struct patch *patch);

/* Makes a patch hold what another one holds as well, directly before it or behind it, if one copy covers each and one can cover
 * both: it becomes that one. A copy was just added to the patch, so no other patch has this. Returns whether it does. */
bool patch_join(struct patch *patch, const struct patch *other, bool before);

/* Takes the copy that was laid last out of a patch, if its elements are consecutive bytes, but not all of the patch: returns a
 * patch of those bytes alone, which are at *at. It has one holder. NULL: they are not. What the patch holds there is not known
 * then. */
struct patch *patch_split(struct patch *patch, uint64_t *at);

/* Whether all that a patch holds is a result, or some results: of one maker, where there are very many, or if `several` of any.
 * Sets the maker and the operation of the one that was laid first. */
bool patch_is_result(const struct patch *patch, bool several, struct pending *result);

/* Lays a copy that was not laid before over a patch. `to` is its target, relative to the patch. It copies from [first, first +
 * bytes) of the map `source`; of a result, `first` is the operation. */
void patch_add(struct patch *patch, struct patch_copy *copy, const struct view *to, const struct interval_map *source, uint64_t first,
               uint64_t bytes);

#endif
