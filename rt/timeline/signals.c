/* signals.c: changes of this instant are made in place, later ones wait in a heap. */
#include "signals.h"

#include "sim/event.h"

uint32_t signals_add(struct signals *signals)
{
    *array_add(&signals->all) = (struct signal){0};
    return (uint32_t)signals->all.count - 1;
}

static void change(struct signals *signals, uint32_t number, int64_t delta)
{
    struct signal *signal = &signals->all.at[number];
    signal->value += delta;
    if (signal->changed)
        return;
    signal->changed = true;
    *array_add(&signals->changed) = number;
}

static void tell(struct signals *signals, uint64_t t_ps)
{
    for (size_t i = 0; i < signals->changed.count; i++) {
        uint32_t number = signals->changed.at[i];
        struct signal *signal = &signals->all.at[number];
        signal->changed = false;
        if (signal->value == signal->told)
            continue;
        signal->told = signal->value;
        signals->tell(number, t_ps, signal->value);
    }
    signals->changed.count = 0;
}

/* ---- the heap */

static void later_add(struct signals *signals, struct later_change added)
{
    (void)array_add(&signals->later);
    struct later_change *heap = signals->later.at;
    size_t at = signals->later.count - 1;
    for (; at && heap[(at - 1) / 2].t_ps > added.t_ps; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = added;
}

static struct later_change later_take(struct signals *signals)
{
    struct later_change *heap = signals->later.at, first = heap[0], moved = heap[--signals->later.count];
    size_t count = signals->later.count, at = 0;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && heap[child + 1].t_ps < heap[child].t_ps;
        if (heap[child].t_ps >= moved.t_ps)
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
    return first;
}

/* Makes and tells the changes of all times before end_ps that lie in the heap. */
static void tell_before(struct signals *signals, uint64_t end_ps)
{
    while (signals->later.count && signals->later.at[0].t_ps < end_ps) {
        uint64_t t_ps = signals->later.at[0].t_ps;
        while (signals->later.count && signals->later.at[0].t_ps == t_ps) {
            struct later_change next = later_take(signals);
            change(signals, next.number, next.delta);
        }
        tell(signals, t_ps);
    }
}

/* ---- changes */

void signals_change(struct signals *signals, uint32_t number, uint64_t t_ps, int64_t delta)
{
    if (t_ps > now_ps) {
        later_add(signals, (struct later_change){t_ps, delta, number});
        return;
    }
    tell_before(signals, now_ps);
    change(signals, number, delta);
}

void signals_instant_ends(struct signals *signals)
{
    tell_before(signals, now_ps);
    while (signals->later.count && signals->later.at[0].t_ps == now_ps) {
        struct later_change next = later_take(signals);
        change(signals, next.number, next.delta);
    }
    tell(signals, now_ps);
}

void signals_finish(struct signals *signals)
{
    tell_before(signals, UINT64_MAX);
}
