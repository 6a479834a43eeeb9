/* json_copy.h: checks a JSON text and copies it with the characters escaped that HTML would interpret. */
#ifndef KB_JSON_COPY_H
#define KB_JSON_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Copies the value that begins at *text, without white space and with '<' in texts as an escape, and moves *text behind
 * it. Members of objects are left out if `drops` says so of their path, such as "launches.commands". Returns NULL, or what
 * is wrong; then *text is where. */
const char *json_copy(FILE *out, const char **text, const char *end, bool (*drops)(const char *path));

/* The first byte of *text that is not white space, or `end`. */
const char *json_skip_space(const char *text, const char *end);

#endif
