/* usage.h: `--stats`: what each node, link, memory channel and engine served, how long it was busy and was waited for. */
#ifndef KB_USAGE_H
#define KB_USAGE_H

#include "common/json.h"
#include "sim/observer.h"

extern struct observer usage_observer;

/* Watches the run from now on; once or more. */
void usage_watch(void);

/* Opens the file ("-": standard output), and watches the run from now on. */
void usage_open(const char *path);

/* Ends the watch. Writes the file, if it was opened, and completes it. `end_ps` is the end of the run. */
void usage_close(uint64_t end_ps);

/* Finds which resource of a kind had the longest queue, and how long that was. Returns false if nothing has watched. */
bool usage_longest_queue(enum resource_kind kind, uint64_t *number, uint64_t *length);

/* Writes "engines", "memories", "nodes" and "links" into an open object: what was counted, as lists of numbers. `shows`
 * says which nodes and links are in the lists. */
void usage_write_columns(struct json *json, bool (*shows)(enum resource_kind kind, uint64_t number));

#endif
