/* bounds.h: the peak rates of the machine, from its attributes alone. */
#ifndef KB_BOUNDS_H
#define KB_BOUNDS_H

#include <stdint.h>

#include "base/tables.h"

/* Operations per second of one PE's pe_gemm, two for each multiply-add. 0: it lacks the dtype. */
double peak_flops_per_pe(enum dtype dtype);

/* Bytes per second of one HBM slice. 0: without limit. */
double peak_hbm_bps_per_slice(void);

/* Directed links of a class that lead to an existing neighbour. */
uint64_t peak_links(enum link_class class);

/* Whether the machine may have links of a class: those between chips are there only if the topology lists some. */
bool links_exist(enum link_class class);

/* Bytes per second of each link of a class; between chips, of the widest. 0: without limit. */
uint64_t link_bw_bps(enum link_class class);

extern const char *const link_class_names[LINK_CLASSES];

#endif
