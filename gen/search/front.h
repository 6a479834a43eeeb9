/* front.h: `kbgen front`. */
#ifndef GEN_SEARCH_FRONT_H
#define GEN_SEARCH_FRONT_H

#include "../../rt/common/subcommand.h"

extern const struct subcommand front_subcommand;

#endif
