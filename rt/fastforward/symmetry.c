/* symmetry.c: finds groups of PEs that share nothing, compares their states, and simulates one for all.
 *
 * A PE uses its own nodes and, of the memory of each operand, the node and the way of the data from or to it. Whoever
 * uses the same is of the same group: a partition by union-find. In each group, nodes and links are labelled in the
 * order in which its PEs first use them. Groups have the same build if their labels and kinds come in the same order,
 * and if their labels have the same order by rank, which decides who comes first in a round. What has the same label in
 * two groups of the same build corresponds, and their states are compared by labels. */
#include "symmetry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/rates.h"
#include "common/diag.h"
#include "machine/emitted.h"
#include "machine/memory.h"
#include "machine/stats.h"
#include "machine/tile.h"
#include "sim/loop.h"
#include "sim/observer.h"
#include "state.h"

enum { NONE = UINT32_MAX };

/* Tables of the size of the machine, made at the first use. */
static uint32_t *node_user, *link_user;                 /* the first PE that uses it, by its position; or NONE */
static uint32_t *node_label, *link_label;               /* or NONE */
static uint32_t *parent;                                /* union-find of the positions of PEs: the first is the root */
static uint32_t *group_of;                              /* by position of PEs */
static uint32_t *by_rank;                               /* labels of a group, sorted by rank */
static bool *asleep;                                    /* by number of PEs */

/* Groups of equal size, by the rank of their first PE; what corresponds has the same position. */
static struct group *groups;
static uint32_t group_count;
static struct pe **group_pes;                           /* of all groups, one after the other, */
static uint32_t *group_nodes, *group_links;             /* likewise */

static struct fingerprint build, state;                 /* of the first group */

/* Of the first group when the others went to sleep. */
static struct stats stats_then;
static uint64_t **counts, *counts_then;                 /* state_group_counts, and their values */
static uint64_t **other_counts;                         /* of a group that wakes */
static const struct command **composites;               /* that its PEs feed; NULL: complete by now */

static uint64_t slept;                                  /* services */

static void *table(size_t count, size_t size)
{
    void *rows = calloc(count, size);
    if (!rows)
        die("no memory for %zu parts of the machine", count);
    return rows;
}

static void open_tables(void)
{
    size_t nodes = node_count(), links = link_count(), pes = pe_count();
    node_user = table(nodes, sizeof *node_user);
    node_label = table(nodes, sizeof *node_label);
    link_user = table(links, sizeof *link_user);
    link_label = table(links, sizeof *link_label);
    by_rank = table(nodes, sizeof *by_rank);
    parent = table(pes, sizeof *parent);
    group_of = table(pes, sizeof *group_of);
    asleep = table(pes, sizeof *asleep);
    groups = table(pes, sizeof *groups);
    group_pes = table(pes, sizeof *group_pes);
    group_nodes = table(nodes, sizeof *group_nodes);
    group_links = table(links, sizeof *group_links);
    composites = table(pes, sizeof *composites);
}

/* ---- what a PE uses: a walk calls node and link for all of it, in a fixed order */

struct walk {
    void (*node)(struct walk *walk, uint32_t rank);
    void (*link)(struct walk *walk, uint64_t link, enum link_class class);
    uint32_t pe;                                        /* its position */
    struct group *group;
    struct fingerprint *print;
};

static void walk_way(struct walk *walk, struct way way)
{
    uint32_t end = place_rank(way.to);
    walk->node(walk, place_rank(way.from));
    for (struct place at = way.from; place_rank(at) != end;) {
        struct hop hop = way_next(&way, at);
        walk->link(walk, hop.link, hop.class);
        walk->node(walk, place_rank(hop.to));
        at = hop.to;
    }
}

/* Returns false if a part of an operand is in a TCM or in no memory. */
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
        struct way way = {dma, range_place(&range), REQUEST};
        walk_way(walk, operand == OPERAND_C ? way : way_back(way));
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
    while (parent[pe] != pe)
        pe = parent[pe] = parent[parent[pe]];
    return pe;
}

static void unite(uint32_t *user, uint32_t pe)
{
    if (*user == NONE) {
        *user = pe;
        return;
    }
    uint32_t a = root_of(*user), b = root_of(pe);
    parent[a > b ? a : b] = a < b ? a : b;
}

static void unite_node(struct walk *walk, uint32_t rank)
{
    unite(&node_user[rank], walk->pe);
}

static void unite_link(struct walk *walk, uint64_t link, enum link_class class)
{
    (void)class;
    unite(&link_user[link], walk->pe);
}

static bool unite_all(struct pe *const *pes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        parent[i] = i;
    for (uint32_t i = 0; i < count; i++)
        if (!walk_pe(&(struct walk){.node = unite_node, .link = unite_link, .pe = i}, pes[i]))
            return false;
    return true;
}

