/* schedule.c: topological levels of the operations of a window.
 *
 * For every byte, a level map has the highest level of the operations that read or wrote it. It is a tree over addresses:
 * each node divides its range into 64 parts, down to pages, and a page is a sorted list of ranges. A part that is covered
 * as a whole is raised as a whole, so that time and memory grow with the number of ranges, not with their lengths. */
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/fail.h"
#include "common/hash.h"
#include "kb/arith.h"
#include "store/store.h"

/* Levels are from 1 on; 0: no operation. What is written counts as accessed, too. */
struct levels {
    uint16_t written, accessed;
};

static void raise(struct levels *levels, struct levels to)
{
    if (levels->written < to.written)
        levels->written = to.written;
    if (levels->accessed < to.accessed)
        levels->accessed = to.accessed;
}

/* ---- the level map */

enum { PARTS_LOG2 = 6, PARTS = 1 << PARTS_LOG2, PAGE_LOG2 = 12, PAGE_BYTES = 1 << PAGE_LOG2 };

/* Of each part: the level of all of it, and the highest level in it. */
struct level_node {
    struct levels whole[PARTS], most[PARTS];
    uint32_t below[PARTS];                              /* a node, or in the lowest nodes a page; 0: none */
};

/* Up to the first byte of the next range of the page. */
struct level_range {
    uint16_t first;
    struct levels levels;
};

/* Ranges by their first bytes; that of the first one is 0. */
struct level_page ARRAY(struct level_range);

/* A memory's tree, of its first PAGE_BYTES * PARTS^(height + 1) bytes. */
struct level_tree {
    uint32_t root;                                      /* 0: nothing was raised yet */
    unsigned height;
};

static struct {
    struct level_tree *tree;                            /* by memory; NULL: all are empty */
    struct ARRAY(struct level_node) nodes;              /* number 0 is not used; the same of pages */
    struct ARRAY(struct level_page) pages;
    uint64_t range_bytes;                               /* memory of all pages' ranges */
} map;

static uint32_t node_new(void)
{
    if (map.nodes.count == 0)
        *array_add(&map.nodes) = (struct level_node){0};
    *array_add(&map.nodes) = (struct level_node){0};
    return (uint32_t)map.nodes.count - 1;
}

/* Adds a range at the end, not initialised. */
static void page_add(struct level_page *page)
{
    size_t room = page->room;
    (void)array_add(page);
    map.range_bytes += (page->room - room) * sizeof *page->at;
}

static uint32_t page_new(void)
{
    struct level_page page = {0};
    page_add(&page);
    page.at[0] = (struct level_range){0};
    if (map.pages.count == 0)
        *array_add(&map.pages) = (struct level_page){0};
    *array_add(&map.pages) = page;
    return (uint32_t)map.pages.count - 1;
}

static void map_clear(void)
{
    for (size_t i = 0; i < map.pages.count; i++)
        array_free(&map.pages.at[i]);
    free(map.tree);
    array_free(&map.nodes);
    array_free(&map.pages);
    map.tree = NULL;
    map.range_bytes = 0;
}

static uint64_t map_bytes(void)
{
    return map.nodes.count * sizeof *map.nodes.at + map.pages.count * sizeof *map.pages.at + map.range_bytes;
}

