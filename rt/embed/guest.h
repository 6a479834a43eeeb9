/* guest.h: an image is a guest in a process that is not its own: what it has in place of what belongs to a process.
 *
 *     exit, _exit, abort ...      of a kernel: its fault, as in a simulator; else the failure of the call
 *     stdout, stderr              one stream, which nobody reads unless the image asks for it
 *     base/leave, base/progress, common/completion, common/temporary, launch/trap, launch/watchdog
 *                                 handlers of signals, timers, exits, a command line: nothing; guest.c defines their functions, and
 *                                 the linker takes these first
 */
#ifndef KB_EMBED_GUEST_H
#define KB_EMBED_GUEST_H

#include <stdint.h>
#include <stdio.h>

/* Opens the stream; closes it. */
void guest_begin(void);
void guest_end(void);

/* What is written to the returned stream until guest_text_end goes to a buffer, of `size` bytes with the 0 behind it;
 * that returns how many bytes all of it has, that 0 included. */
FILE *guest_text_begin(char *buffer, uint64_t size);
uint64_t guest_text_end(void);

/* Nothing is left in the stream's buffer. */
void guest_rests(void);

#endif
