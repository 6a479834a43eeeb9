/* peak.h: what the machine can do at best. */
#ifndef KB_PEAK_H
#define KB_PEAK_H

#include <stdint.h>

#include "base/tables.h"

uint64_t peak_pes(void);

/* Operations a second of one PE's pe_gemm, two for each multiply and add; 0: it lacks the dtype. */
double peak_flops_per_pe(enum dtype dtype);

/* Bytes a second of one PE's HBM slice; 0: without limit. */
double peak_hbm_bps_per_pe(void);

/* Directed links of a class that move anything: those of existing neighbours. */
uint64_t peak_links(enum link_class class);

extern const char *const link_class_names[LINK_CLASSES];

#endif
