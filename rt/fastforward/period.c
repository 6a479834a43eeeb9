/* period.c: finds periods by Brent's algorithm for cycles of a sequence, and skips them.
 *
 * Each state of the sequence is compared with one reference state. The reference is replaced after ever longer times,
 * each half as long again as all before it, so in the end it lies within the period, however late that begins and however
 * long it is. */
#include "period.h"

#include "base/rates.h"
#include "common/arena.h"
#include "machine/emitted.h"
#include "machine/stats.h"
#include "open_rows.h"
#include "sim/loop.h"
#include "sim/observer.h"
#include "state.h"

/* How far a PE's composite is. */
struct progress {
    uint64_t fed, oldest;                               /* tiles fed; the oldest tile that is under way */
};

static struct {
    struct pe *const *pes;                              /* arguments of period_compare */
    uint32_t count;
    uint64_t *tiles;                                    /* of each of these PEs: in a period, then in all of them */
    uint64_t *steps;                                    /* tiles in a period, by number of the PE over the machine */
    uint64_t compared, replaced_at;                     /* states since period_forget; which becomes the reference */
    uint64_t **counters;                                /* state_machine_counters; NULL before the first reference */
    size_t counter_count;
    uint64_t services;                                  /* in skipped periods */
} period;

static struct {
    bool valid;
    struct fingerprint state;
    uint64_t t_ps;
    struct progress *progress;                          /* of each of period.pes */
    uint64_t *counters;                                 /* values */
    struct stats stats;
} reference;

uint64_t period_services(void)
{
    return period.services;
}

void period_reset(void)
{
    observer_watch(&open_rows_observer, false);
    period.services = 0;
}

void period_init(void)
{
    period.tiles = arena_alloc(pe_count(), sizeof *period.tiles);
    period.steps = arena_alloc(pe_count(), sizeof *period.steps);
    period.counters = NULL;
    reference.progress = arena_alloc(pe_count(), sizeof *reference.progress);
}

void period_forget(void)
{
    observer_watch(&open_rows_observer, false);
    reference.valid = false;
    period.compared = 0;
    period.replaced_at = 2;
}

/* ---- what is only counted */

static void find_counters(void)
{
    period.counter_count = state_machine_counters(NULL);
    period.counters = arena_alloc(period.counter_count, sizeof *period.counters);
    reference.counters = arena_alloc(period.counter_count, sizeof *reference.counters);
    state_machine_counters(period.counters);
}

static void count_busy(void)
{
    for (uint32_t i = 0; i < period.count; i++)
        state_count_busy(period.pes[i]);
}

static void reference_take_counters(void)
{
    if (!period.counters)
        find_counters();
    count_busy();
    for (size_t i = 0; i < period.counter_count; i++)
        reference.counters[i] = *period.counters[i];
    reference.stats = stats;
}

/* Counts what was counted since the reference `times` times more. */
static void repeat_counters(uint64_t times)
{
    count_busy();
    for (size_t i = 0; i < period.counter_count; i++)
        *period.counters[i] = sum(*period.counters[i],
                                  product(*period.counters[i] - reference.counters[i], times));
    stats_repeat(&reference.stats, times);
}

/* ---- the reference */

static void reference_take(void)
{
    period.replaced_at = period.compared + period.compared / 2 + 1;
    fingerprint_write(&reference.state);
    fingerprint_machine(&reference.state, period.pes, period.count);
    reference.valid = fingerprint_holds(&reference.state);
    if (!reference.valid)
        return;
    reference.t_ps = now_ps;
    for (uint32_t i = 0; i < period.count; i++)
        reference.progress[i] = (struct progress){period.pes[i]->fed, state_oldest_tile(period.pes[i])};
    reference_take_counters();
    open_rows_record();
    observe_reference_taken();
}

static bool is_reference_state(void)
{
    if (!reference.valid || reference.t_ps == now_ps)
        return false;
    fingerprint_compare(&reference.state);
    fingerprint_machine(&reference.state, period.pes, period.count);
    return fingerprint_holds(&reference.state);
}

/* ---- how many periods are sure */

/* The first tile from `oldest` on that may differ in size or stages from the one that comes `step` tiles after it. */
static uint64_t first_unequal_tile(const struct command *command, uint64_t oldest, uint64_t step)
{
    const struct request *ask = &command->ask;
    uint64_t row = command->tiles_k * command->tiles_n, end = command->tiles - 1;
    uint64_t full_rows = ask->m % ask->tile_m ? command->tiles_m - 1 : command->tiles_m;
    if (end > full_rows * row)
        end = full_rows * row;
    uint64_t edge = (oldest / row + 1) * row - command->tiles_k;
    return ask->n % ask->tile_n && step % row && edge < end ? edge : end;
}

/* By how many periods a PE's composite can go on. The tile pe->fed itself may be on its way to the feeder already, and
 * has to be equal too. */
static uint64_t sure_for_pe(const struct pe *pe, const struct progress *then)
{
    const struct command *command = pe->feeding;
    uint64_t step = pe->fed - then->fed, end = first_unequal_tile(command, then->oldest, step);
    for (unsigned operand = 0; operand < OPERANDS; operand++) {
        struct range range;
        if (tiling_moves(command, operand) &&
            address_decode(command->ask.address[operand], tiling_extent(command, operand), &range))
            return 0;
    }
    if (!step || step % command->tiles_k || pe->fed >= end)
        return 0;
    return (end - 1 - pe->fed) / step;
}

static uint64_t sure_periods(uint64_t period_ps)
{
    uint64_t kernel_ps, most = (UINT64_MAX - now_ps) / period_ps;
    event_waiting(&kernel_ps);
    if (loop_limit_ps() <= now_ps)
        return 0;
    kernel_ps = loop_limit_ps() < kernel_ps ? loop_limit_ps() : kernel_ps;
    if (kernel_ps != UINT64_MAX && most > (kernel_ps - 1 - now_ps) / period_ps)
        most = (kernel_ps - 1 - now_ps) / period_ps;
    for (uint32_t i = 0; i < period.count && most; i++) {
        const struct pe *pe = period.pes[i];
        uint64_t sure = sure_for_pe(pe, &reference.progress[i]);
        period.steps[pe_number(pe)] = period.tiles[i] = pe->fed - reference.progress[i].fed;
        most = sure < most ? sure : most;
    }
    return most ? open_rows_replay(period.steps, most) : 0;
}

/* Skips the periods that are sure, in the reference state. Returns false if there are none. */
static bool skip_periods(void)
{
    uint64_t period_ps = now_ps - reference.t_ps, periods = sure_periods(period_ps), services = stats.services;
    if (!periods)
        return false;
    repeat_counters(periods);
    observe_periods_skipped(periods, period_ps * periods);
    for (uint32_t i = 0; i < period.count; i++)
        period.tiles[i] *= periods;
    state_shift(period.pes, period.tiles, period.count, period_ps * periods);
    period.services += stats.services - services;
    return true;
}

void period_compare(struct pe *const *pes, uint32_t count)
{
    period.pes = pes;
    period.count = count;
    period.compared++;
    if ((is_reference_state() && skip_periods()) || period.compared >= period.replaced_at)
        reference_take();
}
