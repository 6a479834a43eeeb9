/* pending.c: ranges of pending bytes: a treap of spans that do not overlap, by offset.
 *
 * A treap is a search tree by its keys and a heap by random priorities, which keeps it about as flat as can be; it is
 * cut in two at an offset, and two are joined, so a range is taken out whole. */
#include "pending.h"

#include <stdlib.h>
#include <string.h>

#include "text/base.h"
#include "text/diag.h"

struct span {
    uint64_t begin, end;
    struct origin *maker;
    struct span *left, *right;
    uint32_t priority;
};

enum { CHUNK = 256 };

static struct span *unused;                             /* by `left` */

static struct span *span_new(uint64_t begin, uint64_t end, struct origin *maker)
{
    static uint32_t random = 1;
    if (!unused) {
        struct span *chunk = arena_alloc(CHUNK, sizeof *chunk);
        for (int i = 0; i < CHUNK; i++) {
            chunk[i].left = unused;
            unused = &chunk[i];
        }
    }
    struct span *span = unused;
    unused = span->left;
    random = random * UINT32_C(1664525) + UINT32_C(1013904223);
    *span = (struct span){.begin = begin, .end = end, .maker = origin_hold(maker), .priority = random};
    return span;
}

static void spans_free(struct span *span)
{
    while (span) {
        struct span *right = span->right;
        spans_free(span->left);
        origin_drop(span->maker);
        span->left = unused;
        unused = span;
        span = right;
    }
}

/* ---- trees */

/* All of `low` lies before all of `high`. */
static struct span *join(struct span *low, struct span *high)
{
    if (!low || !high)
        return low ? low : high;
    if (low->priority > high->priority) {
        low->right = join(low->right, high);
        return low;
    }
    high->left = join(low, high->left);
    return high;
}

/* What begins before an offset, and the rest. */
static void part(struct span *span, uint64_t offset, struct span **low, struct span **high)
{
    if (!span) {
        *low = *high = NULL;
    } else if (span->begin < offset) {
        *low = span;
        part(span->right, offset, &span->right, high);
    } else {
        *high = span;
        part(span->left, offset, low, &span->left);
    }
}

static struct span *last_of(struct span *span)
{
    while (span && span->right)
        span = span->right;
    return span;
}

static struct span *first_of(struct span *span)
{
    while (span && span->left)
        span = span->left;
    return span;
}

/* The same, but a span that an offset lies in is cut there. */
static void cut(struct span *span, uint64_t offset, struct span **low, struct span **high)
{
    part(span, offset, low, high);
    struct span *last = last_of(*low);
    if (!last || last->end <= offset)
        return;
    *high = join(span_new(offset, last->end, last->maker), *high);
    last->end = offset;
}

/* The first span that ends behind an offset; NULL: there is none. */
static struct span *span_at(struct span *span, uint64_t offset)
{
    struct span *found = NULL;
    while (span)
        if (span->end > offset) {
            found = span;
            span = span->left;
        } else {
            span = span->right;
        }
    return found;
}

/* ---- ranges */

struct origin *pending_find(const struct pending *pending, uint64_t offset, uint64_t bytes, uint64_t *first)
{
    struct span *found = span_at(pending->root, offset);
    if (!found || bytes == 0 || (found->begin > offset && found->begin - offset >= bytes))
        return NULL;
    *first = found->begin > offset ? found->begin : offset;
    return found->maker;
}

void pending_set(struct pending *pending, uint64_t offset, uint64_t bytes, struct origin *maker)
{
    struct span *low, *within, *high;
    uint64_t end = offset + bytes, first;
    if (bytes == 0 || (!maker && !pending_find(pending, offset, bytes, &first)))
        return;
    cut(pending->root, offset, &low, &high);
    cut(high, end, &within, &high);
    spans_free(within);
    struct span *before = last_of(low), *behind = first_of(high);
    bool joins = maker && before && before->end == offset && before->maker == maker;
    if (joins)
        before->end = end;
    else if (maker && behind && behind->begin == end && behind->maker == maker)
        behind->begin = offset;
    else if (maker)
        low = join(low, span_new(offset, end, maker));
    pending->root = join(low, high);
}

/* ---- copies */

/* What is pending of a range, by distance from its start. */
struct piece {
    uint64_t begin, bytes;
    struct origin *maker;
};

enum { PIECES = 32 };

static struct piece *piece_room(struct piece *pieces, size_t count, struct piece few[PIECES])
{
    if (count < PIECES || (count & (count - 1)))        /* room is always a power of two */
        return pieces;
    struct piece *more = realloc(pieces == few ? NULL : pieces, 2 * count * sizeof *more);
    if (!more)
        die("no memory to copy what is pending:");
    return pieces == few ? memcpy(more, few, count * sizeof *few) : more;
}

void pending_copy(struct pending *to, uint64_t to_offset, const struct pending *from, uint64_t from_offset,
                  uint64_t bytes)
{
    struct piece few[PIECES], *pieces = few;
    uint64_t end = from_offset + bytes;
    size_t count = 0;
    for (uint64_t at = from_offset; at < end;) {
        const struct span *span = span_at(from->root, at);
        if (!span || span->begin >= end)
            break;
        uint64_t begin = span->begin > at ? span->begin : at, stop = span->end < end ? span->end : end;
        pieces = piece_room(pieces, count, few);
        pieces[count++] = (struct piece){begin - from_offset, stop - begin, origin_hold(span->maker)};
        at = stop;
    }
    pending_set(to, to_offset, bytes, NULL);
    for (size_t i = 0; i < count; i++) {
        pending_set(to, to_offset + pieces[i].begin, pieces[i].bytes, pieces[i].maker);
        origin_drop(pieces[i].maker);
    }
    if (pieces != few)
        free(pieces);
}

void pending_clear(struct pending *pending)
{
    spans_free(pending->root);
    pending->root = NULL;
}

void pendings_reset(void)
{
    unused = NULL;
}
