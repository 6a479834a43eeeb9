/* event.c: the event queue.
 *
 * A 4-ary heap orders what is due later by time alone; what is due now goes into a list beside it, which is sorted when
 * its round begins: most events of an instant are few. Memory grows before it is needed and is never given back. */
#include "event.h"

#include <assert.h>

#include <stdlib.h>
#include <string.h>

#include "text/diag.h"

uint64_t now_ps;

struct due {
    uint64_t t_ps;
    struct event *event;
};

static struct {
    struct due *heap;
    size_t count, room;
} later;

struct list {
    struct event **events;
    size_t count, room;
};

static struct list due_now, round_list;                 /* for the next round; the round under way */
static uint64_t fired;

/* Makes room for one more element of an array. */
static void *grown(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    *room = *room ? 2 * *room : 1024;
    array = realloc(array, *room * size);
    if (!array)
        die("no memory for %zu events", *room);
    return array;
}

static void heap_push(struct due due)
{
    later.heap = grown(later.heap, later.count, &later.room, sizeof *later.heap);
    size_t at = later.count++;
    while (at > 0) {
        size_t parent = (at - 1) / 4;
        if (later.heap[parent].t_ps <= due.t_ps)
            break;
        later.heap[at] = later.heap[parent];
        at = parent;
    }
    later.heap[at] = due;
}

static struct event *heap_pop(void)
{
    struct event *first = later.heap[0].event;
    struct due last = later.heap[--later.count];
    size_t at = 0;
    for (;;) {
        size_t child = 4 * at + 1, least = child;
        if (child >= later.count)
            break;
        size_t end = child + 4 < later.count ? child + 4 : later.count;
        for (size_t i = child + 1; i < end; i++)
            if (later.heap[i].t_ps < later.heap[least].t_ps)
                least = i;
        if (last.t_ps <= later.heap[least].t_ps)
            break;
        later.heap[at] = later.heap[least];
        at = least;
    }
    later.heap[at] = last;
    return first;
}

static void list_add(struct list *list, struct event *event)
{
    list->events = grown(list->events, list->count, &list->room, sizeof *list->events);
    list->events[list->count++] = event;
}

void event_at(struct event *event, uint64_t t_ps)
{
    assert(t_ps >= now_ps);
    if (t_ps == now_ps)
        list_add(&due_now, event);
    else
        heap_push((struct due){t_ps, event});
}

uint64_t time_after(uint64_t t_ps, uint64_t d_ps)
{
    uint64_t sum;
    if (__builtin_add_overflow(t_ps, d_ps, &sum))
        die("simulated time runs past 2^64 ps (213 days)");
    return sum;
}

bool event_next_instant(void)
{
    if (!later.count)
        return false;
    now_ps = later.heap[0].t_ps;
    while (later.count && later.heap[0].t_ps == now_ps)
        list_add(&due_now, heap_pop());
    return true;
}

static bool before(const struct event *a, const struct event *b)
{
    return a->order != b->order ? a->order < b->order : a->key < b->key;
}

static int compare(const void *a, const void *b)
{
    const struct event *x = *(struct event *const *)a, *y = *(struct event *const *)b;
    return before(x, y) ? -1 : before(y, x);
}

static void sort(struct list *list)
{
    if (list->count > 16) {
        qsort(list->events, list->count, sizeof *list->events, compare);
        return;
    }
    for (size_t i = 1; i < list->count; i++) {
        struct event *event = list->events[i];
        size_t at = i;
        for (; at > 0 && before(event, list->events[at - 1]); at--)
            list->events[at] = list->events[at - 1];
        list->events[at] = event;
    }
}

bool event_retire(void)
{
    struct list round = due_now;
    due_now = round_list;
    round_list = round;
    due_now.count = 0;
    sort(&round_list);
    for (size_t i = 0; i < round_list.count; i++)
        round_list.events[i]->fire(round_list.events[i]);
    fired += round_list.count;
    return round_list.count > 0;
}

uint64_t event_fired(void)
{
    return fired;
}
