/* symmetry.c: partitions PEs into groups that share nothing, compares the groups, and simulates one of them for all.
 *
 * A PE uses its own nodes and, for each operand, the node of its memory and the way of the data from or to it. PEs that
 * use the same node or link are in one group: a partition by union-find. The nodes and links of a group are labelled in
 * the order in which its PEs first use them. Two groups are isomorphic if their labels and the kinds of what is labelled
 * come in the same order, and if sorting the labels by the nodes' ranks, which decide who comes first in a round, gives
 * the same order. Parts of isomorphic groups with the same label are counterparts, and so states of groups are compared
 * by labels. */
#define _GNU_SOURCE                                     /* qsort_r */
#include "symmetry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/diag.h"
#include "machine/dma.h"
#include "machine/emitted.h"
#include "machine/memory.h"
#include "machine/scheduler.h"
#include "machine/stats.h"
#include "machine/tile.h"
#include "sim/loop.h"
#include "sim/observer.h"
#include "state.h"

enum { NONE = UINT32_MAX };

/* PEs by position among those of symmetry_sleep, nodes by rank, links by number. The tables have the size of the machine
 * and are made at the first use. */
static struct {
    uint32_t *node_user, *link_user;                    /* position of the first PE that uses it; or NONE */
    uint32_t *node_label, *link_label;                  /* or NONE */
    uint32_t *parent;                                   /* union-find of PEs; the root of a set is its first PE */
    uint32_t *group_of;                                 /* number of each PE's group */
    struct group *groups;                               /* of equal size, by the rank of their first PE */
    uint32_t group_count;
    struct pe **pes;                                    /* of all groups, one group after the other; */
    uint32_t *nodes, *links;                            /* likewise; counterparts have the same position */
    uint32_t *sorted;                                   /* labels of a group, by rank of their nodes */
} partition;

/* All groups but the first, the representative, sleeping. */
static struct {
    bool *asleep;                                       /* by number of the PE over the machine */
    struct stats stats;                                 /* when they went to sleep */
    struct ARRAY(uint64_t) values;                      /* of the representative's counters, then or later */
    struct ARRAY(uint64_t *) counters;                  /* state_group_counters of the representative, */
    struct ARRAY(uint64_t *) sleeper_counters;          /* and of a group that sleeps */
    const struct command **composites;                  /* of the representative's PEs; NULL: complete by now */
    uint64_t services;                                  /* of PEs while they slept */
} sleeping;

static void *table(size_t count, size_t size)
{
    void *rows = calloc(count, size);
    if (!rows)
        die("no memory for %zu parts of the machine", count);
    return rows;
}

static void make_tables(void)
{
    size_t nodes = node_count(), links = link_count(), pes = pe_count();
    partition.node_user = table(nodes, sizeof *partition.node_user);
    partition.node_label = table(nodes, sizeof *partition.node_label);
    partition.nodes = table(nodes, sizeof *partition.nodes);
    partition.sorted = table(nodes, sizeof *partition.sorted);
    partition.link_user = table(links, sizeof *partition.link_user);
    partition.link_label = table(links, sizeof *partition.link_label);
    partition.links = table(links, sizeof *partition.links);
    partition.parent = table(pes, sizeof *partition.parent);
    partition.group_of = table(pes, sizeof *partition.group_of);
    partition.groups = table(pes, sizeof *partition.groups);
    partition.pes = table(pes, sizeof *partition.pes);
    sleeping.asleep = table(pes, sizeof *sleeping.asleep);
    sleeping.composites = table(pes, sizeof *sleeping.composites);
}

/* ---- what a PE uses */

/* Calls node and link for each that a PE uses, in a fixed order. */
struct walk {
    void (*node)(struct walk *walk, uint32_t rank);
    void (*link)(struct walk *walk, uint64_t link, uint32_t speed);
    uint32_t pe;                                        /* position of the PE */
    struct group *group;
    struct fingerprint *print;
};

static void walk_way(struct walk *walk, struct way way)
{
    struct traversal along = traversal_of(way);
    walk->node(walk, along.rank);
    while (traversal_next(&along)) {
        walk->link(walk, along.hop.link, along.hop.speed);
        walk->node(walk, along.rank);
    }
}

/* A request to read, or an acknowledgement, uses nothing, and takes its time. That is equal where the ways of data are, unless
 * it takes another way than they do. */
