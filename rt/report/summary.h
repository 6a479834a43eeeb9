/* summary.h: what a run did, for people and as JSON. */
#ifndef KB_SUMMARY_H
#define KB_SUMMARY_H

#include <stdio.h>

#include "common/json.h"
#include "machine/stats.h"

/* Watches all runs: what was busy for requests of the host between kernels does not count as busy for kernels. */
extern struct observer summary_observer;

/* What the host spent on a run, in seconds. */
struct host_times {
    double total, setup, simulation;                    /* setup: benches, fills included */
};

void summary_print(FILE *out, const struct host_times *host);

/* Writes "verify", "first_wrong_op", "races", "notes", "figures", "bounds" and "bound_by" into an open object, and what utilisation_write writes. */
void summary_write(struct json *json);

/* Writes "util", "hbm_slices" and "bytes" into an open object; all figures are integers. */
void utilisation_write(struct json *json);

/* From the first kernel's start to the last one's end; 0 if none has run. */
uint64_t summary_span_ps(void);

/* The time that all complete gemms take at the peak rate of all PEs, in millionths of the span. */
uint64_t summary_peak_ppm(void);

extern const char *const engine_names[ENGINES];         /* "pe_dma read" */

/* Servers of an engine in one PE. */
uint64_t engine_servers(enum engine engine);

/* Writes "host" into an open object. */
void summary_write_host(struct json *json, const struct host_times *host);

/* Prints the first operation that --data debug finds wrong. */
struct difference;
void summary_print_difference(FILE *out, const struct difference *difference);

/* The room's reset (session/reset.c): nothing is left of a run. */
void report_reset(void);

#endif
