/* schema.h: `SIM schema`. */
#ifndef KB_SCHEMA_H
#define KB_SCHEMA_H

#include "common/subcommand.h"

extern const struct subcommand schema_subcommand;

#endif
