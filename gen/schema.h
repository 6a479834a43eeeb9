/* schema.h: schema.def as a tree, for reading topologies and for describing them. */
#ifndef GEN_SCHEMA_H
#define GEN_SCHEMA_H

#include "../rt/common/quantity.h"
#include "model.h"

/* The kinds of values, and what each fills. KIND(name, dimension of its numbers) */
#define KINDS \
    KIND(mapping, none)                                 /* a mapping of further keys */ \
    KIND(list, none)                                    /* a sequence of mappings of its keys: model's attach */ \
    KIND(either, none)                                  /* its default as a word, or a mapping */ \
    KIND(path, none)                                    /* a file's path; fills nothing */ \
    KIND(constant, none)                                /* the word `form`; fills nothing */ \
    KIND(impl, none)                                    /* builtin.`form` or an identifier: a struct text */ \
    KIND(params, none)                                  /* numbers by name: a struct impl_params */ \
    KIND(name, none)                                    /* an identifier: a struct text */ \
    KIND(resource, none)                                /* an identifier or ~: a struct text */ \
    KIND(ratio, none)                                   /* a number, exact: a struct text, as written */ \
    KIND(time, time)                                    /* ps; fills a struct value, as do all down to flag */ \
    KIND(length, length)                                /* ps, by system.wire.ns_per_mm */ \
    KIND(bandwidth, bandwidth)                          /* bytes/s; ~ is 0, no limit */ \
    KIND(clock, clock)                                  /* kHz */ \
    KIND(size, size)                                    /* whole bytes */ \
    KIND(count, none)                                   /* a whole number */ \
    KIND(choice, none)                                  /* one of the words of `form`: its index */ \
    KIND(flag, none)                                    /* true or false: 1 or 0 */ \
    KIND(router, none)                                  /* [row, column]: a struct router_at */ \
    KIND(routers, none)                                 /* a sequence of routers: model's pe_at */ \
    KIND(dtypes, none)                                  /* counts by dtype: an array of struct value */ \
    KIND(ops, none)                                     /* counts by math op, the topology's own included: model's ops */

enum kind {
#define KIND(name, dimension) KIND_##name,
    KINDS
#undef KIND
};

/* How other values of a key change a machine. */
enum better {
    BETTER_BUILT,                                       /* they make another structure, which is compiled */
    BETTER_EITHER,                                      /* no direction is better: a name, a choice, a group of keys */
    BETTER_LESS,                                        /* a smaller number is the better part: times, lengths, costs */
    BETTER_MORE                                         /* a larger one is: bandwidths, clocks, sizes, depths */
};

struct key {
    const char *name;
    const char *path;                                   /* dotted path from the top */
    enum kind kind;
    enum better better;
    const char *form, *least, *most, *standard, *doc;   /* as in schema.def */
    size_t target;                                      /* offset of the member that it fills */
    struct key *keys;                                   /* the keys below a mapping, list or either */
    const char **names;                                 /* theirs */
    size_t count;
};

extern const char *const dtype_names[DTYPES];

/* The keys of an entry of sip.io.attach. */
struct attachment_keys {
    struct value cube, side;
};

/* The top: a mapping without a name. */
const struct key *schema(void);

/* The key with a name below another key, or NULL. */
const struct key *schema_key(const struct key *of, const char *name);

/* The dimension and the unit (NULL: none) of a key's bare numbers. */
enum dimension schema_dimension(const struct key *key);
const struct unit *schema_unit(const struct key *key);

/* Converts a bound of a key, or another number known to be right, to base units. */
void schema_number(const struct key *key, const char *text, mpq_t value);

/* Describes its values, for messages: "a time from 0 to 1e9 ns". */
const char *schema_expects(const struct key *key);

/* The words of a choice: stores at most `most` of them and returns their number. */
size_t schema_words(const struct key *key, const char **words, size_t most);

#endif
