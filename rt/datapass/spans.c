/* spans.c: the highest level of the operations that read or wrote a byte. */
#include "spans.h"

#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "store/store.h"
#include "common/diag.h"

enum { PARTS_LOG2 = 6, PARTS = 1 << PARTS_LOG2, PAGE_LOG2 = 12, PAGE_BYTES = 1 << PAGE_LOG2, FIRST_CUTS = 8 };

/* A part of a node: what was raised as a whole, and the highest of all that is in it. */
struct node {
    struct levels whole[PARTS], most[PARTS];
    uint32_t below[PARTS];                              /* node, or page of a lowest one; 0: there is none */
};

/* A range of a page from its first byte to the next one's. */
struct cut {
    uint16_t first;
    struct levels levels;
};

struct page {
    uint32_t count, room;
    struct cut *cut;                                    /* by their first bytes; the first is 0 */
};

/* The node at the top of a memory's tree; it covers its first PAGE_BYTES * PARTS^(height + 1) bytes. */
struct top {
    uint32_t node;
    unsigned height;
};

static struct top *tops;                                /* of all memories */
static struct node *nodes;                              /* 0 is none; the same of pages */
static struct page *pages;
static uint32_t node_count = 1, node_room, page_count = 1, page_room;
static uint64_t cut_bytes;

static void *grown(void *at, uint64_t count, size_t size)
{
    at = realloc(at, count * size);
    if (!at)
        die("no memory for the dependencies of operations:");
    return at;
}

static uint32_t node_new(void)
{
    if (node_count >= node_room)
        nodes = grown(nodes, node_room = node_room ? 2 * node_room : 64, sizeof *nodes);
    nodes[node_count] = (struct node){0};
    return node_count++;
}

static uint32_t page_new(void)
{
    if (page_count >= page_room)
        pages = grown(pages, page_room = page_room ? 2 * page_room : 64, sizeof *pages);
    struct cut *cut = grown(NULL, FIRST_CUTS, sizeof *cut);
    cut_bytes += FIRST_CUTS * sizeof *cut;
    cut[0] = (struct cut){0};
    pages[page_count] = (struct page){.count = 1, .room = FIRST_CUTS, .cut = cut};
    return page_count++;
}

static void raise(struct levels *levels, struct levels to)
{
    if (levels->written < to.written)
        levels->written = to.written;
    if (levels->accessed < to.accessed)
        levels->accessed = to.accessed;
}

/* ---- a page */

