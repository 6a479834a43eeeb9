/* util.h: how busy each kind of resource was while kernels ran, and what that says. */
#ifndef KB_UTIL_H
#define KB_UTIL_H

#include <stdint.h>

#include "base/tables.h"
#include "machine/stats.h"

struct resource {
    const char *name;                                   /* "pe_gemm", "hbm", "noc links" */
    uint64_t busy_ps, servers;                          /* sum over them */
    uint64_t busiest_ps, busiest_servers;               /* of the busiest group that is known, else of all */
};

enum { RESOURCES = ENGINES + 1 + 2 * SPACES - 1 + LINK_CLASSES };

/* All of them: engines, pe_gemm and pe_math together, memories, links. */
void util_collect(struct resource resources[RESOURCES]);

/* From the first kernel's start to the last one's end; 0: none has run. */
uint64_t util_span_ps(void);

/* What is busy for a request of the host between kernels is not of their time: how busy everything is so far is kept
 * when it begins, and put back when it has ended, if no kernel ran meanwhile. Watches all runs. */
extern struct observer util_observer;

void util_reset(void);

/* Shares of the span that is busy, on average and of the busiest. */
double util_mean(const struct resource *resource);
double util_busiest(const struct resource *resource);

#endif
