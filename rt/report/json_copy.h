/* json_copy.h: checks a JSON text and copies it with the characters escaped that HTML would interpret. */
#ifndef KB_JSON_COPY_H
#define KB_JSON_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Copies the value that begins at *text, without white space and with '<' in texts as an escape, and moves *text behind
 * it. `keeps` says of the path of a member, such as "launches.commands", how many elements of a list are copied: 0 leaves out
 * the member, whatever it is; ALL_ELEMENTS keeps it whole. `sees`, unless it is NULL, gets the text of each member's value.
 * Returns NULL, or what is wrong; then *text is where. */
#define ALL_ELEMENTS SIZE_MAX
const char *json_copy(FILE *out, const char **text, const char *end, size_t (*keeps)(const char *path),
                      void (*sees)(const char *path, const char *value, size_t length));

/* The first byte of *text that is not white space, or `end`. */
const char *json_skip_space(const char *text, const char *end);

#endif
