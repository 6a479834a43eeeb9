/* params.h: parameters of a bench that are larger, or smaller, than what it can use: the bench says which value it uses
 * instead. */
#ifndef PARAMS_H
#define PARAMS_H

#include <kb/arith.h>
#include <kb/host.h>

/* Notes that a parameter has the value `used` instead of `asked`, and why; nothing if they are equal, or if the bench
 * was to choose it (0). Returns `used`. */
static inline uint64_t param_used(const char *name, uint64_t asked, uint64_t used, const char *why)
{
    if (asked)
        kb_param_used(name, asked, used);
    if (asked && asked != used)
        kb_note("%s=%llu: %llu is used, %s", name, (unsigned long long)asked, (unsigned long long)used, why);
    return used;
}

/* The value of a parameter that is at most `most`. */
static inline uint64_t param_at_most(const char *name, uint64_t asked, uint64_t most, const char *why)
{
    return param_used(name, asked, kb_min(asked, most), why);
}

#endif