static void walk_control(struct walk *walk, struct way way)
{
    if (walk->print && (kb_shape.own_answers || kb_shape.planes > 1))
        fingerprint_add(walk->print, route_latency_ps(route_of(way)));
}

/* Returns false if a part of an operand is in a TCM, or outside its memory. */
static bool walk_composite(struct walk *walk, const struct pe *pe, const struct command *command)
{
    struct place dma = place_pe(pe_number(pe), NODE_pe_dma);
    for (unsigned operand = 0; operand < OPERANDS; operand++) {
        struct range range;
        if (!tiling_moves(command, operand))
            continue;
        if (address_decode(command->ask.address[operand], tiling_extent(command, operand), &range) ||
            range.space == SPACE_TCM)
            return false;
        struct way request = way_of(dma, range_place(&range), operand == OPERAND_C ? kb_shape.plane_of_write : 0);
        walk_way(walk, operand == OPERAND_C ? request : way_answer(request, kb_shape.plane_of_read));
        walk_control(walk, operand == OPERAND_C ? way_answer(request, 0) : request);
    }
    return true;
}

static bool walk_pe(struct walk *walk, const struct pe *pe)
{
    for (uint32_t i = 0; i < PE_NODES; i++)
        walk->node(walk, pe->rank + i);
    return walk_composite(walk, pe, pe->feeding);
}

/* ---- the partition */

static uint32_t root_of(uint32_t pe)
{
    while (partition.parent[pe] != pe)
        pe = partition.parent[pe] = partition.parent[partition.parent[pe]];
    return pe;
}

static void unite(uint32_t *user, uint32_t pe)
{
    if (*user == NONE) {
        *user = pe;
        return;
    }
    uint32_t a = root_of(*user), b = root_of(pe);
    partition.parent[a > b ? a : b] = a < b ? a : b;
}

static void unite_node(struct walk *walk, uint32_t rank)
{
    unite(&partition.node_user[rank], walk->pe);
}

static void unite_link(struct walk *walk, uint64_t link, uint32_t speed)
{
    (void)speed;
    unite(&partition.link_user[link], walk->pe);
}

static bool unite_all(struct pe *const *pes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        partition.parent[i] = i;
    for (uint32_t i = 0; i < count; i++)
        if (!walk_pe(&(struct walk){.node = unite_node, .link = unite_link, .pe = i}, pes[i]))
            return false;
    return true;
}

/* Sorts the PEs by group. Returns false if there is one group, or if groups differ in size. */
static bool sort_pes(struct pe *const *pes, uint32_t count)
{
    uint32_t groups = 0;
    for (uint32_t i = 0; i < count; i++)
        partition.group_of[i] = root_of(i) == i ? groups++ : partition.group_of[root_of(i)];
    partition.group_count = groups;
    if (groups < 2 || count % groups)
        return false;
    for (uint32_t i = 0; i < groups; i++)
        partition.groups[i] = (struct group){.pe = partition.pes + i * (count / groups)};
    for (uint32_t i = 0; i < count; i++) {
        struct group *group = &partition.groups[partition.group_of[i]];
        if (group->pes == count / groups)
            return false;
        partition.pes[(group->pe - partition.pes) + group->pes++] = pes[i];
    }
    return true;
}

/* ---- labels, and whether groups are isomorphic */

static void label_node(struct walk *walk, uint32_t rank)
{
    struct place place = rank_place(rank);
    struct group *group = walk->group;
    if (partition.node_label[rank] == NONE) {
        partition.node_label[rank] = group->nodes;
        partition.nodes[(group->node - partition.nodes) + group->nodes++] = rank;
    }
    fingerprint_add(walk->print, partition.node_label[rank]);
    fingerprint_add(walk->print, place.cube == OUTSIDE ? place.node : kb_cube_nodes[place.node].kind);
}

static void label_link(struct walk *walk, uint64_t link, uint32_t speed)
{
    struct group *group = walk->group;
    if (partition.link_label[link] == NONE) {
        partition.link_label[link] = group->links;
        partition.links[(group->link - partition.links) + group->links++] = link;
    }
    fingerprint_add(walk->print, partition.link_label[link]);
    fingerprint_add(walk->print, speed);
}