/* Sorts the PEs by group. Returns false if there is one group, or they are of unlike sizes. */
static bool sort_pes(struct pe *const *pes, uint32_t count)
{
    group_count = 0;
    for (uint32_t i = 0; i < count; i++)
        group_of[i] = root_of(i) == i ? group_count++ : group_of[root_of(i)];
    if (group_count < 2 || count % group_count)
        return false;
    for (uint32_t i = 0; i < group_count; i++)
        groups[i] = (struct group){.pe = group_pes + i * (count / group_count)};
    for (uint32_t i = 0; i < count; i++) {
        struct group *group = &groups[group_of[i]];
        if (group->pes == count / group_count)
            return false;
        group_pes[(group->pe - group_pes) + group->pes++] = pes[i];
    }
    return true;
}

/* ---- labels */

static void label_node(struct walk *walk, uint32_t rank)
{
    struct place place = rank_place(rank);
    struct group *group = walk->group;
    if (node_label[rank] == NONE) {
        node_label[rank] = group->nodes;
        group_nodes[(group->node - group_nodes) + group->nodes++] = rank;
    }
    fingerprint_add(walk->print, node_label[rank]);
    fingerprint_add(walk->print, place.cube == OUTSIDE ? place.node : kb_cube_nodes[place.node].kind);
}

static void label_link(struct walk *walk, uint64_t link, enum link_class class)
{
    struct group *group = walk->group;
    if (link_label[link] == NONE) {
        link_label[link] = group->links;
        group_links[(group->link - group_links) + group->links++] = link;
    }
    fingerprint_add(walk->print, link_label[link]);
    fingerprint_add(walk->print, class);
}

static const uint32_t *sorted_nodes;                    /* of the group whose labels are sorted */

static int compare_ranks(const void *x, const void *y)
{
    uint32_t a = sorted_nodes[*(const uint32_t *)x], b = sorted_nodes[*(const uint32_t *)y];
    return a < b ? -1 : a > b;
}

static void add_order(struct fingerprint *print, const struct group *group)
{
    for (uint32_t i = 0; i < group->nodes; i++)
        by_rank[i] = i;
    sorted_nodes = group->node;
    qsort(by_rank, group->nodes, sizeof *by_rank, compare_ranks);
    for (uint32_t i = 0; i < group->nodes; i++)
        fingerprint_add(print, by_rank[i]);
}

/* Labels what a group uses; adds its build. */
static void label_group(struct fingerprint *print, struct group *group)
{
    struct walk walk = {.node = label_node, .link = label_link, .group = group, .print = print};
    for (uint32_t i = 0; i < group->pes; i++)
        walk_pe(&walk, group->pe[i]);
    add_order(print, group);
}

static bool have_same_build(void)
{
    fingerprint_write(&build);
    for (uint32_t i = 0; i < group_count; i++) {
        groups[i].node = i ? groups[i - 1].node + groups[i - 1].nodes : group_nodes;
        groups[i].link = i ? groups[i - 1].link + groups[i - 1].links : group_links;
        label_group(&build, &groups[i]);
        if (!fingerprint_holds(&build))
            return false;
        fingerprint_compare(&build);
    }
    return true;
}

static bool find_groups(struct pe *const *pes, uint32_t count)
{
    memset(node_user, 0xff, node_count() * sizeof *node_user);
    memset(node_label, 0xff, node_count() * sizeof *node_label);
    memset(link_user, 0xff, link_count() * sizeof *link_user);
    memset(link_label, 0xff, link_count() * sizeof *link_label);
    return unite_all(pes, count) && sort_pes(pes, count) && have_same_build();
}

/* ---- states */

/* Whether all groups are in the same state, and no events wait but theirs. */
static bool have_same_state(void)
{
    uint64_t kernel_ps;
    state.labels = node_label;
    fingerprint_write(&state);
    for (uint32_t i = 0; i < group_count; i++) {
        fingerprint_group(&state, &groups[i]);
        if (!fingerprint_holds(&state))
            return false;
        if (i == 0 && state.events * group_count != event_waiting(&kernel_ps))
            return false;
        fingerprint_compare(&state);
    }
    loop_alarm_ps = kernel_ps;
    return true;
}

static void *grown(void *array, size_t count, size_t size)
{
    array = realloc(array, count * size);
    if (!array)
        die("no memory for %zu counts", count);
    return array;
}

