/* path_report.h: a critical path, that of a run or of a launch, for people and as JSON. */
#ifndef KB_PATH_REPORT_H
#define KB_PATH_REPORT_H

#include <stdio.h>

#include "path.h"

/* The share that a time has of the time of a path, from 0 to 1. */
double path_share(const struct path *path, uint64_t ps);

/* Prints the sums by reason, resource and line, and the longest segments. */
void path_print(FILE *out, const struct path *path);

/* Writes begin, end, sums and segments, those that follow each other and differ in the tile alone as one, into the open
 * object; path_write_longest: the longest segments as "longest". */
void path_write(struct json *json, const struct path *path);
void path_write_longest(struct json *json, const struct path *path);

#endif
