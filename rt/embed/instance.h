/* instance.h: an instance as a whole: its begin and end, runs of benches, results. */
#ifndef KB_EMBED_INSTANCE_H
#define KB_EMBED_INSTANCE_H

#include "common/json.h"
#include "image.h"

/* Whether the instance is in the state of kb_sim_create: a bench can run, and nothing was asked for yet. */
bool instance_is_new(void);

/* From now on it is not. */
void instance_is_used(void);

/* Whether it has run a bench since. */
bool instance_ran_bench(void);

/* Writes the result so far into an open object. */
void instance_write_result(struct json *json);

#endif
