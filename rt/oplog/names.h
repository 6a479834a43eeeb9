/* names.h: what records of the op log name by a number: texts, calls, tensors. Each is described once, by a record of
 * its own before the first that names it. */
#ifndef KB_NAMES_H
#define KB_NAMES_H

#include "pack.h"
#include "store/tensor.h"

/* Where operations come from: what they are called, and the line of a kernel or bench. */
struct site {
    const char *name, *kernel, *file;                   /* the last two may be NULL */
    uint32_t line;
};

struct names {
    const char **text;
    uint64_t texts;
    struct site *site;
    uint64_t sites;
    struct tensor **tensor;                             /* by number; NULL: none was described */
    uint64_t tensors;
    uint32_t *slot;                                     /* table of sites: number + 1; 0: free */
    uint64_t slots;
};

/* The number of a site or tensor; describes it first, in `to`, if it is new. Texts are told apart by their address. */
uint64_t names_site(struct names *names, const struct site *site, struct packed *to);
uint64_t names_tensor(struct names *names, struct tensor *tensor, struct packed *to);

/* Reads a description behind its kind; what is known already is skipped. `from` is bad if it is wrong. */
void names_read_text(struct names *names, struct unpacking *from);
void names_read_site(struct names *names, struct unpacking *from);
void names_read_tensor(struct names *names, struct unpacking *from);

#endif
