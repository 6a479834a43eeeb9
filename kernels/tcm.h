/* tcm.h: the part of a TCM that kernels allocate in: what its scheduler does not reserve for tiles. */
#ifndef TCM_H
#define TCM_H

#include <kb/arith.h>
#include <kb/attrs.h>

/* Its bytes, with nothing allocated. */
static inline uint64_t tcm_allocatable_bytes(void)
{
    return kb_attrs.pe_tcm_size_bytes - kb_attrs.pe_tcm_reserved_bytes;
}

/* What an allocation of `bytes` takes of it: it begins at a multiple of 64. */
static inline uint64_t tcm_padded(uint64_t bytes)
{
    return kb_product(kb_ceil_div(bytes, 64), 64);
}

#endif
