/* info.h: `SIM info`. */
#ifndef KB_INFO_H
#define KB_INFO_H

#include "subcommand.h"

extern const struct subcommand info_subcommand;

#endif
