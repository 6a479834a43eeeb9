/* space_schema.h: what --dump schema-space prints. */
#ifndef GEN_SEARCH_SPACE_SCHEMA_H
#define GEN_SEARCH_SPACE_SCHEMA_H

#include <stdio.h>

/* Prints the keys of a space file as a JSON Schema (draft-07), for editors. */
void dump_schema_space(FILE *out);

#endif
