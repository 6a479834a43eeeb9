/* accounts.h: the kernels of a run, by their serial numbers, and how each spent its time. */
#ifndef KB_ACCOUNTS_H
#define KB_ACCOUNTS_H

#include <stddef.h>

#include "engines.h"
#include "items.h"

struct tl;

/* The account of a kernel: from its begin to its end, what it was blocked on. */
struct account {
    const struct tl *tl;
    uint64_t begin_ps, end_ps, counted_ps;              /* counted_ps: up to where it is accounted for */
    uint64_t reason_ps[REASONS];
    uint32_t engines[ENGINES];                          /* their accounts (engines.h); 0: none */
    bool ended;
    uint8_t acts_for;                                   /* the reason of the last call or delay */
};

struct accounts {
    struct account *at;                                 /* by serial number - 1; tl is NULL if it has not begun */
    size_t count, room;
};

extern struct accounts accounts;

/* The kernel of a serial number. */
const struct tl *kernel_of(uint32_t serial);

/* A kernel begins; it has returned or failed, because of `last`. */
void accounts_kernel_begins(const struct tl *tl);
void accounts_kernel_ends(const struct tl *tl, struct ref last);

/* A kernel is accounted for up to now: what has made it go on. */
void accounts_advance(const struct tl *tl, struct ref cause);

/* Ends the accounts of kernels that have not ended. */
void accounts_close(uint64_t end_ps);

void accounts_reset(void);

#endif
