/* advice.h: what to change first, from a critical path: a line of a kernel, and a key of the topology. */
#ifndef KB_ADVICE_H
#define KB_ADVICE_H

#include "path.h"

struct advice {
    uint32_t site;                                      /* of the line that takes most of the path; 0: no line does */
    uint64_t line_ps, cause_ps;                         /* of the line, and of what most of it goes to */
    const char *cause;                                  /* its name, in advice.def */
    const char *key;                                    /* of the topology; NULL: none */
    const char *sentence;                               /* in the arena */
};

/* `place_of` says where the topology has a key; NULL: nobody knows. */
struct advice advice_of(const struct path *path, const char *(*place_of)(const char *key));

#endif
