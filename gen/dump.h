/* dump.h: what --dump prints, but for the schema. */
#ifndef GEN_DUMP_H
#define GEN_DUMP_H

#include <stdio.h>

#include "plan.h"

/* One line a key, in the order of the schema: dotted path, value in base units, its place or `default`. */
void dump_model(FILE *out, const struct model *model);

/* One line a node, in rank order: rank, name, the router that it hangs on. */
void dump_nodes(FILE *out, const struct plan *plan);

/* One line a directed link, in the order of their numbers: number, from, to, class, ps, bytes/s (~: no limit). */
void dump_links(FILE *out, const struct plan *plan);

/* One line a way, as its steps: in a cube between routers, in a SIP between cubes, and to the io_cpu. */
void dump_routes(FILE *out, const struct plan *plan);

/* A graph for graphviz: the machine down to its cubes, and one cube down to its PEs. */
void dump_dot(FILE *out, const struct plan *plan);

#endif
