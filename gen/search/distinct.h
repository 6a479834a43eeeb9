/* distinct.h: the points that a method has asked for: a hash table of vectors, so that it asks for none of them twice. */
#ifndef GEN_SEARCH_DISTINCT_H
#define GEN_SEARCH_DISTINCT_H

#include "method_kind.h"

struct distinct;

struct distinct *distinct_begin(const struct method_space *space);
void distinct_end(struct distinct *distinct);

/* Adds a point. Returns false if it is there already. */
bool distinct_add(struct distinct *distinct, const uint32_t *levels);

/* Draws a point that is not there, for an item (draw.h), and adds it. Returns false if all points of the space are there. */
bool distinct_draw(struct distinct *distinct, uint64_t item, uint32_t *levels);

/* Whether all points of the space are there. */
bool distinct_all(const struct distinct *distinct);

#endif
