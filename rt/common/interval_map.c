/* interval_map.c: intervals in a treap: a search tree by begin, and a heap by random priorities.
 *
 * The priorities keep the tree about as flat as a balanced one, and make splitting it at a position and joining two
 * trees a few lines. Each node knows the greatest end of its subtree, so what ends before a position is passed over as
 * a whole. */
#include "interval_map.h"

#include <assert.h>
#include <string.h>

/* Spreads numbers over all priorities. */
static uint32_t priority_of(uint64_t number)
{
    uint64_t mixed = number * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)((mixed ^ mixed >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 32);
}

/* A tree of one; `number`: of all that are made, for its priority. */
static void node_init(struct interval *node, uint64_t number, uint32_t tag, uint64_t begin, uint64_t end)
{
    *node = (struct interval){.begin = begin, .end = end, .last_end = end, .priority = priority_of(number), .tag = tag};
}

static struct interval *updated(struct interval *tree)
{
    uint64_t last_end = tree->end;
    if (tree->left && tree->left->last_end > last_end)
        last_end = tree->left->last_end;
    if (tree->right && tree->right->last_end > last_end)
        last_end = tree->right->last_end;
    tree->last_end = last_end;
    return tree;
}

/* What begins before a position, and the rest. */
static void split(struct interval *tree, uint64_t begin, struct interval **low, struct interval **high)
{
    if (!tree) {
        *low = *high = NULL;
    } else if (tree->begin < begin) {
        *low = tree;
        split(tree->right, begin, &tree->right, high);
        updated(tree);
    } else {
        *high = tree;
        split(tree->left, begin, low, &tree->left);
        updated(tree);
    }
}

/* All of `low` lies before all of `high`. */
static struct interval *join(struct interval *low, struct interval *high)
{
    if (!low || !high)
        return low ? low : high;
    if (low->priority > high->priority) {
        low->right = join(low->right, high);
        return updated(low);
    }
    high->left = join(low, high->left);
    return updated(high);
}

static struct interval *last_of(struct interval *tree)
{
    while (tree && tree->right)
        tree = tree->right;
    return tree;
}

static struct interval *first_of(struct interval *tree)
{
    while (tree && tree->left)
        tree = tree->left;
    return tree;
}

/* Disjoint intervals end in the order in which they begin. */
static struct interval *find_disjoint(struct interval *tree, uint64_t at)
{
    struct interval *found = NULL;
    while (tree)
        if (tree->end > at) {
            found = tree;
            tree = tree->left;
        } else {
            tree = tree->right;
        }
    return found;
}

struct interval *interval_find(const struct interval_map *map, uint64_t at)
{
    struct interval *tree = map->root;
    if (map->kind)
        return find_disjoint(tree, at);
    if (!tree || tree->last_end <= at)
        return NULL;
    for (;;)
        if (tree->left && tree->left->last_end > at)
            tree = tree->left;
        else if (tree->end > at)
            return tree;
        else
            tree = tree->right;
}

static void each(struct interval *tree, uint64_t begin, uint64_t end, void (*f)(struct interval *interval, void *arg),
                 void *arg)
{
    if (!tree || tree->last_end <= begin)
        return;
    each(tree->left, begin, end, f, arg);
    if (tree->begin >= end)
        return;
    if (tree->end > begin)
        f(tree, arg);
    each(tree->right, begin, end, f, arg);
}

void interval_each(const struct interval_map *map, uint64_t begin, uint64_t end,
                   void (*f)(struct interval *interval, void *arg), void *arg)
{
    each(map->root, begin, end, f, arg);
}

/* ---- disjoint intervals */

/* [begin, end) of the range of `value`, as a tree of one. */
static struct interval *interval_new(struct interval_kind *kind, const struct interval *value, uint64_t begin,
                                     uint64_t end)
{
    struct interval *made = pool_reuse(&kind->pool, kind->size);
    memcpy(made, value, kind->size);
    node_init(made, ++kind->made, value->tag, begin, end);
    if (kind->copied)
        kind->copied(made);
    if (kind->advance && begin > value->begin)
        kind->advance(made, begin - value->begin);
    return made;
}