/* The number of the range that has a byte. */
static uint32_t page_find(const struct level_page *page, uint64_t at)
{
    uint32_t low = 0, high = page->count;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (page->at[middle].first <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static struct levels page_ask(const struct level_page *page, uint64_t first, uint64_t end)
{
    struct levels found = {0};
    for (uint32_t i = page_find(page, first); i < page->count && page->at[i].first < end; i++)
        raise(&found, page->at[i].levels);
    return found;
}

/* Splits ranges so that one begins at a byte; returns its number. */
static uint32_t page_split(struct level_page *page, uint64_t at)
{
    if (at == PAGE_BYTES)
        return page->count;
    uint32_t i = page_find(page, at);
    if (page->at[i].first == at)
        return i;
    page_add(page);
    memmove(page->at + i + 1, page->at + i, (page->count - 1 - i) * sizeof *page->at);
    page->at[++i].first = (uint16_t)at;
    return i;
}

/* Joins a range to the one before if their levels are equal. */
static void page_merge(struct level_page *page, uint32_t i)
{
    struct level_range *range = page->at + i;
    if (i == 0 || i == page->count || memcmp(&range[-1].levels, &range->levels, sizeof range->levels))
        return;
    memmove(range, range + 1, (--page->count - i) * sizeof *range);
}

static void page_raise(struct level_page *page, uint64_t first, uint64_t end, struct levels levels)
{
    uint32_t from = page_split(page, first), to = page_split(page, end);
    for (uint32_t i = from; i < to; i++)
        raise(&page->at[i].levels, levels);
    page_merge(page, to);
    page_merge(page, from);
}

/* Of bytes [first, end), counted from the first one of the node. */
static struct levels node_ask(const struct level_node *node, unsigned height, uint64_t first, uint64_t end)
{
    unsigned shift = PAGE_LOG2 + PARTS_LOG2 * height;
    struct levels found = {0};
    for (uint64_t i = first >> shift; i <= (end - 1) >> shift; i++) {
        uint64_t from = kb_max(first, i << shift), to = kb_min(end, (i + 1) << shift);
        uint32_t below = node->below[i];
        if (to - from == UINT64_C(1) << shift || !below) {
            raise(&found, node->most[i]);
            continue;
        }
        raise(&found, node->whole[i]);
        from -= i << shift, to -= i << shift;
        raise(&found, height ? node_ask(&map.nodes.at[below], height - 1, from, to)
                             : page_ask(&map.pages.at[below], from, to));
    }
    return found;
}

static void node_raise(uint32_t node, unsigned height, uint64_t first, uint64_t end, struct levels levels)
{
    unsigned shift = PAGE_LOG2 + PARTS_LOG2 * height;
    for (uint64_t i = first >> shift; i <= (end - 1) >> shift; i++) {
        uint64_t from = kb_max(first, i << shift), to = kb_min(end, (i + 1) << shift);
        raise(&map.nodes.at[node].most[i], levels);
        if (to - from == UINT64_C(1) << shift) {
            raise(&map.nodes.at[node].whole[i], levels);
            continue;
        }
        uint32_t below = map.nodes.at[node].below[i];
        if (!below) {
            below = height ? node_new() : page_new();
            map.nodes.at[node].below[i] = below;
        }
        from -= i << shift, to -= i << shift;
        if (height)
            node_raise(below, height - 1, from, to, levels);
        else
            page_raise(&map.pages.at[below], from, to, levels);
    }
}

static bool tree_covers(const struct level_tree *tree, uint64_t end)
{
    unsigned shift = PAGE_LOG2 + PARTS_LOG2 * (tree->height + 1);
    return shift >= 64 || end >> shift == 0 || end == UINT64_C(1) << shift;
}

/* The highest levels in bytes [first, end) of a memory. */
static struct levels map_ask(uint32_t memory, uint64_t first, uint64_t end)
{
    if (!map.tree || !map.tree[memory].root)
        return (struct levels){0};
    const struct level_tree *tree = &map.tree[memory];
    if (!tree_covers(tree, end))
        end = UINT64_C(1) << (PAGE_LOG2 + PARTS_LOG2 * (tree->height + 1));
    return first < end ? node_ask(&map.nodes.at[tree->root], tree->height, first, end) : (struct levels){0};
}

/* Makes the root the first part of a new root. */
static void tree_grow(struct level_tree *tree)
{
    uint32_t root = node_new();
    struct level_node *node = &map.nodes.at[root];
    node->below[0] = tree->root;
    for (unsigned i = 0; i < PARTS; i++)
        raise(&node->most[0], map.nodes.at[tree->root].most[i]);
    *tree = (struct level_tree){root, tree->height + 1};
}

/* Raises the levels of bytes [first, end) of a memory to at least these. */
static void map_raise(uint32_t memory, uint64_t first, uint64_t end, struct levels levels)
{
    if (!map.tree && !(map.tree = calloc(store_count(), sizeof *map.tree)))
        die("no memory for the dependencies of operations:");
    struct level_tree *tree = &map.tree[memory];
    if (!tree->root)
        *tree = (struct level_tree){node_new(), 0};
    while (!tree_covers(tree, end))
        tree_grow(tree);
    node_raise(tree->root, tree->height, first, end, levels);
}

/* ---- the window */

/* A view of more runs counts as all bytes from its first to its last. */
enum { MOST_RUNS = 4096, MOST_BYTES = 32 << 20 };
enum { SLOTS_LOG2 = 16, SLOTS = 1 << SLOTS_LOG2 };      /* twice WINDOW_OPS */

static struct {
    uint32_t count;                                     /* operations */
    uint16_t level[WINDOW_OPS];
    uint64_t command[WINDOW_OPS];                       /* command_key of each */
    uint16_t top, floor;                                /* the highest level so far; all that follow are above floor */
    uint16_t slot[SLOTS];                               /* hash table of commands: 1 + the position of the operation of */
    uint32_t hashed;                                    /*     highest level; of the first `hashed` operations */
} window;

void schedule_begin(void)
{
    map_clear();
    if (window.hashed)
        memset(window.slot, 0, sizeof window.slot);
    window.hashed = window.count = 0;
    window.top = window.floor = 0;
}

bool schedule_is_full(void)
{
    return window.count == WINDOW_OPS || map_bytes() > MOST_BYTES;
}

/* ---- dependencies on named commands */

static uint16_t *slot_of(uint64_t command)
{
    uint32_t at = hash_bits(command, SLOTS_LOG2);
    while (window.slot[at] && window.command[window.slot[at] - 1] != command)
        at = (at + 1) % SLOTS;
    return &window.slot[at];
}

/* The level above all commands that an operation names, and at least `level`. A command that is not in the window was
 * done before it, or is a receive that completes after the operation. */
static uint16_t above_named(const struct op *op, uint16_t level)
{
    for (; op->afters && window.hashed < window.count; window.hashed++) {
        uint16_t *slot = slot_of(window.command[window.hashed]);
        if (!*slot || window.level[*slot - 1] < window.level[window.hashed])
            *slot = (uint16_t)(window.hashed + 1);
    }
    for (uint32_t i = 0; i < op->afters; i++) {
        uint16_t named = *slot_of(command_key(op->serial, op->after[i]));
        if (named && level <= window.level[named - 1])
            level = window.level[named - 1] + 1;
    }
    return level;
}

/* ---- dependencies by the bytes of views */

struct visit {
    uint32_t memory;
    bool writes;
    uint16_t level;                                     /* of the operation; while it is found, the least possible */
};

static void ask_run(uint64_t offset, uint64_t bytes, void *arg)
{
    struct visit *visit = arg;
    struct levels found = map_ask(visit->memory, offset, offset + bytes);
    uint16_t before = visit->writes ? found.accessed : found.written;
    if (visit->level <= before)
        visit->level = before + 1;
}

static void raise_run(uint64_t offset, uint64_t bytes, void *arg)
{
    struct visit *visit = arg;
    struct levels to = {.written = visit->writes ? visit->level : 0, .accessed = visit->level};
    map_raise(visit->memory, offset, offset + bytes, to);
}

/* Calls f for each run of bytes of a view; for bytes that a stride of 0 repeats, once. */
static void each_run(const struct view *view, struct visit *visit,
                     void (*f)(uint64_t offset, uint64_t bytes, void *arg))
{
    struct view once = *view;
    uint64_t run = 1, elements;
    for (unsigned axis = 0; axis < VIEW_RANK; axis++)
        once.shape[axis] = once.stride[axis] == 0 && once.shape[axis] > 1 ? 1 : once.shape[axis];
    for (unsigned axis = VIEW_RANK; axis-- > 0 && (once.stride[axis] == run || once.shape[axis] == 1);)
        run *= once.shape[axis];
    elements = view_elements(&once);
    if (elements > MOST_RUNS * run)
        f(once.offset, view_span(&once), visit);
    else if (elements > 0)
        view_each_run(&once, f, visit);
}

static void ask_view(const struct view *view, bool writes, void *level)
{
    struct visit visit = {view->memory, writes, *(uint16_t *)level};
    each_run(view, &visit, ask_run);
    *(uint16_t *)level = visit.level;
}

static void raise_view(const struct view *view, bool writes, void *level)
{
    struct visit visit = {view->memory, writes, *(uint16_t *)level};
    each_run(view, &visit, raise_run);
}

uint16_t schedule_level(const struct op *op)
{
    uint16_t level = window.floor + 1;
    if (op_is_fill(op)) {
        level = window.floor = window.top + 1;          /* a fill is between all before and all after it */
    } else {
        level = above_named(op, level);
        op_each_view(op, ask_view, &level);
        op_each_view(op, raise_view, &level);
    }
    window.top = level > window.top ? level : window.top;
    window.command[window.count] = command_key(op->serial, op->command);
    return window.level[window.count++] = level;
}
