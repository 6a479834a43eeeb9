/* hazards.h: which bytes of its TCM a kernel must not use now: those of transfers that it has not waited for, and those
 * that it freed.
 *
 * Transfers are the calls that end in _async; the others have waited. A buffer that a load or receive writes counts as
 * unknown until the kernel waits for it, even if the transfer is complete: what a kernel may do must not depend on
 * timing. */
#ifndef KB_HAZARDS_H
#define KB_HAZARDS_H

#include "call.h"
#include "common/array.h"
#include "common/interval_map.h"

/* A transfer that the kernel has not waited for. */
struct outstanding {
    struct command *command;                            /* held; NULL: it was waited for meanwhile */
    uint32_t number;                                    /* of the command */
    struct view buffer;
};

struct outstanding_list ARRAY(struct outstanding);

/* A kernel's; lists are in the order of the commands' numbers. */
struct hazards {
    struct outstanding_list receives, moves;            /* moves: loads, stores and sends */
    struct interval_map freed;                          /* of its TCM, and not allocated again: by which tl_free */
};

void hazards_begin(struct tl *tl);
void hazards_end(struct tl *tl);

/* ---- what the kernel does */

/* It submitted a transfer without waiting. */
void hazards_submitted(struct tl *tl, struct command *command, const struct view *buffer);

/* It waited for a command, which may be a transfer. */
void hazards_waited(struct tl *tl, uint32_t number);

/* The call frees bytes of its TCM. */
void hazards_freed(const struct call *call, uint64_t offset, uint64_t bytes);

/* It allocated bytes of its TCM. */
void hazards_allocated(struct tl *tl, uint64_t offset, uint64_t bytes);

/* ---- checks: a fault names the bytes, and the call that they are in conflict with */

/* What a command uses must not be freed, nor the target of an outstanding receive: KERNEL_ERROR. */
void hazards_check_use(const struct call *call, const struct view *view);

/* What the kernel itself reads must not be freed (KERNEL_ERROR), nor the target of an outstanding load or receive
 * (PENDING_RESULT). */
void hazards_check_read(const struct call *call, const struct view *view);

/* What it frees must not be freed already, nor in use by a transfer: KERNEL_ERROR. */
void hazards_check_free(const struct call *call, const struct view *view);

/* Must not be freed: KERNEL_ERROR. */
void hazards_check_freed(const struct call *call, const struct view *view);

#endif