static int compare_ranks(const void *x, const void *y, void *nodes)
{
    const uint32_t *rank = nodes;
    uint32_t a = rank[*(const uint32_t *)x], b = rank[*(const uint32_t *)y];
    return a < b ? -1 : a > b;
}

static void add_order_of_ranks(struct fingerprint *print, const struct group *group)
{
    for (uint32_t i = 0; i < group->nodes; i++)
        partition.sorted[i] = i;
    qsort_r(partition.sorted, group->nodes, sizeof *partition.sorted, compare_ranks, (void *)group->node);
    for (uint32_t i = 0; i < group->nodes; i++)
        fingerprint_add(print, partition.sorted[i]);
}

/* Labels what a group uses, and adds its structure to a fingerprint. */
static void label_group(struct fingerprint *print, struct group *group)
{
    struct walk walk = {.node = label_node, .link = label_link, .group = group, .print = print};
    for (uint32_t i = 0; i < group->pes; i++)
        walk_pe(&walk, group->pe[i]);
    add_order_of_ranks(print, group);
}

static bool are_isomorphic(void)
{
    static struct fingerprint structure;                /* of the first group */
    fingerprint_write(&structure);
    for (uint32_t i = 0; i < partition.group_count; i++) {
        struct group *group = &partition.groups[i];
        group->node = i ? group[-1].node + group[-1].nodes : partition.nodes;
        group->link = i ? group[-1].link + group[-1].links : partition.links;
        label_group(&structure, group);
        if (!fingerprint_holds(&structure))
            return false;
        fingerprint_compare(&structure);
    }
    return true;
}

/* Returns false if there are no several isomorphic groups. */
static bool find_groups(struct pe *const *pes, uint32_t count)
{
    memset(partition.node_user, 0xff, node_count() * sizeof *partition.node_user);
    memset(partition.node_label, 0xff, node_count() * sizeof *partition.node_label);
    memset(partition.link_user, 0xff, link_count() * sizeof *partition.link_user);
    memset(partition.link_label, 0xff, link_count() * sizeof *partition.link_label);
    return unite_all(pes, count) && sort_pes(pes, count) && are_isomorphic();
}

/* ---- sleep */

/* Whether all groups are in the same state, and no other events wait than theirs and those of kernels, the first of which
 * *kernel_ps is then set to. */
static bool are_in_same_state(uint64_t *kernel_ps)
{
    static struct fingerprint state;                    /* of the first group */
    state.labels = partition.node_label;
    machine_settle();
    fingerprint_write(&state);
    for (uint32_t i = 0; i < partition.group_count; i++) {
        fingerprint_group(&state, &partition.groups[i]);
        if (!fingerprint_holds(&state))
            return false;
        if (i == 0 && state.events * partition.group_count != event_waiting(kernel_ps))
            return false;
        fingerprint_compare(&state);
    }
    return true;
}

static const struct group *representative(void)
{
    return &partition.groups[0];
}

static void take_counters(void)
{
    size_t count = state_group_counters(representative(), NULL);
    array_reserve(&sleeping.values, count);
    array_reserve(&sleeping.counters, count);
    array_reserve(&sleeping.sleeper_counters, count);
    state_group_counters(representative(), sleeping.counters.at);
    for (size_t i = 0; i < count; i++)
        sleeping.values.at[i] = *sleeping.counters.at[i];
    sleeping.stats = stats;
}

static bool is_of_sleepers(uint32_t rank)
{
    return partition.node_user[rank] != NONE && partition.group_of[partition.node_user[rank]] > 0;
}

bool symmetry_sleep(struct pe *const *pes, uint32_t count)
{
    uint64_t kernel_ps;
    if (!partition.node_user)
        make_tables();
    if (!find_groups(pes, count) || !are_in_same_state(&kernel_ps))
        return false;
    loop_alarm_set(kernel_ps);
    observer_watch(&symmetry_observer, true);
    for (uint32_t i = 0; i < count; i++)
        state_count_busy(pes[i]);
    take_counters();
    event_drop(is_of_sleepers);
    for (uint32_t i = 0; i < representative()->pes; i++)
        sleeping.composites[i] = representative()->pe[i]->feeding;
    for (uint32_t i = representative()->pes; i < count; i++) {
        sleeping.asleep[pe_number(partition.pes[i])] = true;
        state_drop_tiles(partition.pes[i]);
    }
    observe_groups_sleep();
    return true;
}

