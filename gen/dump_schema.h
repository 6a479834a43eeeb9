/* dump_schema.h: what --dump schema prints. */
#ifndef GEN_DUMP_SCHEMA_H
#define GEN_DUMP_SCHEMA_H

#include <stdio.h>

/* Prints the keys of a topology as a JSON Schema (draft-07), for editors and for validators that read YAML scalars as
 * kbgen does. */
void dump_schema(FILE *out);

#endif
