/* method_kind.h: what method.c and the methods share. */
#ifndef GEN_SEARCH_METHOD_KIND_H
#define GEN_SEARCH_METHOD_KIND_H

#include "method.h"

struct method {
    const struct method_kind *kind;
    const struct method_space *space;
    uint64_t first, known, total;
    void *state;                                        /* of the kind */
};

/* The functions of a method. `begin` sets known, total and state. NULL: there is nothing to do; of is_result: every point is one. */
struct method_kind {
    const char *(*refusal)(const struct method_space *space);
    void (*begin)(struct method *method);
    void (*end)(struct method *method);
    void (*point)(const struct method *method, uint64_t number, uint32_t *levels);
    bool (*is_result)(const struct method *method, const uint32_t *levels);
    void (*tell)(struct method *method, uint64_t number, const struct evaluation *evaluation);
};

/* Points of the whole space; METHOD_ENDLESS if there are 2^64 or more. */
uint64_t method_space_size(const struct method_space *space);

#endif
