/* replay.h: `SIM replay`. */
#ifndef KB_REPLAY_H
#define KB_REPLAY_H

#include "subcommand.h"

extern const struct subcommand replay_subcommand;

#endif
