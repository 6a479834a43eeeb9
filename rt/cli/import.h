/* import.h: `SIM import`. */
#ifndef KB_IMPORT_H
#define KB_IMPORT_H

#include "common/subcommand.h"

extern const struct subcommand import_subcommand;

#endif
