/* why.h: --why: why a run took that long: its critical path, and the account of each PE. */
#ifndef KB_WHY_H
#define KB_WHY_H

#include <stdio.h>

#include "common/json.h"
#include "path.h"

extern bool why_on, why_launches;                       /* why_launches: with the segments of each launch's path */

/* Says where the topology has a key: "ref_sip.yaml:54"; NULL: nobody knows. */
extern const char *(*why_key_place)(const char *key);

/* Watches the run that begins. `stream`: the name of the file of the command stream that is replayed; of a bench it is not
 * used, since the calls of kernels have their own files. */
void why_begin(const char *stream);

/* The run ends now, as its host says, whatever still happens; later calls replace earlier ones. */
void why_mark_end(void);

/* The run has ended at end_ps. Works out its path and checks that it has no gap and adds up to end_ps, and that accounts
 * and the paths of launches add up. Says as an internal error, and returns, what is wrong; in the arena. Returns NULL if
 * nothing is. `stopped`: no event led to end_ps. */
const char *why_end(uint64_t end_ps, bool stopped);

/* Between why_end and the next why_begin. */
void why_print(FILE *out);
void why_write(struct json *json);

/* Writes the path as a track of the timeline, if there are both. Between why_end and timeline_close. */
void why_write_track(void);

#endif
