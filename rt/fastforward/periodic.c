/* periodic.c: finds periods and skips them.
 *
 * Looks are taken whenever the leader has begun one more k loop. A state is kept, to compare later looks with, and
 * replaced when there were half as many looks again: so it lies within the period in the end, however late that begins
 * and however long it is. */
#include "periodic.h"

#include "symmetry.h"
#include "base/rates.h"
#include "sim/coroutine.h"
#include "machine/emitted.h"
#include "machine/stats.h"
#include "open_rows.h"
#include "state.h"
#include "common/arena.h"
#include "sim/observer.h"
#include "base/stopwatch.h"

/* A PE that feeds a composite, as it was when the state was kept. */
struct feeding {
    uint64_t fed, oldest;
};

bool steady_on;

/* The PE by whose tiles looks are timed, and how many of these it has begun when the next look is due. */
static const struct pe *leader;                         /* NULL: none feeds a composite that is long enough */
static uint64_t leader_at;

static struct pe **pes;                                 /* that feed composites, by rank, as of the last look */
static uint32_t pe_total;
static uint64_t *tiles;                                 /* by that order: tiles of a period, and of those skipped */
static uint64_t *steps;                                 /* by PE over the machine: tiles of a period */

static uint64_t began_ps;                               /* the last instant in which a PE began a composite, */
static uint32_t began, feeders;                         /* how many did then; how many feed one */
static bool changed = true;                             /* some PE has begun or ended a composite since then */
static uint64_t looks;                                  /* since something else happened than tiles */

/* The state that later looks are compared with. */
static struct {
    bool valid;
    struct fingerprint state;
    uint64_t t_ps, resumed;
    struct feeding *feeding;                            /* as pes */
    uint64_t until;                                     /* the look that replaces it */
} kept;

/* What is only counted: where, by state_machine_counts, and how much when the state was kept. */
static uint64_t **counts, *counts_then;
static size_t count_total;
static struct stats stats_then;

static uint64_t skipped;                                /* services */

uint64_t steady_services(void)
{
    return skipped;
}

void fastforward_reset(void)
{
    leader = NULL;
    changed = true;
    observer_watch(&open_rows_observer, false);
    observer_watch(&look_observer, false);
    skipped = 0;
    began = feeders = 0;
    began_ps = 0;
    symmetry_reset();
}

void steady_init(void)
{
    steady_on &= !observers_need_every_event() && !kb_own_models;
    observer_watch(&periodic_observer, steady_on);
    if (!steady_on)
        return;
    pes = arena_alloc(pe_count(), sizeof *pes);
    tiles = arena_alloc(pe_count(), sizeof *tiles);
    steps = arena_alloc(pe_count(), sizeof *steps);
    kept.feeding = arena_alloc(pe_count(), sizeof *kept.feeding);
    counts = NULL;
}

/* ---- when to look */

enum { LOOKS_WORTH = 8, SLEEP_WORTH = 8 };

/* Finding out who stands alike costs about as much as a few tiles of each PE. */
static bool is_worth_sleep(void)
{
    return began_ps == now_ps && 2 * began > feeders && pe_total && pes[0]->feeding->tiles >= SLEEP_WORTH;
}

/* A leader looks once a k loop, always at the same place of it. */
static bool is_worth_it(const struct pe *pe)
{
    return pe->feeding && !pe->failed && (pe->feeding->tiles - pe->fed) / pe->feeding->tiles_k >= LOOKS_WORTH;
}

static void lead(const struct pe *pe)
{
    leader = pe;
    if (pe)
        leader_at = pe->fed + pe->feeding->tiles_k;
}

/* Looks in this instant, too, if most PEs that feed begin in it: they may stand alike. */
static void feeder_turns(const struct pe *pe, bool ended)
{
    changed = true;
    if (began_ps != now_ps)
        began = 0;
    began_ps = now_ps;
    began += pe->feeding != NULL;
    feeders += (pe->feeding != NULL) - ended;
    if (2 * began > feeders || leader == pe)
        observer_watch(&look_observer, true);
    if (!leader && is_worth_it(pe))
        lead(pe);
}

static void tile_fed(const struct token *token)
{
    const struct pe *pe = token->command->pe;
    if (pe == leader && pe->fed >= leader_at)
        observer_watch(&look_observer, true);
}

static void find_pes(void)
{
    changed = false;
    pe_total = feeders = 0;
    for (struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++) {
        feeders += pe->feeding != NULL;
        if (pe->feeding && !symmetry_sleeps(pe))
            pes[pe_total++] = pe;
    }
}

/* The leader still, or the first for which it is worth it. */
static const struct pe *find_leader(void)
{
    if (leader && is_worth_it(leader))
        return leader;
    for (uint32_t i = 0; i < pe_total; i++)
        if (is_worth_it(pes[i]))
            return pes[i];
    return NULL;
}

/* ---- counts, and how they grow */

static void find_counts(void)
{
    count_total = state_machine_counts(NULL);
    counts = arena_alloc(count_total, sizeof *counts);
    counts_then = arena_alloc(count_total, sizeof *counts_then);
    state_machine_counts(counts);
}

