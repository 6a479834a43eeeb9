/* distinct.c: a set of vectors of levels: one array of vectors, and a hash table with open addressing of their places. */
#include "distinct.h"

#include <stdlib.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/array.h"
#include "../../rt/common/hash.h"
#include "draw.h"

enum { BITS_LEAST = 8, TRIES = 64 };

struct distinct {
    const struct method_space *space;
    uint64_t size;                                      /* of the space */
    size_t bytes;                                       /* of a vector */
    uint64_t count;
    struct ARRAY(uint32_t) vectors;
    uint64_t *table;                                    /* 1 + the number of a vector; 0: free */
    unsigned bits;
};

struct distinct *distinct_begin(const struct method_space *space)
{
    struct distinct *out = arena_alloc(1, sizeof *out);
    *out = (struct distinct){
        .space = space, .size = method_space_size(space), .bytes = space->axis_count * sizeof(uint32_t),
    };
    return out;
}

void distinct_end(struct distinct *distinct)
{
    array_free(&distinct->vectors);
    free(distinct->table);
}

bool distinct_all(const struct distinct *distinct)
{
    return distinct->count >= distinct->size;
}

static uint32_t *vector(const struct distinct *distinct, uint64_t number)
{
    return distinct->vectors.at + number * distinct->space->axis_count;
}

/* The slot of a vector: where it is, or where it would be. */
static uint64_t *slot(const struct distinct *distinct, const uint32_t *levels)
{
    uint64_t mask = (UINT64_C(1) << distinct->bits) - 1;
    uint64_t i = hash_bits(hash_bytes(0, levels, distinct->bytes), distinct->bits);
    while (distinct->table[i] && memcmp(vector(distinct, distinct->table[i] - 1), levels, distinct->bytes))
        i = (i + 1) & mask;
    return &distinct->table[i];
}

static void grow(struct distinct *distinct)
{
    distinct->bits = distinct->bits ? distinct->bits + 1 : BITS_LEAST;
    size_t room = 0;
    free(distinct->table);
    distinct->table = array_grown(NULL, &room, (size_t)1 << distinct->bits, sizeof *distinct->table);
    memset(distinct->table, 0, room * sizeof *distinct->table);
    for (uint64_t i = 0; i < distinct->count; i++)
        *slot(distinct, vector(distinct, i)) = i + 1;
}

bool distinct_add(struct distinct *distinct, const uint32_t *levels)
{
    if (!distinct->table || distinct->count >> (distinct->bits - 1))
        grow(distinct);
    uint64_t *at = slot(distinct, levels);
    if (*at)
        return false;
    size_t axis_count = distinct->space->axis_count;
    array_reserve(&distinct->vectors, distinct->vectors.count + axis_count);
    memcpy(vector(distinct, distinct->count), levels, distinct->bytes);
    distinct->vectors.count += axis_count;
    *at = ++distinct->count;
    return true;
}

/* Adds 1 to a vector as to a number in a mixed radix; the last point is followed by the first one. */
static void advance(const struct method_space *space, uint32_t *levels)
{
    for (size_t i = space->axis_count; i-- > 0; levels[i] = 0)
        if (++levels[i] < space->axes[i].count && levels[i])
            return;
}

/* A point is found by chance unless the table has nearly all of them; then the next one that is not there will do. */
bool distinct_draw(struct distinct *distinct, uint64_t item, uint32_t *levels)
{
    const struct method_space *space = distinct->space;
    struct draws draws = {.seed = space->seed, .item = item, .stream = STREAM_fill};
    if (distinct_all(distinct))
        return false;
    for (unsigned try = 0; try < TRIES; try++) {
        for (size_t i = 0; i < space->axis_count; i++)
            levels[i] = (uint32_t)draw_below(&draws, space->axes[i].count);
        if (distinct_add(distinct, levels))
            return true;
    }
    do
        advance(space, levels);
    while (!distinct_add(distinct, levels));
    return true;
}
