/* gemm_epilogue.h: ops on the sums of a gemm before they are rounded and stored. */
#ifndef KB_GEMM_EPILOGUE_H
#define KB_GEMM_EPILOGUE_H

#include "machine/command.h"
#include "elements.h"
#include "gemm_blocks.h"

/* The sums of a patch, or what epilogues made of them: f32, or of an exact one i32, until an epilogue makes it f32. */
struct values {
    const struct patch *patch;
    union lane *at;
    bool floats;
};

struct values values_of(const struct patch *patch);

/* Whether an op makes f32 of i32, for a result of this dtype. */
bool gemm_epilogue_makes_floats(uint16_t op, enum dtype result);

/* Applies the epilogues of a scope, in their order; SCOPE_ONCE to what is in the last tile of C alone. */
void gemm_epilogues(struct values *values, enum scope scope);

#endif
