/* engines.h: how the engines of PEs spent the time of kernels: at work, or idle because of what. */
#ifndef KB_ENGINES_H
#define KB_ENGINES_H

#include <stdio.h>

#include "common/json.h"
#include "items.h"
#include "machine/stats.h"

struct account;
struct pe;

/* Of one engine and one kernel for which it has worked. With several servers each of them has the time of the kernel. */
struct engine_account {
    uint64_t busy_ps, idle_ps[REASONS];
};

void engines_begin(void);
void engines_end(void);                                 /* the accounts remain until engines_begin */

/* The kernel of an account begins, or ends at account->end_ps. `last`: what led to its return; NULL: it has not returned. */
void engines_kernel_begins(struct account *account);
void engines_kernel_ends(struct account *account, const struct ref *last);

/* A service of a stage starts, because of `cause`, or ends; STAGE_NONE: of the scheduler. */
void engine_starts(const struct pe *pe, enum stage_kind stage, struct ref cause);
void engine_ends(const struct pe *pe, enum stage_kind stage);

/* Returns NULL, or which account of an engine is not the time of its kernel; in the arena. */
const char *engines_wrong(const struct account *account);

/* Those of a kernel; the sums over kernels with their spreads. */
void engines_write_kernel(struct json *json, const struct account *account);
void engines_write(struct json *json);
void engines_print(FILE *out);

#endif