static void settle(void)
{
    for (uint32_t i = 0; i < pe_total; i++)
        state_settle(pes[i]);
}

static void take_counts(void)
{
    if (!counts)
        find_counts();
    settle();
    for (size_t i = 0; i < count_total; i++)
        counts_then[i] = *counts[i];
    stats_then = stats;
}

/* Counts what was counted since then `times` times more. */
static void repeat_counts(uint64_t times)
{
    _Static_assert(sizeof stats % sizeof(uint64_t) == 0, "statistics are numbers of 64 bits and nothing else");
    uint64_t *all = (uint64_t *)&stats;
    const uint64_t *then = (const uint64_t *)&stats_then;
    settle();
    for (size_t i = 0; i < count_total; i++)
        *counts[i] = sum(*counts[i], product(*counts[i] - counts_then[i], times));
    for (size_t i = 0; i < sizeof stats / sizeof *all; i++)
        all[i] = sum(all[i], product(all[i] - then[i], times));
}

/* ---- the kept state */

static void keep(void)
{
    kept.until = looks + looks / 2 + 1;
    fingerprint_write(&kept.state);
    fingerprint_machine(&kept.state, pes, pe_total);
    kept.valid = fingerprint_holds(&kept.state);
    if (!kept.valid)
        return;
    kept.t_ps = now_ps;
    for (uint32_t i = 0; i < pe_total; i++)
        kept.feeding[i] = (struct feeding){pes[i]->fed, state_oldest_tile(pes[i])};
    take_counts();
    rows_begin();
}

/* ---- how many periods are sure */

/* The first tile from `oldest` on that need not have the size and the stages of the one that is `step` behind it. */
static uint64_t first_other(const struct command *command, uint64_t oldest, uint64_t step)
{
    const struct request *ask = &command->ask;
    uint64_t row = command->tiles_k * command->tiles_n, end = command->tiles - 1;
    uint64_t full_rows = ask->m % ask->tile_m ? command->tiles_m - 1 : command->tiles_m;
    if (end > full_rows * row)
        end = full_rows * row;
    uint64_t edge = (oldest / row + 1) * row - command->tiles_k;
    return ask->n % ask->tile_n && step % row && edge < end ? edge : end;
}

/* By how many periods a PE's composite can go on; the next tile may be under way to the feeder already. */
static uint64_t periods_of(const struct pe *pe, const struct feeding *then)
{
    const struct command *command = pe->feeding;
    uint64_t step = pe->fed - then->fed, end = first_other(command, then->oldest, step);
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

static uint64_t periods_sure(uint64_t period_ps)
{
    uint64_t kernel_ps, most = (UINT64_MAX - now_ps) / period_ps;
    event_waiting(&kernel_ps);
    if (kernel_ps != UINT64_MAX && most > (kernel_ps - 1 - now_ps) / period_ps)
        most = (kernel_ps - 1 - now_ps) / period_ps;
    for (uint32_t i = 0; i < pe_total && most; i++) {
        uint64_t periods = periods_of(pes[i], &kept.feeding[i]);
        steps[pe_number(pes[i])] = tiles[i] = pes[i]->fed - kept.feeding[i].fed;
        most = periods < most ? periods : most;
    }
    return most ? rows_repeat(steps, most) : 0;
}

/* ---- */

/* Skips what is sure, from a state that is the kept one again; false: nothing is. */
static bool skip(void)
{
    uint64_t period_ps = now_ps - kept.t_ps, periods = periods_sure(period_ps), services = stats.services;
    if (!periods)
        return false;
    repeat_counts(periods);
    for (uint32_t i = 0; i < pe_total; i++)
        tiles[i] *= periods;
    state_shift(pes, tiles, pe_total, period_ps * periods);
    skipped += stats.services - services;
    return true;
}

static bool is_kept_state(void)
{
    if (!kept.valid || kept.t_ps == now_ps)
        return false;
    fingerprint_compare(&kept.state);
    fingerprint_machine(&kept.state, pes, pe_total);
    return fingerprint_holds(&kept.state);
}

/* Whether somebody has acted who decides freely, or composites have begun or ended. */
static bool is_disturbed(void)
{
    bool disturbed = changed || kept.resumed != coroutine_resumed();
    kept.resumed = coroutine_resumed();
    return disturbed;
}

static void instant_ends(void)
{
    phase_enter(PHASE_steady);
    observer_watch(&look_observer, false);
    if (is_disturbed()) {
        find_pes();
        if (is_worth_sleep() && !symmetry_observer.watches && symmetry_sleep(pes, pe_total))
            find_pes();
        observer_watch(&open_rows_observer, false);
        kept.valid = false;
        looks = 0;
        kept.until = 2;
    }
    lead(find_leader());
    if (!leader)
        return;
    looks++;
    if ((is_kept_state() && skip()) || looks >= kept.until)
        keep();
}

struct observer periodic_observer = {
    .name = "steady state",
    .feeder_turns = feeder_turns,
    .tile_fed = tile_fed,
};

struct observer look_observer = {
    .name = "look for a period",
    .instant_ends = instant_ends,
};
