/* note.h: notes: what a bench or a kernel tells the user with kb_note, for the summary and the result. */
#ifndef KB_NOTE_H
#define KB_NOTE_H

#include <stdio.h>

#include "common/json.h"

/* Prints a line for each. */
void notes_print(FILE *out);

/* Writes them into an open object, as "notes"; nothing if there are none. */
void notes_write(struct json *json);

/* Forgets them (host_reset). */
void notes_reset(void);

#endif
