/* whatif.h: `SIM whatif`. */
#ifndef KB_WHATIF_H
#define KB_WHATIF_H

#include "common/subcommand.h"

extern const struct subcommand whatif_subcommand;

#endif
