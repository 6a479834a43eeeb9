/* state.h: the machine's state as a whole: set-up, reset, and save and restore between launches. */
#ifndef KB_MACHINE_STATE_H
#define KB_MACHINE_STATE_H

#include "state_fields.h"

/* Sets up the machine at the start of each run, when its tables and attributes are known. */
void machine_init(void);

/* Resets the room (session/reset.c): everything in the machine is as before a run. */
void machine_reset(void);

/* Saves time and state of the machine in an image, in place of what that holds. Results and the contents of memories are
 * not saved. Called on a host program's coroutine, while no command, message or timeout is under way. Returns NULL, or
 * why it is refused. */
const char *machine_state_save(struct state_image *image);

/* Puts the machine back to the time and the state of an image of it, under the same conditions and with the same answer
 * if they are not met. */
const char *machine_state_restore(struct state_image *image);

void state_image_free(struct state_image *image);

#endif
