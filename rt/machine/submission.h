/* submission.h: whether a command may be submitted. */
#ifndef KB_SUBMISSION_H
#define KB_SUBMISSION_H

#include "command.h"

/* What is wrong with a command, and the part of the PE that finds it. */
struct refusal {
    enum fault code;
    enum node_kind part;
    char text[512];
};

/* Checks a command that has its plan: for KERNEL_ERROR, BAD_ADDRESS and TILE_TOO_LARGE, in this order. plan_wrong: what
 * tiling_make has returned. If the command is refused, fills `why` and returns true. */
bool submission_refused(const struct command *command, const char *plan_wrong, struct refusal *why);

#endif
