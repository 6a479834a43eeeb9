/* fastforward.c: decides when states are compared.
 *
 * For symmetry: when most of the PEs that feed composites have begun theirs in this instant. For periods: each time the
 * leader, a PE with many tiles left, has begun one more k loop, so that the states compared are at the same place of the
 * loop. */
#include "fastforward.h"

#include "base/stopwatch.h"
#include "common/arena.h"
#include "launch/fanout.h"
#include "machine/emitted.h"
#include "machine/plan_generator.h"
#include "machine/dma_requests.h"
#include "period.h"
#include "sim/coroutine.h"
#include "sim/observer.h"
#include "symmetry.h"

/* How much must be left for a comparison to pay: k loops of the leader, tiles of a PE. After a comparison for symmetry in
 * vain it is twice as many tiles, up to SYMMETRY_TILES_MOST, so that PEs which begin short composites again and again, in
 * states that are never equal, seldom pay for one. */
enum { LEADER_LOOPS = 8, SYMMETRY_TILES = 8, SYMMETRY_TILES_MOST = 1024 };

bool fastforward_on;

/* PEs that feed composites. */
static struct {
    struct pe **awake;                                  /* those that do not sleep, by rank, */
    uint32_t awake_count;
    bool awake_known;                                   /* unless a PE has begun or ended a composite since */
    uint32_t feeders;                                   /* all of them; how many of these began their composite */
    uint32_t began;                                     /* at began_ps, the last time that any did */
    uint64_t began_ps;
    uint64_t symmetry_tiles;                            /* that a PE needs for a comparison for symmetry */
    const struct pe *leader;                            /* NULL: no PE has enough tiles left */
    uint64_t leader_fed;                                /* tiles fed by it at which the next comparison is due */
    uint64_t resumed, requests;                         /* coroutine_resumed and fanout_count at the last comparison */
} feeding;

void fastforward_reset(void)
{
    observer_watch(&comparison_observer, false);
    feeding.awake_known = false;
    feeding.feeders = feeding.began = 0;
    feeding.began_ps = 0;
    feeding.symmetry_tiles = SYMMETRY_TILES;
    feeding.leader = NULL;
    period_reset();
    symmetry_reset();
}

void fastforward_init(void)
{
    fastforward_on &= !observers_need_every_event() && !kb_own_models && !plan_generator() && !dma_has_requests();
    observer_watch(&fastforward_observer, fastforward_on);
    if (!fastforward_on)
        return;
    feeding.awake = arena_alloc(pe_count(), sizeof *feeding.awake);
    period_init();
}

static void find_awake(void);

void fastforward_follow(void)
{
    bool on = fastforward_on && !observers_need_every_event();
    if (on == fastforward_observer.watches)
        return;
    observe_programs_act();                             /* who sleeps wakes */
    observer_watch(&fastforward_observer, on);
    observer_watch(&comparison_observer, false);
    feeding.leader = NULL;
    period_forget();
    find_awake();
    feeding.awake_known = false;
}

static bool has_many_loops(const struct pe *pe)
{
    return pe->feeding && !pe->failed && (pe->feeding->tiles - pe->fed) / pe->feeding->tiles_k >= LEADER_LOOPS;
}

static void lead(const struct pe *pe)
{
    feeding.leader = pe;
    if (pe)
        feeding.leader_fed = pe->fed + pe->feeding->tiles_k;
}

static void feeder_turns(const struct pe *pe, bool ended)
{
    feeding.awake_known = false;
    if (feeding.began_ps != now_ps)
        feeding.began = 0;
    feeding.began_ps = now_ps;
    feeding.began += pe->feeding != NULL;
    feeding.feeders += (pe->feeding != NULL) - ended;
    if (2 * feeding.began > feeding.feeders || feeding.leader == pe)
        observer_watch(&comparison_observer, true);
    if (!feeding.leader && has_many_loops(pe))
        lead(pe);
}

static void tile_fed(const struct token *token, uint64_t end_ps)
{
    (void)end_ps;
    const struct pe *pe = token->command->pe;
    if (pe == feeding.leader && pe->fed >= feeding.leader_fed)
        observer_watch(&comparison_observer, true);
}

static void find_awake(void)
{
    feeding.awake_known = true;
    feeding.awake_count = feeding.feeders = 0;
    for (struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++) {
        feeding.feeders += pe->feeding != NULL;
        if (pe->feeding && !symmetry_sleeps(pe))
            feeding.awake[feeding.awake_count++] = pe;
    }
}

/* Returns the leader while it has many loops left, or else the first PE that has. */
static const struct pe *find_leader(void)
{
    if (feeding.leader && has_many_loops(feeding.leader))
        return feeding.leader;
    for (uint32_t i = 0; i < feeding.awake_count; i++)
        if (has_many_loops(feeding.awake[i]))
            return feeding.awake[i];
    return NULL;
}

/* Whether something other than tiles has happened since the last comparison: a composite has begun or ended, the code of a
 * kernel or of a host program has run, or the host has begun a request. */
static bool is_disturbed(void)
{
    bool disturbed = !feeding.awake_known || feeding.requests != fanout_count();
    disturbed |= feeding.resumed != coroutine_resumed();
    feeding.resumed = coroutine_resumed();
    feeding.requests = fanout_count();
    return disturbed;
}

static bool may_be_symmetric(void)
{
    return !symmetry_observer.watches && feeding.began_ps == now_ps && 2 * feeding.began > feeding.feeders &&
           feeding.awake_count && feeding.awake[0]->feeding->tiles >= feeding.symmetry_tiles;
}

static void reduce_by_symmetry(void)
{
    if (symmetry_sleep(feeding.awake, feeding.awake_count)) {
        feeding.symmetry_tiles = SYMMETRY_TILES;
        find_awake();
    } else if (feeding.symmetry_tiles < SYMMETRY_TILES_MOST) {
        feeding.symmetry_tiles *= 2;
    }
}

static void instant_ends(void)
{
    phase_enter(PHASE_fastforward);
    observer_watch(&comparison_observer, false);
    if (is_disturbed()) {
        find_awake();
        if (may_be_symmetric())
            reduce_by_symmetry();
        period_forget();
    }
    feeding.leader = find_leader();
    if (feeding.leader)
        period_compare(feeding.awake, feeding.awake_count);
    lead(feeding.leader);                               /* one k loop from where it is now, after periods were skipped */
}

struct observer fastforward_observer = {
    .name = "fast-forward",
    .feeder_turns = feeder_turns,
    .tile_fed = tile_fed,
};

struct observer comparison_observer = {
    .name = "comparison of states",
    .instant_ends = instant_ends,
};
