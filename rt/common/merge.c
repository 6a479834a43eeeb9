/* merge.c: duplicate keys and merge keys, which libyaml leaves to its users.
 *
 * The first entry of a key stays: a mapping's own entries come before those that it merges, and those of the first
 * source before those of the second. Equal keys are found by sorting, so many of them cost little. */
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "merge.h"

struct candidate {
    struct node_entry entry;
    bool merged, dropped;
};

struct candidates {
    struct candidate *list;
    size_t count;
};

static void add(struct candidates *all, struct node_entry entry, bool merged)
{
    all->list = arena_grow(all->list, all->count, sizeof(*all->list));
    all->list[all->count++] = (struct candidate){ .entry = entry, .merged = merged };
}

/* Candidates are in one array, so the address gives the order of equal keys. */
static int by_key(const void *a, const void *b)
{
    const struct candidate *x = *(struct candidate *const *)a, *y = *(struct candidate *const *)b;
    int order = strcmp(x->entry.key->text, y->entry.key->text);
    return order ? order : (x > y) - (x < y);
}

static void drop(struct candidate *second, const struct candidate *first)
{
    second->dropped = true;
    if (second->merged)
        return;
    error_at(second->entry.key->where, "duplicate key '%s'", second->entry.key->text);
    note_at(first->entry.key->where, "it is first given here");
}

static void drop_duplicates(struct candidates *all)
{
    struct candidate **sorted = malloc((all->count + 1) * sizeof(*sorted));
    if (!sorted)
        die("out of memory");
    for (size_t i = 0; i < all->count; i++)
        sorted[i] = &all->list[i];
    qsort(sorted, all->count, sizeof(*sorted), by_key);
    for (size_t i = 1, first = 0; i < all->count; i++) {
        if (strcmp(sorted[i]->entry.key->text, sorted[first]->entry.key->text))
            first = i;
        else
            drop(sorted[i], sorted[first]);
    }
    free(sorted);
}

static void merge_mapping(struct candidates *all, const struct node *from)
{
    if (from->type != NODE_MAPPING && !from->broken)
        error_at(from->where, "'<<' takes a mapping or a sequence of mappings");
    for (size_t i = 0; from->type == NODE_MAPPING && i < from->count; i++)
        add(all, from->entries[i], true);
}

static void merge(struct candidates *all, const struct node *from)
{
    if (from->type != NODE_SEQUENCE)
        merge_mapping(all, from);
    for (size_t i = 0; from->type == NODE_SEQUENCE && i < from->count; i++)
        merge_mapping(all, from->items[i]);
}

/* The mapping's own entries without `<<`, then what `<<` names. A second `<<` is a duplicate as any other key: only the
 * first one merges. */
static struct candidates with_merged(const struct candidates *own)
{
    struct candidates all = { 0 };
    const struct node *from = NULL;
    for (size_t i = 0; i < own->count; i++) {
        const struct node_entry *entry = &own->list[i].entry;
        bool merges = entry->key->plain && !strcmp(entry->key->text, "<<");
        if (merges && !own->list[i].dropped)
            from = entry->value;
        else if (!own->list[i].dropped)
            add(&all, *entry, false);
    }
    if (from)
        merge(&all, from);
    return all;
}

void mapping_finish(struct node *mapping)
{
    struct candidates own = { 0 };
    for (size_t i = 0; i < mapping->count; i++)
        add(&own, mapping->entries[i], false);
    drop_duplicates(&own);
    struct candidates all = with_merged(&own);
    drop_duplicates(&all);
    *mapping = (struct node){ .type = NODE_MAPPING, .where = mapping->where, .text = "", .weight = 1 };
    for (size_t i = 0; i < all.count; i++)
        if (!all.list[i].dropped)
            node_add(mapping, all.list[i].entry.key, all.list[i].entry.value);
}
