/* vector.h: points as they are written, {"cube.noc.link_bw_gbs": 512, "params.tile_m": 128}, as vectors of levels. */
#ifndef GEN_SEARCH_VECTOR_H
#define GEN_SEARCH_VECTOR_H

#include "space.h"

/* Reads a point: all keys of the space, each with one of its levels. Reports all errors. */
bool vector_read(const struct space *space, const struct node *point, uint32_t *levels);

/* Reads a file of points for the method list: JSON lines, or CSV with the keys as its first line. Other columns of CSV are
 * ignored, so that what `kbgen front --csv` writes is such a file. Returns the vectors, one after the other, and how many
 * there are; reports all errors. */
uint32_t *vectors_of_file(const struct space *space, const char *path, uint64_t *count);

#endif
