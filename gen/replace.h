/* replace.h: a topology that was read once and is filled again and again, with some keys replaced. */
#ifndef GEN_REPLACE_H
#define GEN_REPLACE_H

#include "impl.h"
#include "plan.h"
#include "schema.h"

/* The topology as it was read. */
struct base {
    struct topology_text text;
    struct impl_files impls;
    const struct model *model;
    const struct plan *plan;
};

/* Reads, fills and checks the topology at a path; `text` and `impls` must be there. Returns false after errors, which are
 * reported. */
bool base_fill(struct base *base, const char *path);

/* Makes a mapping of the keys to replace from a dotted key and its value. Returns NULL after an error. */
const struct node *replacement(const struct node *key, const struct node *value);

/* Returns the model with keys replaced, filled and checked as a whole; NULL after errors. It takes time for the replaced
 * keys alone. Its `impls` are those of the base. */
const struct model *base_replace(const struct base *base, const struct node *keys);

/* Returns whether what a key has filled makes the same structure in both models. */
bool same_structure(const struct key *key, const struct model *model, const struct model *other);

/* The name of a machine's structure, 32 hexadecimal digits: two machines of the same files have the same structure if and
 * only if their names are equal. */
const char *structure_name(const struct plan *plan);

/* A value in YAML's flow style, as --set takes it. */
const char *flow_text(const struct node *node);

#endif
