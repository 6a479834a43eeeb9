/* groups.c: finds groups, and what corresponds in them.
 *
 * A PE uses its own nodes, and of each operand's memory the node and the way of the data from or to it. Whoever uses
 * the same is of the same group. In each group, what its PEs use is put into the order in which they first use it;
 * groups are of like build if that gives the same walks over nodes and links of the same kinds, and the same order of
 * ranks. */
#include "groups.h"

#include <stdlib.h>
#include <string.h>

#include "machine/emitted.h"
#include "machine/memory.h"
#include "common/diag.h"

enum { NOBODY = UINT32_MAX };

static uint32_t *node_user, *link_user;                 /* the first PE that uses it, by position; NOBODY */
static uint32_t *node_label, *link_label;               /* position in the group; NOBODY: none yet */
static uint32_t *parent;                                /* by position of PEs: one of its group, or the first itself */
static uint32_t *group_of;                              /* by position of PEs; a group's number */
static uint32_t *order;                                 /* of labels, for sorting */
static struct groups found;
static struct print build;                              /* how the first group is built */

/* ---- what a PE uses: each_use calls node and link for all of it, in a fixed order */

struct user {
    void (*node)(struct user *user, uint32_t rank);
    void (*link)(struct user *user, uint64_t link, enum link_class class);
    uint32_t pe;                                        /* position */
    struct print *print;
};

static void use_way(struct user *user, struct way way)
{
    uint32_t end = place_rank(way.to);
    user->node(user, place_rank(way.from));
    for (struct place at = way.from; place_rank(at) != end;) {
        struct hop hop = way_next(&way, at);
        user->link(user, hop.link, hop.class);
        user->node(user, place_rank(hop.to));
        at = hop.to;
    }
}

/* False: a memory of the composite is a TCM, or not all of it is there. */
static bool use_composite(struct user *user, const struct pe *pe, const struct command *command)
{
    struct place dma = place_pe(pe_number(pe), NODE_pe_dma);
    for (unsigned operand = 0; operand < OPERANDS; operand++) {
        struct range range;
        if (!plan_moves(command, operand))
            continue;
        if (address_decode(command->ask.address[operand], plan_extent(command, operand), &range) ||
            range.space == SPACE_TCM)
            return false;
        struct way way = {dma, range_place(&range), REQUEST};
        use_way(user, operand == OPERAND_C ? way : way_back(way));
    }
    return true;
}

static bool each_use(struct user *user, const struct pe *pe)
{
    for (uint32_t i = 0; i < PE_NODES; i++)
        user->node(user, pe->rank + i);
    return use_composite(user, pe, pe->feeding);
}

/* ---- who shares what */

static uint32_t first_of(uint32_t pe)
{
    while (parent[pe] != pe)
        pe = parent[pe] = parent[parent[pe]];
    return pe;
}

static void share(uint32_t *user_of, uint32_t pe)
{
    if (*user_of == NOBODY) {
        *user_of = pe;
        return;
    }
    uint32_t a = first_of(*user_of), b = first_of(pe);
    parent[a > b ? a : b] = a < b ? a : b;
}

static void share_node(struct user *user, uint32_t rank)
{
    share(&node_user[rank], user->pe);
}

static void share_link(struct user *user, uint64_t link, enum link_class class)
{
    (void)class;
    share(&link_user[link], user->pe);
}

static bool all_share(struct pe *const *pes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        parent[i] = i;
    for (uint32_t i = 0; i < count; i++)
        if (!each_use(&(struct user){share_node, share_link, i, NULL}, pes[i]))
            return false;
    return true;
}

