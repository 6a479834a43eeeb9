/* param.h: a parameter of a bench: its type, its value as text and in JSON. */
#ifndef KB_PARAM_H
#define KB_PARAM_H

#include <stdio.h>

#include "base/json.h"
#include "kb/host.h"

struct kb_value param_initial(const struct kb_param *p);

/* The value that a text of the command line is; NULL, or what is wrong with it: "is no whole number". */
const char *param_parse(const struct kb_param *p, const char *text, struct kb_value *out);

/* Whether a number is within its bounds; what is no number is. */
bool param_within(const struct kb_param *p, const struct kb_value *value);

/* What it may be, for messages: "a whole number from 1 to 64". */
const char *param_domain(const struct kb_param *p);

void param_write(struct json *json, const struct kb_param *p, const struct kb_value *value);

/* A line of `list`: name, default, help, bounds. */
void param_list(FILE *out, const struct kb_param *p);

#endif
