/* dump_schema.h: what --dump schema prints. */
#ifndef GEN_DUMP_SCHEMA_H
#define GEN_DUMP_SCHEMA_H

#include <stdio.h>

/* The keys of a topology as a JSON Schema (draft-07), for editors, and for validators that take the same scalars for
 * numbers and booleans as kbgen does. */
void dump_schema(FILE *out);

#endif
