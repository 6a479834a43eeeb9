/* pending.c: which operation makes which bytes.
 *
 * Most results are not looked at before the data pass computes them, and one of many rows has many ranges. So a result
 * waits as a view, and goes into the map when somebody asks for bytes of the range that holds all views that wait. */
#include "pending.h"

#include <stdlib.h>

#include "common/fail.h"
#include "operation.h"
#include "view.h"

struct pending_range {
    struct interval interval;
    struct op_ref *maker;
};

struct pending_view {
    struct view view;
    struct op_ref *maker;
};

enum { VIEWS = 1024 };                                  /* that wait, at most */

/* ---- ranges */

static void range_copied(struct interval *copy)
{
    op_ref_hold(((struct pending_range *)copy)->maker);
}

static void range_dropped(struct interval *interval)
{
    op_ref_drop(((struct pending_range *)interval)->maker);
}

static bool range_continues(const struct interval *low, const struct interval *high)
{
    return ((const struct pending_range *)low)->maker == ((const struct pending_range *)high)->maker;
}

static struct interval_kind ranges = {
    .size = sizeof(struct pending_range), .copied = range_copied, .dropped = range_dropped,
    .continues = range_continues,
};

static struct interval_map *map_of(struct pending *pending)
{
    pending->map.kind = &ranges;
    return &pending->map;
}

/* ---- views that wait */

struct settling {
    struct pending *pending;
    struct op_ref *maker;
};

static void set_run(uint64_t offset, uint64_t bytes, void *arg)
{
    const struct settling *settling = arg;
    pending_set(settling->pending, offset, bytes, settling->maker);
}

static void views_settle(struct pending *pending)
{
    uint32_t count = pending->count;
    pending->count = 0;
    for (struct pending_view *view = pending->views; view < pending->views + count; view++) {
        view_each_run(&view->view, set_run, &(struct settling){pending, view->maker});
        op_ref_drop(view->maker);
    }
}

/* Somebody asks for bytes: views that may have some of them go into the map. */
static void views_asked(struct pending *pending, uint64_t offset, uint64_t bytes)
{
    if (pending->count && offset < pending->end && offset + bytes > pending->begin)
        views_settle(pending);
}

void pending_set_view(struct pending *pending, const struct view *view, struct op_ref *maker)
{
    uint64_t span = view_span(view), end = view->offset + span;
    if (view_is_dense(view)) {
        pending_set(pending, view->offset, span, maker);
        return;
    }
    if (pending->count == VIEWS)
        views_settle(pending);
    if (!pending->views && !(pending->views = malloc(VIEWS * sizeof *pending->views)))
        die("no memory for pending results:");
    if (!pending->count || view->offset < pending->begin)
        pending->begin = view->offset;
    if (!pending->count || end > pending->end)
        pending->end = end;
    pending->views[pending->count++] = (struct pending_view){*view, op_ref_hold(maker)};
}

/* ---- bytes */

struct op_ref *pending_find(struct pending *pending, uint64_t offset, uint64_t bytes, uint64_t *first)
{
    views_asked(pending, offset, bytes);
    const struct interval *found = interval_find(&pending->map, offset);
    if (!found || bytes == 0 || (found->begin > offset && found->begin - offset >= bytes))
        return NULL;
    *first = found->begin > offset ? found->begin : offset;
    return ((const struct pending_range *)found)->maker;
}

void pending_set(struct pending *pending, uint64_t offset, uint64_t bytes, struct op_ref *maker)
{
    struct pending_range range = {{.begin = offset, .end = offset + bytes}, maker};
    views_asked(pending, offset, bytes);
    if (bytes == 0)
        return;
    if (maker)
        interval_set(map_of(pending), &range.interval);
    else
        interval_erase(map_of(pending), range.interval.begin, range.interval.end);
}

void pending_copy(struct pending *to, uint64_t to_offset, struct pending *from, uint64_t from_offset, uint64_t bytes)
{
    views_asked(from, from_offset, bytes);
    views_asked(to, to_offset, bytes);
    interval_copy(map_of(to), to_offset, map_of(from), from_offset, bytes);
}

void pending_clear(struct pending *pending)
{
    interval_clear(map_of(pending));
    for (uint32_t i = 0; i < pending->count; i++)
        op_ref_drop(pending->views[i].maker);
    free(pending->views);
    *pending = (struct pending){0};
}

void pending_reset(void)
{
    pool_release(&ranges.pool);
}