/* Sorts the PEs by group; false: groups are of unlike sizes, or there is one. */
static bool sort_pes(struct pe *const *pes, uint32_t count)
{
    uint32_t groups = 0;
    for (uint32_t i = 0; i < count; i++)
        group_of[i] = first_of(i) == i ? groups++ : group_of[first_of(i)];
    if (groups < 2 || count % groups)
        return false;
    found.count = groups;
    found.pes = count / groups;
    memset(found.pe, 0, count * sizeof *found.pe);
    for (uint32_t i = 0; i < count; i++) {
        struct pe **pe = &found.pe[group_of[i] * found.pes];
        uint32_t at = 0;
        while (at < found.pes && pe[at])
            at++;
        if (at == found.pes)
            return false;
        pe[at] = pes[i];
    }
    return true;
}

/* ---- what corresponds */

static uint32_t *group_nodes, *group_links;             /* of the group under way */
static uint32_t nodes_used, links_used;

static void label_node(struct user *user, uint32_t rank)
{
    struct place place = rank_place(rank);
    if (node_label[rank] == NOBODY) {
        node_label[rank] = nodes_used;
        group_nodes[nodes_used++] = rank;
    }
    put(user->print, node_label[rank]);
    put(user->print, place.cube == OUTSIDE ? place.node : kb_cube_nodes[place.node].kind);
}

static void label_link(struct user *user, uint64_t link, enum link_class class)
{
    if (link_label[link] == NOBODY) {
        link_label[link] = links_used;
        group_links[links_used++] = link;
    }
    put(user->print, link_label[link]);
    put(user->print, class);
}

static int by_rank(const void *x, const void *y)
{
    uint32_t a = group_nodes[*(const uint32_t *)x], b = group_nodes[*(const uint32_t *)y];
    return a < b ? -1 : a > b;
}

/* The labels of the group's nodes in the order of their ranks: that decides who comes first in a round. */
static void put_order(struct print *print)
{
    for (uint32_t i = 0; i < nodes_used; i++)
        order[i] = i;
    qsort(order, nodes_used, sizeof *order, by_rank);
    for (uint32_t i = 0; i < nodes_used; i++)
        put(print, order[i]);
}

/* Labels what a group uses and writes down how it is built. */
static void put_build(struct print *print, uint32_t group)
{
    nodes_used = links_used = 0;
    for (uint32_t i = 0; i < found.pes; i++)
        each_use(&(struct user){label_node, label_link, 0, print}, found.pe[group * found.pes + i]);
    put_order(print);
}

/* Whether all groups are built as the first is; their nodes and links are in `found` then. */
static bool built_alike(void)
{
    build.at = 0;
    group_nodes = found.node;
    group_links = found.link;
    put_build(&build, 0);
    found.nodes = nodes_used;
    found.links = links_used;
    for (uint32_t group = 1; group < found.count; group++) {
        struct print other = {.words = build.words, .count = build.at, .compares = true};
        group_nodes = found.node + (size_t)group * found.nodes;
        group_links = found.link + (size_t)group * found.links;
        put_build(&other, group);
        if (other.differs || other.at != other.count)
            return false;
    }
    return true;
}

/* ---- */

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
    order = table(nodes, sizeof *order);
    parent = table(pes, sizeof *parent);
    group_of = table(pes, sizeof *group_of);
    found = (struct groups){.pe = table(pes, sizeof *found.pe), .node = table(nodes, sizeof *found.node),
                            .link = table(links, sizeof *found.link)};
}

bool groups_find(struct pe *const *pes, uint32_t count, struct groups *groups)
{
    if (!node_user)
        open_tables();
    memset(node_user, 0xff, node_count() * sizeof *node_user);
    memset(node_label, 0xff, node_count() * sizeof *node_label);
    memset(link_user, 0xff, link_count() * sizeof *link_user);
    memset(link_label, 0xff, link_count() * sizeof *link_label);
    if (!all_share(pes, count) || !sort_pes(pes, count) || !built_alike())
        return false;
    *groups = found;
    return true;
}

const uint32_t *groups_labels(void)
{
    return node_label;
}

bool groups_follows(uint32_t rank)
{
    return node_user[rank] != NOBODY && group_of[node_user[rank]] > 0;
}
