/* read.h: what a node says, as the type that its reader wants. Each reports its own located error, in one form,
 *     WHAT must be DESCRIPTION, not THING
 * and returns whether it could read. `what` names the value: "bytes", "cube.noc.rows". */
#ifndef TEXT_READ_H
#define TEXT_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "node.h"
#include "quantity.h"

/* That error, unless the node is broken; `why` goes into a note unless it is NULL or empty. */
void error_expected(const struct node *node, const char *what, const char *description, const char *why);

/* A mapping or a sequence. */
bool node_is(const struct node *node, enum node_type type, const char *what);

/* A number, exactly, in base units; a bare one counts `bare`. Reports nothing: returns NULL, or why it is none
 * (quantity.h). */
const char *node_number(const struct node *node, enum dimension dimension, const struct unit *bare, mpq_t value);

/* A whole number; decimal or 0x, `_` between digits. */
bool node_u64(const struct node *node, const char *what, uint64_t least, uint64_t most, uint64_t *out);

/* A time: a bare number counts ns, a unit may follow; rounded half up to ps; up to `most_ps`. */
bool node_ps(const struct node *node, const char *what, uint64_t most_ps, uint64_t *out);

/* true or false. */
bool node_bool(const struct node *node, const char *what, bool *out);

/* A text that is no null, boolean or number. */
bool node_string(const struct node *node, const char *what, const char **out);

/* An identifier: a letter or _, then letters, digits and _. */
bool node_identifier(const struct node *node, const char *what, const char **out);

/* One of `names`; out: its index. */
bool node_choice(const struct node *node, const char *what, const char *const *names, size_t count, unsigned *out);

#endif
