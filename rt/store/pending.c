/* pending.c: ranges of pending bytes: a treap of spans that do not overlap, by offset.
 *
 * A treap is a search tree by its keys and a heap by random priorities, which keeps it about as flat as can be; it is
 * cut in two at an offset, and two are joined, so a range is taken out whole.
 *
 * Most results are not looked at before the data pass makes them, and one of many rows is as many spans. So a result
 * stays one mark, until somebody asks for bytes among which the marks lie. */
#include "pending.h"

#include <stdlib.h>
#include <string.h>

#include "machine/runs.h"
#include "common/arena.h"
#include "common/diag.h"
#include "view.h"

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

/* ---- marks */

struct mark {
    struct view view;
    struct origin *maker;
};

enum { MARKS = 1024 };                                  /* that wait at most */

struct marked {
    struct pending *pending;
    struct origin *maker;
};

static void set_run(uint64_t offset, uint64_t bytes, void *arg)
{
    const struct marked *marked = arg;
    pending_set(marked->pending, offset, bytes, marked->maker);
}

static void marks_settle(struct pending *pending)
{
    uint32_t count = pending->count;
    pending->count = 0;
    for (struct mark *mark = pending->marks; mark < pending->marks + count; mark++) {
        view_each_run(&mark->view, set_run, &(struct marked){pending, mark->maker});
        origin_drop(mark->maker);
    }
}

/* The marks among these bytes are in the tree from here on. */
static void marks_seen(struct pending *pending, uint64_t offset, uint64_t bytes)
{
    if (pending->count && offset < pending->end && offset + bytes > pending->begin)
        marks_settle(pending);
}

void pending_mark(struct pending *pending, const struct view *view, struct origin *maker)
{
    uint64_t span = view_span(view), end = view->offset + span;
    if (view_is_dense(view)) {
        pending_set(pending, view->offset, span, maker);
        return;
    }
    if (pending->count == MARKS)
        marks_settle(pending);
    if (!pending->marks && !(pending->marks = malloc(MARKS * sizeof *pending->marks)))
        die("no memory for what is pending:");
    if (!pending->count || view->offset < pending->begin)
        pending->begin = view->offset;
    if (!pending->count || end > pending->end)
        pending->end = end;
    pending->marks[pending->count++] = (struct mark){*view, origin_hold(maker)};
}

/* ---- ranges */

struct origin *pending_find(struct pending *pending, uint64_t offset, uint64_t bytes, uint64_t *first)
{
    marks_seen(pending, offset, bytes);
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
    marks_seen(pending, offset, bytes);
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

void pending_copy(struct pending *to, uint64_t to_offset, struct pending *from, uint64_t from_offset, uint64_t bytes)
{
    struct piece few[PIECES], *pieces = few;
    uint64_t end = from_offset + bytes;
    size_t count = 0;
    marks_seen(from, from_offset, bytes);
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
    for (uint32_t i = 0; i < pending->count; i++)
        origin_drop(pending->marks[i].maker);
    free(pending->marks);
    *pending = (struct pending){0};
}

void pendings_reset(void)
{
    unused = NULL;
}
