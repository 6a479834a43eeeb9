/* event.c: the event queue.
 *
 * What is due within the next two microseconds hangs in buckets of 2 ns, whose bitmap finds the next one that holds
 * something; what is due later waits in a heap and moves over once. Only the bucket under way is sorted by time, and
 * most hold few events. What is due now goes into a list beside it, which is sorted by key when its round begins.
 * Memory grows before it is needed and is never given back. */
#include "event.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/diag.h"

uint64_t now_ps;
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

/* ---- lists of what is due in one round */

struct list {
    struct event **events;
    size_t count, room;
};

static struct list due_now, round_list;                 /* for the next round; the round under way */

static void list_add(struct list *list, struct event *event)
{
    list->events = grown(list->events, list->count, &list->room, sizeof *list->events);
    list->events[list->count++] = event;
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

/* ---- the far future: a 4-ary heap by time */

struct due {
    uint64_t t_ps;
    struct event *event;
};

static struct {
    struct due *heap;
    size_t count, room;
} later;

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

static struct due heap_pop(void)
{
    struct due first = later.heap[0], last = later.heap[--later.count];
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

/* ---- the near future: buckets, and the one under way, sorted */

enum { BUCKET_SHIFT = 11, BUCKETS = 1024, WORDS = BUCKETS / 64 };

static struct {
    struct due *due;
    size_t count, room;
} buckets[BUCKETS];

static uint64_t occupied[WORDS];                        /* a bit per bucket */

/* The last is due first. */
static struct {
    struct due *due;
    size_t count, room;
    uint64_t bucket;                                    /* number of the bucket under way: time / its width */
} current;

static void current_insert(struct due due)
{
    current.due = grown(current.due, current.count, &current.room, sizeof *current.due);
    size_t at = current.count++;
    for (; at > 0 && current.due[at - 1].t_ps < due.t_ps; at--)
        current.due[at] = current.due[at - 1];
    current.due[at] = due;
}

static void bucket_add(struct due due)
{
    size_t at = (due.t_ps >> BUCKET_SHIFT) % BUCKETS;
    buckets[at].due = grown(buckets[at].due, buckets[at].count, &buckets[at].room, sizeof *buckets[at].due);
    buckets[at].due[buckets[at].count++] = due;
    occupied[at / 64] |= UINT64_C(1) << at % 64;
}

static void future_add(struct due due)
{
    uint64_t ahead = (due.t_ps >> BUCKET_SHIFT) - current.bucket;
    if (ahead == 0)
        current_insert(due);
    else if (ahead < BUCKETS)
        bucket_add(due);
    else
        heap_push(due);
}

/* How many buckets ahead the next one is that holds something; BUCKETS: none does. */
static uint64_t next_occupied(void)
{
    size_t from = (current.bucket + 1) % BUCKETS;
    for (size_t i = 0; i <= WORDS; i++) {
        size_t word = (from / 64 + i) % WORDS;
        uint64_t bits = occupied[word];
        if (i == 0)
            bits &= ~UINT64_C(0) << from % 64;
        if (i == WORDS)
            bits &= ~(~UINT64_C(0) << from % 64);
        if (bits)
            return (word * 64 + (size_t)__builtin_ctzll(bits) - from) % BUCKETS + 1;
    }
    return BUCKETS;
}

/* Goes to the next bucket that holds something; false: none does. */
static bool current_refill(void)
{
    uint64_t ahead = next_occupied();
    if (ahead < BUCKETS)
        current.bucket += ahead;
    else if (later.count)
        current.bucket = later.heap[0].t_ps >> BUCKET_SHIFT;
    else
        return false;
    size_t at = current.bucket % BUCKETS;
    for (size_t i = 0; i < buckets[at].count; i++)
        current_insert(buckets[at].due[i]);
    buckets[at].count = 0;
    occupied[at / 64] &= ~(UINT64_C(1) << at % 64);
    while (later.count && (later.heap[0].t_ps >> BUCKET_SHIFT) - current.bucket < BUCKETS)
        future_add(heap_pop());
    return true;
}

/* ---- */

void event_at(struct event *event, uint64_t t_ps)
{
    assert(t_ps >= now_ps);
    if (t_ps == now_ps)
        list_add(&due_now, event);
    else
        future_add((struct due){t_ps, event});
}

static void nothing(struct event *event)
{
    (void)event;
}

void event_cancel(struct event *event)
{
    event->fire = nothing;
}

uint64_t time_after(uint64_t t_ps, uint64_t d_ps)
{
    uint64_t sum;
    if (__builtin_add_overflow(t_ps, d_ps, &sum)) {
        fprintf(stderr, "%s: simulated time runs past 2^64 ps (213 days)\n", program_name);
        exit(1);                                        /* it is the run that failed, not the host */
    }
    return sum;
}

/* Whether something is due at a later time; drops what was cancelled before. */
static bool future_left(void)
{
    while (current.count || current_refill()) {
        if (current.due[current.count - 1].event->fire != nothing)
            return true;
        current.count--;
    }
    return false;
}

bool event_next_instant(void)
{
    if (!future_left())
        return false;
    now_ps = current.due[current.count - 1].t_ps;
    while (current.count && current.due[current.count - 1].t_ps == now_ps)
        list_add(&due_now, current.due[--current.count].event);
    return true;
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
