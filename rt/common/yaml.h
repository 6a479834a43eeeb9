/* yaml.h: a YAML 1.1 text -> a tree of nodes (node.h).
 *
 * Aliases are resolved (a node may stand in several places), merge keys `<<` laid under, duplicate keys reported.
 * Nesting and what aliases expand to are bounded, so a walk over the tree always ends. What is wrong inside a text is
 * reported; an error that ends the reading gives NULL, after others there is a tree, so that its user can go on. */
#ifndef TEXT_YAML_H
#define TEXT_YAML_H

#include "node.h"

/* A file of one document; an empty file is an empty mapping. A file that cannot be read is a usage_error. */
struct node *yaml_read(const char *path);

/* The content of a file, without a byte order mark; NULL with errno set when it cannot be had. */
const struct source *source_read(const char *path);

/* The document that a source holds; nothing in it is an empty mapping. */
struct node *yaml_document(const struct source *source);

/* The node that the rest of a source from byte `from` of its first line on holds; nothing there is a null. */
struct node *yaml_value(const struct source *source, size_t from);

#endif
