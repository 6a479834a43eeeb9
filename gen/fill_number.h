/* fill_number.h: the numbers of a topology, alone and in tables: exact as written, rounded once. */
#ifndef GEN_FILL_NUMBER_H
#define GEN_FILL_NUMBER_H

#include "../rt/common/node.h"
#include "schema.h"

/* Reads a number into *out, in base units; a length becomes the time of so long a wire. */
void fill_number(const struct key *key, const struct node *node, struct value *out, const mpq_t ps_per_um);

/* Reads a ratio exactly. read_ratio reports nothing: returns NULL, or why it is none. */
void fill_ratio(const struct key *key, const struct node *node, struct text *out);
const char *read_ratio(const struct key *key, const struct node *node, mpq_t value);

/* Lays a table over its defaults. */
void fill_dtypes(const struct key *key, const struct node *standard, const struct node *node, struct value *out);
void fill_ops(const struct key *key, const struct node *standard, const struct node *node, struct model *model);

/* Reads the value of a parameter: a number, or a quantity of any kind. */
void fill_param(const struct node *node, struct impl_param *out);

#endif
