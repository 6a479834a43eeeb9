/* run.h: `SIM run`. */
#ifndef KB_RUN_H
#define KB_RUN_H

#include "common/subcommand.h"

extern const struct subcommand run_subcommand;

#endif
