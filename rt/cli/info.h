/* info.h: `SIM info`. */
#ifndef KB_INFO_H
#define KB_INFO_H

#include "common/subcommand.h"

extern const struct subcommand info_subcommand;

#endif