bool symmetry_sleeps(const struct pe *pe)
{
    return sleeping.asleep && sleeping.asleep[pe_number(pe)];
}

/* ---- waking up */

/* Adds what was counted for a part of the representative since it had the given values to its counterpart in `to`. */
static void add_counted(const struct group *to, const uint64_t *values, uint64_t *const *counters)
{
    size_t count = state_group_counters(to, sleeping.sleeper_counters.at);
    for (size_t i = 0; i < count; i++)
        *sleeping.sleeper_counters.at[i] += *counters[i] - values[i];
}

static void wake_group(const struct group *group)
{
    const struct group_pair pair = {representative(), group, partition.node_label};
    add_counted(group, sleeping.values.at, sleeping.counters.at);
    for (uint32_t i = 0; i < group->nodes; i++)
        state_copy_node(&pair, i);
    for (uint32_t i = 0; i < group->links; i++)
        state_copy_link(&pair, i);
    for (uint32_t i = 0; i < group->pes; i++) {
        state_copy_pe(&pair, i, sleeping.composites[i]);
        sleeping.asleep[pe_number(group->pe[i])] = false;
    }
    observe_group_wakes(&pair);
}

/* Before kernels or host programs do anything that may tell groups apart. */
static void wake(void)
{
    uint64_t sleepers = partition.group_count - 1;
    machine_settle();
    observer_watch(&symmetry_observer, false);
    loop_alarm_set(UINT64_MAX);
    sleeping.services += (stats.services - sleeping.stats.services) * sleepers;
    stats_repeat(&sleeping.stats, sleepers);
    for (uint32_t i = 0; i < representative()->pes; i++)
        state_count_busy(representative()->pe[i]);
    for (uint32_t i = 1; i < partition.group_count; i++)
        wake_group(&partition.groups[i]);
}

static void wake_at(uint64_t t_ps)
{
    if (t_ps < loop_alarm_ps())
        loop_alarm_set(t_ps);
}

static void kernel_will_act(const struct tl *tl, enum kernel_act act, uint64_t t_ps)
{
    (void)tl, (void)act;
    wake_at(t_ps);
}

/* The host may act when it has the answer, which is at a later time. */
static void kernel_ends(const struct tl *tl)
{
    (void)tl;
    wake_at(now_ps);
}

/* The position of a PE in the representative: while PEs sleep, nothing else is under way. */
static uint32_t position_of(const struct pe *pe)
{
    uint32_t position = 0;
    while (position < representative()->pes && representative()->pe[position] != pe)
        position++;
    assert(position < representative()->pes);
    return position;
}

/* Completes the counterparts of a composite in the groups that sleep. Counters of their PEs are brought up to date first,
 * because the end of a kernel reads them. */
static void command_completed(const struct command *command)
{
    struct pe *pe = command->pe;
    if (symmetry_sleeps(pe))
        return;
    uint32_t position = position_of(pe);
    size_t per_pe = state_group_counters(&(struct group){.pe = &pe, .pes = 1}, NULL);
    uint64_t *const *counters = &sleeping.counters.at[position * per_pe];
    uint64_t *values = &sleeping.values.at[position * per_pe];
    state_count_busy(pe);
    for (uint32_t i = 1; i < partition.group_count; i++) {
        struct pe *sleeper = partition.groups[i].pe[position];
        struct command *counterpart = sleeper->feeding;
        add_counted(&(struct group){.pe = &sleeper, .pes = 1}, values, counters);
        sleeper->feeding = NULL;
        counterpart->tiles_left = 0;
        scheduler_complete(counterpart);
    }
    for (size_t i = 0; i < per_pe; i++)
        values[i] = *counters[i];
    sleeping.composites[position] = NULL;
}

uint64_t symmetry_services(void)
{
    return sleeping.services;
}

void symmetry_reset(void)
{
    sleeping.services = 0;
    observer_watch(&symmetry_observer, false);
    loop_alarm_set(UINT64_MAX);
    if (sleeping.asleep)
        memset(sleeping.asleep, 0, pe_count() * sizeof *sleeping.asleep);
}

struct observer symmetry_observer = {
    .name = "symmetry",
    .alarm_rings = wake,
    .programs_act = wake,
    .kernel_will_act = kernel_will_act,
    .kernel_ends = kernel_ends,
    .command_completed = command_completed,
};