static void interval_free(struct interval_kind *kind, struct interval *interval)
{
    if (kind->dropped)
        kind->dropped(interval);
    pool_give_back(&kind->pool, interval);
}

static void tree_free(struct interval_kind *kind, struct interval *tree)
{
    while (tree) {
        struct interval *right = tree->right;
        tree_free(kind, tree->left);
        interval_free(kind, tree);
        tree = right;
    }
}

/* Moves the end of the last interval, which is the last end of all subtrees on the way to it. */
static void last_set_end(struct interval *tree, uint64_t end)
{
    for (;; tree = tree->right) {
        tree->last_end = end;
        if (!tree->right)
            break;
    }
    tree->end = end;
}

/* Splits a tree at a position, and the interval in which that lies. */
static void cut(struct interval_kind *kind, struct interval *tree, uint64_t at, struct interval **low,
                struct interval **high)
{
    split(tree, at, low, high);
    if (!*low || (*low)->last_end <= at)
        return;
    struct interval *last = last_of(*low);
    *high = join(interval_new(kind, last, at, last->end), *high);
    last_set_end(*low, at);
}

static bool continues(const struct interval_kind *kind, const struct interval *low, const struct interval *high)
{
    return low && high && low->end == high->begin && kind->continues && kind->continues(low, high);
}

/* `low`, and behind it an interval that is not in a tree: as one of its own, or as part of the last one. */
static struct interval *append(struct interval_kind *kind, struct interval *low, struct interval *made)
{
    if (!low || low->last_end != made->begin || !continues(kind, last_of(low), made))
        return join(low, made);
    last_set_end(low, made->end);
    interval_free(kind, made);
    return low;
}

/* `low` and `high`; if the last of one and the first of the other are one interval, they become that. */
static struct interval *join_mended(struct interval_kind *kind, struct interval *low, struct interval *high)
{
    struct interval *first = first_of(high);
    if (!low || !first || low->last_end != first->begin || !continues(kind, last_of(low), first))
        return join(low, high);
    last_set_end(low, first->end);
    split(high, first->end, &first, &high);
    interval_free(kind, first);
    return join(low, high);
}

static void take_value(struct interval_kind *kind, struct interval *interval, const struct interval *from, uint64_t begin)
{
    if (kind->dropped)
        kind->dropped(interval);
    interval->tag = from->tag;
    memcpy(interval + 1, from + 1, kind->size - sizeof *interval);
    if (kind->copied)
        kind->copied(interval);
    if (kind->advance && begin > from->begin)
        kind->advance(interval, begin - from->begin);
}

/* Finds the interval of a disjoint map that begins at a position, and its neighbours, which may be NULL. */
static struct interval *find_begin(struct interval *tree, uint64_t begin, struct interval **low, struct interval **high)
{
    *low = *high = NULL;
    while (tree && tree->begin != begin)
        if (tree->begin < begin) {
            *low = tree;
            tree = tree->right;
        } else {
            *high = tree;
            tree = tree->left;
        }
    if (tree && tree->left)
        *low = last_of(tree->left);
    if (tree && tree->right)
        *high = first_of(tree->right);
    return tree;
}

/* Gives [begin, end) the value that `from` has from `at` on without a change of the tree, and returns true, if the map
 * has an interval of just these bytes that continues no neighbour. Most sets are of a range that was set before. */
static bool revalued(struct interval_map *map, uint64_t begin, uint64_t end, const struct interval *from, uint64_t at)
{
    struct interval *low, *high, *same = find_begin(map->root, begin, &low, &high);
    if (!same || same->end != end)
        return false;
    if (same != from)
        take_value(map->kind, same, from, at);
    return !continues(map->kind, low, same) && !continues(map->kind, same, high);
}

void interval_set(struct interval_map *map, const struct interval *value)
{
    struct interval_kind *kind = map->kind;
    struct interval *low, *within, *high;
    assert(value->begin < value->end);
    if (revalued(map, value->begin, value->end, value, value->begin))
        return;
    cut(kind, map->root, value->begin, &low, &high);
    cut(kind, high, value->end, &within, &high);
    tree_free(kind, within);
    low = append(kind, low, interval_new(kind, value, value->begin, value->end));
    map->root = join_mended(kind, low, high);
}

