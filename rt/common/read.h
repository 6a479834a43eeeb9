/* read.h: nodes as typed values. Each function returns whether the node has the type, and if not, reports
 *     WHAT must be DESCRIPTION, not THING
 * at the node's place. `what` names the value: "bytes", "cube.noc.rows". */
#ifndef KB_READ_H
#define KB_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "node.h"
#include "quantity.h"

/* Reports that error, unless the node is broken, with `why` as a note, unless it is NULL or empty. */
void error_expected(const struct node *node, const char *what, const char *description, const char *why);

/* A mapping or a sequence. */
bool node_is(const struct node *node, enum node_type type, const char *what);

/* Reads an exact number in base units; a number without a unit counts `bare`. Reports nothing: returns NULL, or why the
 * node is not a number (quantity.h). */
const char *node_number(const struct node *node, enum dimension dimension, const struct unit *bare, mpq_t value);

/* A whole number from `least` to `most`. */
bool node_u64(const struct node *node, const char *what, uint64_t least, uint64_t most, uint64_t *out);

/* A time up to `most_ps`, rounded half up to ps; a number without a unit counts ns. */
bool node_ps(const struct node *node, const char *what, uint64_t most_ps, uint64_t *out);

/* true or false. */
bool node_bool(const struct node *node, const char *what, bool *out);

/* A text, which is not null, a boolean or a number. */
bool node_string(const struct node *node, const char *what, const char **out);

/* An identifier: a letter or _, then letters, digits and _. */
bool node_identifier(const struct node *node, const char *what, const char **out);

/* One of `names`, as its index. */
bool node_choice(const struct node *node, const char *what, const char *const *names, size_t count, unsigned *out);

#endif
