/* attrs.h: a machine's attributes as numbers: ps, bytes, bytes/s (0: no limit), kHz, counts, booleans as 0 and 1. */
#ifndef KB_ATTRS_H
#define KB_ATTRS_H

#include <stdint.h>

struct attrs {
#define ATTR(name) uint64_t name;
#include "attrs.def"
#undef ATTR
};

/* The attributes of this machine, from its topology. */
extern const struct attrs kb_attrs;

#endif
