/* key_table.c: hash tables with chaining grow. */
#include "key_table.h"

#include <string.h>

#include "arena.h"

/* A table grows fourfold, for the arena keeps the chains that it had. */
enum { FIRST_BITS = 10, MORE_BITS = 2 };

static void link_in(struct key_table *table, struct key_link *link)
{
    struct key_link **chain = &table->chains[hash_bits(link->key, table->bits)];
    link->next = *chain;
    *chain = link;
}

static void grow(struct key_table *table)
{
    struct key_link **old = table->chains;
    size_t chains = old ? (size_t)1 << table->bits : 0;
    table->bits = old ? table->bits + MORE_BITS : FIRST_BITS;
    table->chains = arena_alloc((size_t)1 << table->bits, sizeof *table->chains);
    memset(table->chains, 0, sizeof *table->chains << table->bits);     /* or each page faults at a read and at a write */
    for (size_t i = 0; i < chains; i++)
        for (struct key_link *link = old[i], *next; link; link = next) {
            next = link->next;
            link_in(table, link);
        }
}

void key_table_add(struct key_table *table, struct key_link *link, uint64_t key)
{
    if (!table->chains || table->count >> table->bits)
        grow(table);
    link->key = key;
    link_in(table, link);
    table->count++;
}
