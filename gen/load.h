/* load.h: a topology's file, the files it includes and the --set options: three layers, merged into one tree. */
#ifndef GEN_LOAD_H
#define GEN_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "../rt/common/node.h"

/* What a topology is read from. */
struct topology_text {
    const struct source **files;                        /* its file, then those that are included, as they are read */
    size_t file_count;
    bool is_given;                                      /* `files` has them all: nothing is read from the file system */
    char *const *sets;
    size_t set_count;
};

/* The layers, each of which is applied over the one before. */
struct layers {
    const struct node *included, *own;                  /* NULL: the file includes nothing; its own keys */
    const struct node *set;                             /* the --set options; NULL: there are none */
    bool whole;                                         /* no error has left something out */
};

/* Reads the layers of the topology at a path, and lists its files in `text`; reports errors. A file that cannot be read is
 * a usage_error. */
struct layers load_topology(const char *path, struct topology_text *text);

/* Returns the mapping at the top with all layers merged. Subtrees that one layer alone has are that layer's nodes. */
const struct node *merge_layers(const struct layers *layers);

/* Merges two mappings, key by key; `top` replaces all else. Either may be NULL. */
const struct node *overlay(const struct node *base, const struct node *top);

/* Parses an option KEY=VALUE of --set. Returns NULL after an error. */
const struct node *read_set(const char *option);

/* Wraps a value in mappings for a path of keys such as a.b.c, the first `length` bytes of a text that begins at `where`.
 * Returns NULL after an error. */
const struct node *nest(struct where where, const char *path, size_t length, const struct node *value);

#endif
