/* signals.c: changes are collected, and made when there are many of past times. To sort these costs less than to keep all
 * changes in the order of time. */
#include "signals.h"

#include <string.h>

#include "sim/event.h"

enum { MANY = 1 << 12, DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };     /* the digits of times by which they are sorted */

uint32_t signals_add(struct signals *signals)
{
    *array_add(&signals->all) = (struct signal){0};
    return (uint32_t)signals->all.count - 1;
}

/* ---- changes that are due */

/* Moves the changes of times before end_ps to `due`. */
static void take_before(struct signals *signals, uint64_t end_ps)
{
    size_t left = 0, count = signals->changes.count;
    struct signal_change *changes = signals->changes.at;
    array_reserve(&signals->due, count);
    signals->due.count = 0;
    for (size_t i = 0; i < count; i++)
        if (changes[i].t_ps < end_ps)
            signals->due.at[signals->due.count++] = changes[i];
        else
            changes[left++] = changes[i];
    signals->changes.count = left;
}

/* Sorts changes by their times with a radix sort. Returns where they are then: in one of the two arrays. */
static struct signal_change *sorted(struct signal_change *changes, struct signal_change *other, size_t count)
{
    static uint32_t places[DIGITS];
    uint64_t first_ps = UINT64_MAX, last_ps = 0;
    for (size_t i = 0; i < count; i++) {
        first_ps = changes[i].t_ps < first_ps ? changes[i].t_ps : first_ps;
        last_ps = changes[i].t_ps > last_ps ? changes[i].t_ps : last_ps;
    }
    for (unsigned shift = 0; shift < 64 && count && (last_ps - first_ps) >> shift; shift += DIGIT_BITS) {
        uint32_t place = 0;
        memset(places, 0, sizeof places);
        for (size_t i = 0; i < count; i++)
            places[(changes[i].t_ps - first_ps) >> shift & (DIGITS - 1)]++;
        for (unsigned digit = 0; digit < DIGITS; digit++) {
            uint32_t equal = places[digit];
            places[digit] = place;
            place += equal;
        }
        for (size_t i = 0; i < count; i++)
            other[places[(changes[i].t_ps - first_ps) >> shift & (DIGITS - 1)]++] = changes[i];
        struct signal_change *swapped = changes;
        changes = other;
        other = swapped;
    }
    return changes;
}

/* ---- signals */

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

void signals_tell_before(struct signals *signals, uint64_t end_ps)
{
    take_before(signals, end_ps);
    size_t count = signals->due.count;
    array_reserve(&signals->other, count);
    const struct signal_change *next = sorted(signals->due.at, signals->other.at, count);
    for (const struct signal_change *end = next + count; next < end;) {
        uint64_t t_ps = next->t_ps;
        for (; next < end && next->t_ps == t_ps; next++)
            change(signals, next->number, next->delta);
        tell(signals, t_ps);
    }
    signals->batch = signals->batch < MANY ? 2 * signals->batch + 1 : MANY;     /* the first ones are small: a short run has several */
    signals->enough = 2 * signals->changes.count + signals->batch;
}

void signals_finish(struct signals *signals)
{
    signals_tell_before(signals, UINT64_MAX);
}

void signals_instant_ends(struct signals *signals)
{
    if (signals->changes.count >= signals->enough)
        signals_tell_before(signals, now_ps + 1);
}
