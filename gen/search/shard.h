/* shard.h: a part of a search, which one task of a job array evaluates: the points whose number leaves remainder `index`. */
#ifndef GEN_SEARCH_SHARD_H
#define GEN_SEARCH_SHARD_H

#include <stdint.h>

struct shard {
    uint64_t index, count;                              /* count 1: the whole */
};

/* Reads the argument of --shard: "3/64", "auto" (as the environment tells: shards.def), "auto/64" (where that does not tell how
 * many tasks there are). Anything else is a usage error. */
struct shard shard_read(const char *text);

/* The store of a shard, beside that of the whole: "NAME.3-of-64.db" of "NAME.db". */
const char *shard_store(const char *whole, struct shard shard);

#endif