static void take_counts(void)
{
    size_t count = state_group_counts(&groups[0], NULL);
    counts = grown(counts, count, sizeof *counts);
    other_counts = grown(other_counts, count, sizeof *other_counts);
    counts_then = grown(counts_then, count, sizeof *counts_then);
    state_group_counts(&groups[0], counts);
    for (size_t i = 0; i < count; i++)
        counts_then[i] = *counts[i];
    stats_then = stats;
}

/* Whether an event is at a node of a group that sleeps. */
static bool is_of_others(uint32_t rank)
{
    return node_user[rank] != NONE && group_of[node_user[rank]] > 0;
}

bool symmetry_sleep(struct pe *const *pes, uint32_t count)
{
    if (!node_user)
        open_tables();
    if (!find_groups(pes, count) || !have_same_state())
        return false;
    observer_watch(&symmetry_observer, true);
    for (uint32_t i = 0; i < count; i++)
        state_settle(pes[i]);
    take_counts();
    event_drop(is_of_others);
    for (uint32_t i = 0; i < groups[0].pes; i++)
        composites[i] = groups[0].pe[i]->feeding;
    for (uint32_t i = groups[0].pes; i < count; i++) {
        asleep[pe_number(group_pes[i])] = true;
        state_drop_tiles(group_pes[i]);
    }
    return true;
}

bool symmetry_sleeps(const struct pe *pe)
{
    return asleep && asleep[pe_number(pe)];
}

/* ---- awake again */

/* What was counted for a part of the first group since then counts for the corresponding part of another one. */
static size_t add_counts(const struct group *to, const uint64_t *then, uint64_t *const *from)
{
    size_t count = state_group_counts(to, other_counts);
    for (size_t i = 0; i < count; i++)
        *other_counts[i] += *from[i] - then[i];
    return count;
}

static void wake_group(const struct group *group)
{
    const struct copying copying = {&groups[0], group, node_label};
    add_counts(group, counts_then, counts);
    for (uint32_t i = 0; i < group->nodes; i++)
        state_copy_node(&copying, i);
    for (uint32_t i = 0; i < group->links; i++)
        state_copy_link(&copying, i);
    for (uint32_t i = 0; i < group->pes; i++) {
        state_copy_pe(&copying, i, composites[i]);
        asleep[pe_number(group->pe[i])] = false;
    }
}

/* Before kernels or host programs do what may tell groups apart. */
static void wake(void)
{
    uint64_t *all = (uint64_t *)&stats;
    const uint64_t *then = (const uint64_t *)&stats_then;
    observer_watch(&symmetry_observer, false);
    loop_alarm_ps = UINT64_MAX;
    slept += (stats.services - stats_then.services) * (group_count - 1);
    for (size_t i = 0; i < sizeof stats / sizeof *all; i++)
        all[i] = sum(all[i], product(all[i] - then[i], group_count - 1));
    for (uint32_t i = 0; i < groups[0].pes; i++)
        state_settle(groups[0].pe[i]);
    for (uint32_t i = 1; i < group_count; i++)
        wake_group(&groups[i]);
}

static void kernel_will_act(uint64_t t_ps)
{
    if (t_ps < loop_alarm_ps)
        loop_alarm_ps = t_ps;
}

/* The corresponding composites of the other groups complete as well. What was counted for their PEs is up to date then,
 * for a kernel's end reads it. */
static void command_completed(const struct command *command)
{
    struct pe *from = command->pe;
    uint32_t position = 0;
    if (symmetry_sleeps(from))
        return;
    size_t per_pe = state_group_counts(&(struct group){.pe = &from, .pes = 1}, NULL);
    while (position < groups[0].pes && groups[0].pe[position] != from)
        position++;
    assert(position < groups[0].pes);                   /* nothing else is under way while PEs sleep */
    uint64_t *const *counted = &counts[position * per_pe];
    uint64_t *then = &counts_then[position * per_pe];
    state_settle(from);
    for (uint32_t i = 1; i < group_count; i++) {
        struct pe *to = groups[i].pe[position];
        struct command *counterpart = to->feeding;
        add_counts(&(struct group){.pe = &to, .pes = 1}, then, counted);
        to->feeding = NULL;
        counterpart->tiles_left = 0;
        command_complete(counterpart);
    }
    for (size_t i = 0; i < per_pe; i++)
        then[i] = *counted[i];
    composites[position] = NULL;
}

uint64_t symmetry_services(void)
{
    return slept;
}

void symmetry_reset(void)
{
    slept = 0;
    observer_watch(&symmetry_observer, false);
    loop_alarm_ps = UINT64_MAX;
    if (asleep)
        memset(asleep, 0, pe_count() * sizeof *asleep);
}

struct observer symmetry_observer = {
    .name = "symmetry",
    .alarm_rings = wake,
    .programs_act = wake,
    .kernel_will_act = kernel_will_act,
    .command_completed = command_completed,
};
