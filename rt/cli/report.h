/* report.h: `SIM report`: a page of results. */
#ifndef KB_REPORT_H
#define KB_REPORT_H

#include "report/result.h"
#include "common/subcommand.h"

extern const struct subcommand report_subcommand;

/* Writes a page of the result that `fill` writes, and completes the file. */
void report_write(struct output *output, void (*fill)(struct json *, void *), void *arg);

#endif
