/* needs.h: what a bench needs of the machine. On a machine that lacks it the run is refused before the launch, with the key
 * of the topology and what to change. */
#ifndef NEEDS_H
#define NEEDS_H

#include "tcm.h"
#include <kb/host.h>
#include <kb/measure.h>

/* What kernels have of a TCM: tensors begin at a multiple of 64. */
static inline uint64_t needs_tcm_bytes(void)
{
    uint64_t reserved = tcm_padded(kb_attrs.pe_tcm_reserved_bytes), all = kb_attrs.pe_tcm_size_bytes;
    return all - kb_min(reserved, all);
}

/* Refuses the run if `what` takes more bytes of a TCM than kernels have, or than tiles have; `advice` says how it takes
 * less. */
#define needs_tcm(bytes, what, advice)                                                                                 \
    needs_bytes_at(bytes, needs_tcm_bytes(), what, "kernels have", "pe_tcm.attrs.size_mb less reserved_mb",         \
                   advice, __FILE__, __LINE__)
#define needs_region(bytes, what, advice)                                                                              \
    needs_bytes_at(bytes, kb_attrs.pe_tcm_reserved_bytes, what, "tiles have", "pe_tcm.attrs.reserved_mb", advice, __FILE__, __LINE__)

/* Refuses the run if a message is shorter than an element. */
#define needs_message(bytes)                                                                                           \
    needs_bytes_at(bytes, kb_attrs.pe_ipcq_slot_bytes, "an element", "a slot has", "pe_ipcq.attrs.slot_kb",            \
                   "take a dtype of fewer bytes", __FILE__, __LINE__)

static inline void needs_bytes_at(uint64_t bytes, uint64_t have, const char *what, const char *who, const char *key,
                                  const char *advice, const char *file, uint32_t line)
{
    if (bytes > have)
        kb_refuse_at(file, line, "%s: %llu bytes, but %s %llu (%s): %s", what, (unsigned long long)bytes, who,
                     (unsigned long long)have, key, advice);
}

/* Refuses the run if pe_math or pe_gemm does not know the dtype. */
#define needs_math(dtype) needs_engine_at(kb_math_ps(dtype, 1), dtype, "pe_math.attrs.lanes", __FILE__, __LINE__)
#define needs_gemm(dtype) needs_engine_at(kb_gemm_k_step(dtype), dtype, "pe_gemm.attrs.k_per_cycle", __FILE__, __LINE__)

static inline void needs_engine_at(uint64_t has, enum kb_dtype dtype, const char *key, const char *file, uint32_t line)
{
    const char *word =                                  /* one after the other */
#define DTYPE(name, bytes, is_float) #name "\0"
#include <kb/dtypes.def>
#undef DTYPE
        ;
    if (has)
        return;
    while (dtype--)
        word += __builtin_strlen(word) + 1;
    kb_refuse_at(file, line, "%s has none for %s: take another dtype, or a machine that has them", key, word);
}

#endif
