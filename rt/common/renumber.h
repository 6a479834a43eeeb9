/* renumber.h: other numbers for a running simulator: what kbgen makes of its topology with some keys replaced.
 *
 * kbgen's own passes compute them (gen/renumber.c, linked into every simulator), with the checks, messages and derived
 * values of a build. All functions report errors as those passes do (diag.h). */
#ifndef KB_RENUMBER_H
#define KB_RENUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node.h"
#include "quantity.h"

/* An object of the simulator that a topology's numbers make, without structure. */
struct number {
    const char *symbol;
    char *bytes;
    size_t length;                                      /* 0: the machine has no such object */
};

/* The objects that replacing keys may change, and the topology itself, as text. */
enum number_of { NUMBER_attrs, NUMBER_k_per_cycle, NUMBER_lanes, NUMBER_op_costs, NUMBER_name, NUMBER_hash, NUMBER_chips,
                 NUMBER_topology, NUMBERS, REPLACED = NUMBER_topology };

struct numbers {
    struct number list[NUMBERS];
};

/* A topology whose numbers are computed again and again. */
struct renumbering;

/* Reads the topology of a simulator from its text, NUMBER_topology. What it allocates must stay. */
struct renumbering *renumber_begin(const char *text);

/* Both return a mapping of the keys to replace: the first makes it from an option KEY=VALUE of --set, the second from a
 * dotted key and its value. They return NULL after an error. */
const struct node *renumber_option(const char *option);
const struct node *renumber_key(const struct node *key, const struct node *value);

/* Merges two such mappings; the second one is applied last. Either may be NULL. */
const struct node *renumber_both(const struct node *first, const struct node *second);

/* Computes the numbers of the topology with keys replaced; NULL: of the topology as it is. Returns false after errors,
 * among them that a key needs a build. */
bool renumber(const struct renumbering *r, const struct node *keys, struct numbers *numbers);

/* By how much a number is made better: times `up` if more of it is better, times `down` if less is. Infinite: to no limit,
 * or to the least that the key takes; a key that has neither cannot be any better. */
struct better_by {
    bool infinite;
    double up, down;
};

/* A number key of the topology, and a better number for it. */
struct better_key {
    const char *path;                                   /* "cube.noc.link_bw_gbs", "...cost.exp", "system.links[0].bw_gbs" */
    bool in_list;                                       /* it is of an entry of a list, which --set replaces as a whole */
    const char *place;                                  /* "ref_sip.yaml:54", "--set", "default" */
    const char *value, *changed;                        /* "256 GB/s"; changed NULL: it cannot be any better */
    const char *set;                                    /* the change exactly, as --set takes it: "KEY=281600000000 B/s" */
    const struct node *keys;                            /* for renumber */
    double number;                                      /* in base units; of a bandwidth, 0 is no limit */
    double least, most;                                 /* its bounds */
    bool whole;                                         /* it is a whole number of base units */
    bool more_is_better;
    bool unlimited;                                     /* it may have no limit */
    enum dimension dimension;
    const struct unit *shown, *base;                    /* that values are shown in, and the base unit; NULL: none */
    double share;                                       /* of a time that is proportional to the key: what goes away */
};

/* Lists all number keys that need no build, in the order of gen/schema.def, with `keys` replaced before. The list is empty
 * after errors. */
struct better_keys {
    struct better_key *list;
    size_t count;
};
struct better_keys renumber_better(const struct renumbering *r, const struct node *keys, struct better_by by);

/* Returns where the topology, with `keys` replaced, has a key: "ref_sip.yaml:54", "--set", "default". NULL: topologies have
 * no such key. */
const char *renumber_place(const struct renumbering *r, const struct node *keys, const char *path);

#endif
