/* schema.h: schema.def as a tree, for reading topologies and for describing them. */
#ifndef GEN_SCHEMA_H
#define GEN_SCHEMA_H

#include "../rt/common/quantity.h"
#include "model.h"

/* The kinds of values, and what each fills. KIND(name, dimension of its numbers) */
#define KINDS \
    KIND(mapping, none)                                 /* a mapping of further keys */ \
    KIND(attachments, none)                             /* a sequence of mappings of its keys: model's attach */ \
    KIND(planes, none)                                  /* likewise: model's planes */ \
    KIND(chip_links, none)                              /* likewise: model's chip_links */ \
    KIND(either, none)                                  /* a word of `form`, or a mapping: a struct layout */ \
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
    KIND(size_limit, size)                              /* whole bytes; ~ is 0, no limit */ \
    KIND(count, none)                                   /* a whole number */ \
    KIND(count_limit, none)                             /* a whole number; ~ is 0, no limit */ \
    KIND(choice, none)                                  /* one of the words of `form`: its index */ \
    KIND(flag, none)                                    /* true or false: 1 or 0 */ \
    KIND(router, none)                                  /* [row, column]: a struct router_at */ \
    KIND(routers, none)                                 /* a sequence of routers: a struct layout */ \
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
    BETTER_MORE,                                        /* a larger one is: bandwidths, clocks, sizes, depths */
    BETTER_MORE_OR_NONE                                 /* a larger one is; 0 means no part at all, another structure */
};

struct key {
    const char *name;
    const char *path;                                   /* dotted path from the top */
    enum kind kind;
    enum better better;
    const char *form, *least, *most, *standard, *doc;   /* as in schema.def */
    size_t target;                                      /* offset of the member that it fills */
    struct key *keys;                                   /* the keys below a mapping, a list or either */
    const char **names;                                 /* theirs */
    size_t count;
};

extern const char *const dtype_names[DTYPES];

/* The keys of an entry of sip.io.attach, of cube.noc.planes and of system.links. */
struct attachment_keys {
    struct value cube, side;
};

struct plane_keys {
    struct value order, direction;
};

struct chip_link_keys {
    struct chip_end_keys {
        struct value sip, cube, side;
    } a, b;
    struct value bw, latency;
};

/* Whether its value is a sequence of mappings of its keys. */
static inline bool key_is_list(const struct key *key)
{
    return key->kind == KIND_attachments || key->kind == KIND_planes || key->kind == KIND_chip_links;
}

/* Whether a mapping that has its parent must give it, or a key below it. */
bool key_must_be_given(const struct key *key);

/* The top: a mapping without a name. */
const struct key *schema(void);

/* A list's key with the keys of its element i: their paths have its number, as "system.links[2].a.side" does. */
struct key schema_element(const struct key *list, size_t i);

/* The key with a name below another key, or NULL. */
const struct key *schema_key(const struct key *of, const char *name);

/* Whether ~ is a value of a key: no limit, which is 0. */
bool schema_is_limit(const struct key *key);

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
