/* yaml.h: YAML 1.1 texts as trees of nodes (node.h).
 *
 * Aliases are resolved, so one node may be in several places; merge keys `<<` are resolved and duplicate keys reported.
 * Nesting and the expansion of aliases are bounded, so that a walk over the tree ends. Errors of a text are reported;
 * after one that ends the reading the tree is NULL, after others there is a tree, so that its user can go on. */
#ifndef KB_YAML_H
#define KB_YAML_H

#include "node.h"

/* Reads a file of one document, "-" being standard input; an empty file is an empty mapping. A file that cannot be read is
 * a usage error. */
struct node *yaml_read(const char *path);

/* Reads a file, and drops its byte order mark. Returns NULL with errno set if it cannot be read. */
const struct source *source_read(const char *path);

/* Reads the file that a command line names, "-" being standard input; a file that cannot be read is a usage error. */
#define STANDARD_INPUT "standard input"                 /* its path in messages */
const struct source *source_given(const char *path);

/* Parses a source of one document; an empty one is an empty mapping. */
struct node *yaml_document(const struct source *source);

/* Parses the rest of a source from byte `from` of its first line on; it may be nothing (node.h). */
struct node *yaml_value(const struct source *source, size_t from);

#endif
