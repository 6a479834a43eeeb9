/* key_table.h: hash tables with chaining, of objects that are found by a number and are never removed. Chains are in the
 * arena. */
#ifndef KB_KEY_TABLE_H
#define KB_KEY_TABLE_H

#include "hash.h"

/* The first member of each object. */
struct key_link {
    struct key_link *next;                              /* of the same hash */
    uint64_t key;
};

/* All 0: an empty table. */
struct key_table {
    struct key_link **chains;                           /* 2^bits of them */
    unsigned bits;
    uint32_t count;
};

/* Returns NULL if no object has the key. */
static inline void *key_table_find(const struct key_table *table, uint64_t key)
{
    struct key_link *link = table->chains ? table->chains[hash_bits(key, table->bits)] : NULL;
    while (link && link->key != key)
        link = link->next;
    return link;
}

/* Adds an object with a key that no other has. The table grows with the number of its objects. */
void key_table_add(struct key_table *table, struct key_link *link, uint64_t key);

#endif
