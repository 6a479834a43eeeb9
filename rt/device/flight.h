/* flight.h: the transfers of a kernel that it has not waited for, and the buffers that they read or write.
 *
 * Only calls with _async are here: whoever blocked has waited. A buffer that a load or a receive writes is not known to
 * be written until the kernel has waited for it, however long ago it completed: what a kernel does must not depend on
 * timing. */
#ifndef KB_FLIGHT_H
#define KB_FLIGHT_H

#include "call.h"

struct flight {
    struct command *command;                            /* which is held; NULL: it was waited for */
    uint32_t number;                                    /* its number */
    struct view buffer;
};

struct flights {
    struct flight *all;                                 /* in the order of their numbers */
    uint32_t count, room;
};

void flights_add(struct tl *tl, struct command *command, const struct view *buffer);

/* The kernel has waited for the command of a number. */
void flights_waited(struct tl *tl, uint32_t number);

/* All of them are done. */
void flights_end(struct tl *tl);

/* ---- faults */

/* What a call uses must not be one that a receive will write: KERNEL_ERROR. */
void flights_check_use(const struct call *call, const struct view *view);

/* What is looked at must not be one that a load or receive will write: PENDING_RESULT. */
void flights_check_look(const struct call *call, const struct view *view);

/* What is given back must not be in use any more: KERNEL_ERROR. */
void flights_check_free(const struct call *call, const struct view *view);

#endif
