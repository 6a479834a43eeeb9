/* compare.h: `SIM compare`. */
#ifndef KB_COMPARE_H
#define KB_COMPARE_H

#include "common/subcommand.h"

extern const struct subcommand compare_subcommand;

#endif
