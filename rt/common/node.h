/* node.h: a YAML document as a tree of nodes, each with its place. Scalars stay text: read.h decides whether 010 is a
 * number or `no` a boolean. */
#ifndef KB_NODE_H
#define KB_NODE_H

#include <stdbool.h>

#include "diag.h"

enum node_type { NODE_SCALAR, NODE_SEQUENCE, NODE_MAPPING };

struct node {
    enum node_type type;
    bool plain;                                         /* a scalar without quotes */
    bool broken;                                        /* an error was reported instead of it: report no other */
    struct where where;
    const char *text;                                   /* of a scalar, 0-terminated, no NUL within */
    struct node **items;                                /* of a sequence */
    struct node_entry *entries;                         /* of a mapping, in the order of the file */
    size_t count;                                       /* items or entries */
    size_t weight;                                      /* nodes of the tree from here down, aliases counted in full */
};

struct node_entry {
    struct node *key;                                   /* always a scalar */
    struct node *value;
};

/* An empty sequence, an empty mapping, or an empty scalar. */
struct node *node_new(struct where where, enum node_type type);
void node_append(struct node *sequence, struct node *item);
void node_add(struct node *mapping, struct node *key, struct node *value);

/* The value of a key; NULL if it is absent, or the node is not a mapping. */
struct node *node_get(const struct node *mapping, const char *key);

/* Reports every key that is not in `names`, with the nearest name. `what` names the mapping. */
void node_check_keys(const struct node *mapping, const char *what, const char *const *names, size_t count);

/* Reports one such key. */
void error_unknown_key(const struct node *key, const char *what, const char *const *names, size_t count);

/* ~ or null. */
bool node_is_null(const struct node *node);

/* A value that is missing, as in `key:`. It is not null, nor anything else that a key takes. */
bool node_is_nothing(const struct node *node);

/* true or false, without quotes. */
bool node_is_bool(const struct node *node);

#endif
