/* replay.h: `SIM replay`. */
#ifndef KB_REPLAY_H
#define KB_REPLAY_H

#include <stdint.h>

#include "common/subcommand.h"

extern const struct subcommand replay_subcommand;

struct command_stream;

/* Runs a stream, for the first time or after simulator_reset. Returns the exit status; *end_ps: when the run has ended. */
int replay_run(const struct command_stream *stream, uint64_t *end_ps);

/* The internal error of the last run, or NULL. */
const char *replay_error(void);

#endif
