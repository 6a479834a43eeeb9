/* interval_map.h: intervals [begin, end) of 64-bit positions, each with a value, in a balanced tree by begin.
 *
 * The value is whatever the struct that embeds `struct interval` as its first member holds besides. Two kinds of use:
 *
 *     disjoint      interval_set, interval_erase and interval_copy keep intervals apart: they cut what a new one
 *                   overlaps, and join neighbours whose values continue one another.
 *     overlapping   interval_add and interval_remove take intervals that the user allocates, which may overlap.
 *
 * A value may depend on the position, as an address or an offset in a source does: `advance` moves it when the first
 * bytes of an interval are cut off. A call takes time in the logarithm of the map's size, and in the number of
 * intervals that it visits, removes or copies. */
#ifndef KB_INTERVAL_MAP_H
#define KB_INTERVAL_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool.h"

struct interval {
    uint64_t begin, end;                                /* begin < end */
    uint64_t last_end;                                  /* the greatest end of its subtree */
    struct interval *left, *right;
    uint32_t priority;                                  /* at least those of its subtree */
    uint32_t tag;                                       /* part of the value; of intervals that overlap: their number, which
                                                           rises: those of one begin are in the order of adding */
};

/* What the intervals of disjoint maps are. Function pointers may be NULL: nothing to do, or never. */
struct interval_kind {
    size_t size;                                        /* of the struct that embeds the interval */
    void (*copied)(struct interval *copy);              /* the map has copied a value: takes a reference */
    void (*dropped)(struct interval *interval);         /* the map is about to free one: gives the reference back */
    void (*advance)(struct interval *interval, uint64_t bytes);     /* its first bytes are cut off */
    bool (*continues)(const struct interval *low, const struct interval *high);     /* high begins where low ends: one
                                                                                       interval can be both */
    struct pool pool;                                   /* of all maps of the kind */
    uint64_t made;                                      /* intervals, in all of them */
};

/* A map without intervals: root NULL. A map of disjoint intervals has a kind, one of overlapping intervals NULL. */
struct interval_map {
    struct interval *root;
    struct interval_kind *kind;
    uint32_t added;                                     /* overlapping intervals: the last number, which starts again behind
                                                           the greatest */
};

/* The interval of the lowest begin that ends after a position; NULL: there is none. In a disjoint map: the one that
 * holds the position, or else the next. */
struct interval *interval_find(const struct interval_map *map, uint64_t at);

/* The intervals of a disjoint map that overlap [first, last), in order; first < last. The map must stay
 * as it is. */
#define interval_for(map, i, first, last)                                                                              \
    for (struct interval *i = interval_find(map, first); i && i->begin < (last); i = interval_find(map, i->end))

/* Calls f for every interval that overlaps [begin, end), in the order of their begins, and of adding among equal
 * ones. The map must stay as it is. */
void interval_each(const struct interval_map *map, uint64_t begin, uint64_t end,
                   void (*f)(struct interval *interval, void *arg), void *arg);

/* ---- disjoint intervals */

/* Gives [value->begin, value->end) the value that the struct around `value` holds; the map makes a copy of it. The
 * caller's own reference stays the caller's, and lasts until the call returns. */
void interval_set(struct interval_map *map, const struct interval *value);

/* Removes what lies in [begin, end). */
void interval_erase(struct interval_map *map, uint64_t begin, uint64_t end);

/* Makes [to_begin, to_begin + bytes) what [from_begin, from_begin + bytes) of another map of the same kind is, or of
 * the same map; they may overlap. */
void interval_copy(struct interval_map *to, uint64_t to_begin, const struct interval_map *from, uint64_t from_begin,
                   uint64_t bytes);

/* Removes all intervals. */
void interval_clear(struct interval_map *map);

/* ---- overlapping intervals */

/* Adds an interval of which begin and end are set. It is the user's, and in one map at a time. */
void interval_add(struct interval_map *map, struct interval *interval);

void interval_remove(struct interval_map *map, struct interval *interval);

#endif
