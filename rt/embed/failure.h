/* failure.h: how the calls of an instance fail, and where its messages go. */
#ifndef KB_EMBED_FAILURE_H
#define KB_EMBED_FAILURE_H

#include "image.h"

/* Sets the hooks of common/fail.h: messages are lines for the caller's log, and the text of a call that fails; fail_exit
 * leaves the call. */
void failure_begin(struct image_host *host, const struct kb_sim_config *config);

/* Sets the text of the call that is under way, and returns the status: `return refuse(KB_WRONG, "no kernel '%s'", ...)`.
 * For calls that have changed nothing. */
enum kb_status refuse(enum kb_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Between these two calls the machine works: a failure leaves it in the middle, and the instance has ended. Before and
 * after, a failure has refused the call. */
void failure_machine_works(void);
void failure_machine_rests(void);

/* The status of the call for an exit status of the run: KB_NO_MEMORY, with a line in the text, if an allocation of the
 * call has failed. */
enum kb_status failure_status(int status);

/* The instance has ended: nothing but a reset is possible. */
void failure_ends(void);

/* Leaves the call that is under way, from wherever it is. */
_Noreturn void failure_leave(enum kb_status status);

#endif
