/* dump.h: what --dump prints, except the schema (dump_schema.h). */
#ifndef GEN_DUMP_H
#define GEN_DUMP_H

#include <stdio.h>

#include "plan.h"

/* One line for each key, in schema order: dotted path, value in base units, its place or `default`. */
void dump_model(FILE *out, const struct model *model);

/* One line for each node, in rank order: rank, name, the router that it is attached to. */
void dump_nodes(FILE *out, const struct plan *plan);

/* One line for each directed link, in numeric order: number, from, to, class, latency in ps, bytes/s (~ is no limit).
 */
void dump_links(FILE *out, const struct plan *plan);

/* One line for each route, as its steps: between routers of a cube, between cubes of a SIP, and to the io_cpu. */
void dump_routes(FILE *out, const struct plan *plan);

/* A graph for graphviz: the machine down to its cubes, and one cube down to its PEs. */
void dump_dot(FILE *out, const struct plan *plan);

#endif