/* The range that holds a byte. */
static uint32_t page_find(const struct page *page, uint64_t at)
{
    uint32_t low = 0, high = page->count;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (page->cut[middle].first <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static struct levels page_ask(const struct page *page, uint64_t first, uint64_t end)
{
    struct levels found = {0};
    for (uint32_t i = page_find(page, first); i < page->count && page->cut[i].first < end; i++)
        raise(&found, page->cut[i].levels);
    return found;
}

/* Makes a range begin at a byte: its number. */
static uint32_t page_cut(struct page *page, uint64_t at)
{
    if (at == PAGE_BYTES)
        return page->count;
    uint32_t i = page_find(page, at);
    if (page->cut[i].first == at)
        return i;
    if (page->count == page->room) {
        cut_bytes += page->room * sizeof *page->cut;
        page->cut = grown(page->cut, page->room *= 2, sizeof *page->cut);
    }
    memmove(page->cut + i + 1, page->cut + i, (page->count++ - i) * sizeof *page->cut);
    page->cut[++i].first = (uint16_t)at;
    return i;
}

/* Lets a range go on where the one before ends if nothing tells them apart. */
static void page_mend(struct page *page, uint32_t i)
{
    if (i == 0 || i == page->count || memcmp(&page->cut[i - 1].levels, &page->cut[i].levels, sizeof(struct levels)))
        return;
    memmove(page->cut + i, page->cut + i + 1, (--page->count - i) * sizeof *page->cut);
}

static void page_raise(struct page *page, uint64_t first, uint64_t end, struct levels levels)
{
    uint32_t from = page_cut(page, first), to = page_cut(page, end);
    for (uint32_t i = from; i < to; i++)
        raise(&page->cut[i].levels, levels);
    page_mend(page, to);
    page_mend(page, from);
}

/* ---- the tree; a range is counted from the first byte of its node or page */

static uint64_t largest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static struct levels node_ask(const struct node *node, unsigned height, uint64_t first, uint64_t end)
{
    unsigned shift = PAGE_LOG2 + PARTS_LOG2 * height;
    struct levels found = {0};
    for (uint64_t i = first >> shift; i <= (end - 1) >> shift; i++) {
        uint64_t from = largest(first, i << shift), to = least(end, (i + 1) << shift);
        uint32_t below = node->below[i];
        if (to - from == UINT64_C(1) << shift || !below) {
            raise(&found, node->most[i]);
            continue;
        }
        raise(&found, node->whole[i]);
        from -= i << shift, to -= i << shift;
        raise(&found, height ? node_ask(&nodes[below], height - 1, from, to) : page_ask(&pages[below], from, to));
    }
    return found;
}

static void node_raise(uint32_t node, unsigned height, uint64_t first, uint64_t end, struct levels levels)
{
    unsigned shift = PAGE_LOG2 + PARTS_LOG2 * height;
    for (uint64_t i = first >> shift; i <= (end - 1) >> shift; i++) {
        uint64_t from = largest(first, i << shift), to = least(end, (i + 1) << shift);
        raise(&nodes[node].most[i], levels);
        if (to - from == UINT64_C(1) << shift) {
            raise(&nodes[node].whole[i], levels);
            continue;
        }
        if (!nodes[node].below[i]) {
            uint32_t made = height ? node_new() : page_new();
            nodes[node].below[i] = made;
        }
        from -= i << shift, to -= i << shift;
        if (height)
            node_raise(nodes[node].below[i], height - 1, from, to, levels);
        else
            page_raise(&pages[nodes[node].below[i]], from, to, levels);
    }
}

/* ---- of a memory */

static bool covers(const struct top *top, uint64_t end)
{
    unsigned shift = PAGE_LOG2 + PARTS_LOG2 * (top->height + 1);
    return shift >= 64 || end >> shift == 0 || end == UINT64_C(1) << shift;
}

struct levels spans_ask(uint32_t memory, uint64_t first, uint64_t end)
{
    if (!tops || !tops[memory].node)
        return (struct levels){0};
    const struct top *top = &tops[memory];
    uint64_t covered = UINT64_C(1) << (PAGE_LOG2 + PARTS_LOG2 * (top->height + 1));
    end = covers(top, end) ? end : covered;
    return first < end ? node_ask(&nodes[top->node], top->height, first, end) : (struct levels){0};
}

/* A new top has the one before as its first part. */
static void top_grow(struct top *top)
{
    uint32_t node = node_new();
    nodes[node].below[0] = top->node;
    for (unsigned i = 0; i < PARTS; i++)
        raise(&nodes[node].most[0], nodes[top->node].most[i]);
    *top = (struct top){node, top->height + 1};
}

void spans_raise(uint32_t memory, uint64_t first, uint64_t end, struct levels levels)
{
    if (!tops && !(tops = calloc(store_count(), sizeof *tops)))
        die("no memory for the dependencies of operations:");
    struct top *top = &tops[memory];
    if (!top->node)
        *top = (struct top){node_new(), 0};
    while (!covers(top, end))
        top_grow(top);
    node_raise(top->node, top->height, first, end, levels);
}

void spans_clear(void)
{
    for (uint32_t i = 1; i < page_count; i++)
        free(pages[i].cut);
    free(tops);
    free(nodes);
    free(pages);
    tops = NULL, nodes = NULL, pages = NULL;
    node_count = page_count = 1;
    node_room = page_room = 0;
    cut_bytes = 0;
}

uint64_t spans_bytes(void)
{
    return node_count * sizeof *nodes + page_count * sizeof *pages + cut_bytes;
}