void interval_erase(struct interval_map *map, uint64_t begin, uint64_t end)
{
    struct interval *low, *within, *high, *first = interval_find(map, begin);
    if (begin >= end || !first || first->begin >= end)
        return;
    cut(map->kind, map->root, begin, &low, &high);
    cut(map->kind, high, end, &within, &high);
    tree_free(map->kind, within);
    map->root = join(low, high);
}

/* Makes a tree of intervals in order, linked by `right`: of those at the front whose priorities are below a limit. */
static struct interval *tree_of(struct interval **rest, uint64_t limit)
{
    struct interval *tree = NULL;
    while (*rest && (*rest)->priority < limit) {
        struct interval *top = *rest;
        *rest = top->right;
        top->left = tree;
        top->right = tree_of(rest, top->priority);
        tree = updated(top);
    }
    return tree;
}

struct copier {
    struct interval_kind *kind;
    uint64_t from_begin, from_end, to_begin;
    struct interval *pieces, **last;                    /* in order, linked by `right`; where the next one is linked */
};

static void copy_piece(struct interval *i, void *arg)
{
    struct copier *copier = arg;
    uint64_t begin = i->begin > copier->from_begin ? i->begin : copier->from_begin;
    uint64_t end = i->end < copier->from_end ? i->end : copier->from_end;
    struct interval *piece = *copier->last = interval_new(copier->kind, i, begin, end);
    piece->begin = begin - copier->from_begin + copier->to_begin;
    piece->end = piece->last_end = end - copier->from_begin + copier->to_begin;
    copier->last = &piece->right;
}

void interval_copy(struct interval_map *to, uint64_t to_begin, const struct interval_map *from, uint64_t from_begin,
                   uint64_t bytes)
{
    struct interval *low, *within, *high;
    struct interval_kind *kind = to->kind;
    uint64_t from_end = from_begin + bytes;
    if (bytes == 0)
        return;
    const struct interval *source = interval_find(from, from_begin);
    if (source && source->begin <= from_begin && source->end >= from_end
        && revalued(to, to_begin, to_begin + bytes, source, from_begin))
        return;
    struct copier copier = {kind, from_begin, from_end, to_begin, NULL, &copier.pieces};
    each(from->root, from_begin, from_end, copy_piece, &copier);
    if (!copier.pieces) {
        interval_erase(to, to_begin, to_begin + bytes);
        return;
    }
    cut(kind, to->root, to_begin, &low, &high);
    cut(kind, high, to_begin + bytes, &within, &high);
    tree_free(kind, within);
    low = join_mended(kind, low, tree_of(&copier.pieces, UINT64_MAX));
    to->root = join_mended(kind, low, high);
}

void interval_clear(struct interval_map *map)
{
    tree_free(map->kind, map->root);
    map->root = NULL;
}

/* ---- overlapping intervals */

void interval_add(struct interval_map *map, struct interval *interval)
{
    struct interval *low, *high;
    assert(interval->begin < interval->end);
    map->added++;
    node_init(interval, map->added, map->added, interval->begin, interval->end);
    split(map->root, interval->begin + 1, &low, &high);
    map->root = join(join(low, interval), high);
}

/* Numbers start again behind the greatest. Of two of one begin, fewer than 2^31 were added between them. */
static bool is_before(const struct interval *a, const struct interval *b)
{
    return a->begin != b->begin ? a->begin < b->begin : (int32_t)(a->tag - b->tag) < 0;
}

static struct interval *without(struct interval *tree, const struct interval *interval)
{
    assert(tree);
    if (tree == interval)
        return join(tree->left, tree->right);
    if (is_before(tree, interval))
        tree->right = without(tree->right, interval);
    else
        tree->left = without(tree->left, interval);
    return updated(tree);
}

void interval_remove(struct interval_map *map, struct interval *interval)
{
    map->root = without(map->root, interval);
}
