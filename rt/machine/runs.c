/* runs.c: the bytes of a strided view, as runs of one length at regular distances. */
#include "runs.h"

#include <stddef.h>

/* ---- from shape and strides */

/* The axis of the shortest stride among those of more than one index; RUN_AXES: there is none. Axes of stride 0 repeat
 * elements and do not count. */
static unsigned shortest_axis(const uint64_t *shape, const uint64_t *stride)
{
    unsigned shortest = RUN_AXES;
    for (unsigned axis = 0; axis < RUN_AXES; axis++)
        if (shape[axis] > 1 && stride[axis] && (shortest == RUN_AXES || stride[axis] < stride[shortest]))
            shortest = axis;
    return shortest;
}

/* Repeats all runs so far `count` times. */
static void add_axis(struct runs *runs, uint64_t count, uint64_t distance)
{
    unsigned last = runs->axes - 1;                     /* not used without axes */
    if (runs->axes == 0 && distance == runs->bytes) {
        runs->bytes *= count;
    } else if (runs->axes && distance == runs->count[last] * runs->distance[last]) {
        runs->count[last] *= count;
    } else {
        runs->count[runs->axes] = count;
        runs->distance[runs->axes++] = distance;
    }
}

/* Whether elements are consecutive, the last axis fastest, as those of most views are. Sets their number. */
static bool is_row_major(const uint64_t *shape, const uint64_t *stride, uint64_t *elements)
{
    *elements = 1;
    for (unsigned axis = RUN_AXES; axis-- > 0; *elements *= shape[axis])
        if (shape[axis] > 1 && stride[axis] != *elements)
            return false;
    return true;
}

bool runs_of(struct runs *runs, const uint64_t *shape, const uint64_t *stride, uint64_t element_bytes)
{
    uint64_t elements;
    if (is_row_major(shape, stride, &elements)) {
        *runs = (struct runs){.bytes = elements * element_bytes};
        return true;
    }
    uint64_t left[RUN_AXES], last = 0;
    bool apart = true;
    *runs = (struct runs){.bytes = element_bytes};
    for (unsigned axis = 0; axis < RUN_AXES; axis++) {
        left[axis] = shape[axis];
        last += (shape[axis] - 1) * stride[axis];
    }
    for (unsigned axis; (axis = shortest_axis(left, stride)) < RUN_AXES; left[axis] = 1) {
        apart &= stride[axis] * element_bytes >= runs_span(runs);
        add_axis(runs, shape[axis], stride[axis] * element_bytes);
    }
    if (!apart)
        *runs = (struct runs){.bytes = (last + 1) * element_bytes};
    for (unsigned axis = 0; axis < RUN_AXES; axis++)
        apart &= shape[axis] == 1 || stride[axis];
    return apart;
}

/* Bytes from the first piece to the end of the last, along the first axes. */
static uint64_t span_of(const struct runs *runs, uint32_t axes)
{
    uint64_t span = runs->bytes;
    for (uint32_t axis = 0; axis < axes; axis++)
        span += (runs->count[axis] - 1) * runs->distance[axis];
    return span;
}

uint64_t runs_span(const struct runs *runs)
{
    return span_of(runs, runs->axes);
}

/* How many pieces there are, UINT64_MAX at most. */
static uint64_t pieces_of(const struct runs *runs)
{
    uint64_t pieces = 1;
    for (uint32_t axis = 0; axis < runs->axes; axis++)
        if (__builtin_mul_overflow(pieces, runs->count[axis], &pieces))
            return UINT64_MAX;
    return pieces;
}

/* Pieces of an index of an axis join those of the index before if they begin where these end. */
uint64_t runs_number(const struct runs *runs)
{
    uint64_t pieces = pieces_of(runs), outside = 1, joined = 0;
    if (pieces == UINT64_MAX)
        return pieces;
    for (uint32_t axis = runs->axes; axis-- > 0; outside *= runs->count[axis])
        if (runs->distance[axis] == span_of(runs, axis))
            joined += (runs->count[axis] - 1) * outside;
    return pieces - joined;
}

