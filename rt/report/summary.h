/* summary.h: what a run did, for people and as JSON. */
#ifndef KB_SUMMARY_H
#define KB_SUMMARY_H

#include <stdio.h>

#include "common/json.h"

/* What the host spent on a run, in seconds. */
struct host_times {
    double total, simulation;
};

void summary_print(FILE *out, const struct host_times *host);

/* "verify", "util" and "bytes" into an open object: integers but for errors and tolerances. */
void summary_write(struct json *json);

/* "host" into an open object. */
void summary_write_host(struct json *json, const struct host_times *host);

/* The first operation that --data debug finds wrong. */
struct difference;
void summary_print_difference(FILE *out, const struct difference *difference);

#endif
