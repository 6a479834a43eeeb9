/* param.h: a parameter of a bench: its type, and its value on the command line, in JSON and in `list`. */
#ifndef KB_PARAM_H
#define KB_PARAM_H

#include <stdio.h>

#include "common/json.h"
#include "kb/host.h"

struct kb_value param_default(const struct kb_param *p);

/* Parses a value of the command line. Returns NULL, or what is wrong with it: "is not a whole number". */
const char *param_parse(const struct kb_param *p, const char *text, struct kb_value *out);

/* Returns whether a number is within its bounds; true for other values. */
bool param_within(const struct kb_param *p, const struct kb_value *value);

/* The values that it can have, for messages: "a whole number from 1 to 64". */
const char *param_domain(const struct kb_param *p);

/* A value as text, for people: "64 KiB". */
const char *param_text(const struct kb_param *p, const struct kb_value *value);

void param_write(struct json *json, const struct kb_param *p, const struct kb_value *value);

/* Prints a line of `list`: name, default, help, bounds. */
void param_list(FILE *out, const struct kb_param *p);

/* Writes the same as a JSON object. */
void param_describe(struct json *json, const struct kb_param *p);

#endif