/* ---- runs in the order of addresses */

struct piece {
    uint64_t index[RUN_AXES], offset;
};

/* Turns a piece into the next one. Returns false if it was the last. */
static bool piece_next(const struct runs *runs, struct piece *piece)
{
    for (uint32_t axis = 0; axis < runs->axes; axis++) {
        piece->offset += runs->distance[axis];
        if (++piece->index[axis] < runs->count[axis])
            return true;
        piece->offset -= runs->count[axis] * runs->distance[axis];
        piece->index[axis] = 0;
    }
    return false;
}

void runs_list(const struct runs *runs, uint64_t address, bool is_virtual, struct address_run *out)
{
    struct piece piece = {.offset = 0};
    struct address_run *last = NULL;
    uint64_t end = 0;
    do {
        if (last && piece.offset == end) {
            last->bytes += runs->bytes;
        } else {
            last = out++;
            *last = (struct address_run){is_virtual ? address + piece.offset : address_add(address, piece.offset),
                                         runs->bytes};
        }
        end = piece.offset + runs->bytes;
    } while (piece_next(runs, &piece));
}

/* ---- bytes that two have in common */

/* Finds the first bytes of the pieces along the first axes that are in [low, end), counted from the first piece. Looks
 * at three indices at most: of three whose pieces begin before `end`, the second has all of them in the range. */
static bool first_within(const struct runs *runs, uint32_t axes, uint64_t low, uint64_t end, struct address_run *found)
{
    if (axes == 0) {
        *found = (struct address_run){low, (end < runs->bytes ? end : runs->bytes) - low};
        return low < end && low < runs->bytes;
    }
    uint64_t distance = runs->distance[axes - 1], within = span_of(runs, axes - 1);
    uint64_t i = low < within ? 0 : (low - within) / distance + 1;
    for (; i < runs->count[axes - 1] && i * distance < end; i++) {
        uint64_t begin = i * distance;
        if (first_within(runs, axes - 1, low > begin ? low - begin : 0, end - begin, found)) {
            found->address += begin;
            return true;
        }
    }
    return false;
}

struct placed_runs runs_placed(const struct runs *runs, uint64_t offset)
{
    return (struct placed_runs){.runs = *runs, .begin = offset, .end = offset + runs_span(runs),
                                .column = runs->axes == 1 ? offset % runs->distance[0] : 0};
}

/* Whether these are rows at one distance with disjoint columns, as most pairs of tiles of one matrix are. */
static bool in_other_columns(const struct placed_runs *x, const struct placed_runs *y)
{
    uint64_t pitch = x->runs.distance[0];
    if (x->runs.axes != 1 || y->runs.axes != 1 || pitch != y->runs.distance[0])
        return false;
    uint64_t apart = y->column - x->column + (y->column < x->column ? pitch : 0);   /* from x's columns to y's */
    return apart >= x->runs.bytes && apart + y->runs.bytes <= pitch;
}

bool runs_meet(const struct placed_runs *x, const struct placed_runs *y, uint64_t *first, uint64_t *end)
{
    if (x->begin >= y->end || y->begin >= x->end || in_other_columns(x, y))
        return false;
    if (pieces_of(&x->runs) > pieces_of(&y->runs))
        return runs_meet(y, x, first, end);
    struct piece piece = {.offset = 0};
    do {
        uint64_t low = x->begin + piece.offset, high = low + x->runs.bytes;
        struct address_run found;
        if (high <= y->begin || !first_within(&y->runs, y->runs.axes, low > y->begin ? low - y->begin : 0,
                                              high - y->begin, &found))
            continue;
        *first = y->begin + found.address;
        *end = *first + found.bytes;
        return true;
    } while (piece_next(&x->runs, &piece));
    return false;
}
