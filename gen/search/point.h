/* point.h: `kbgen point`. */
#ifndef GEN_SEARCH_POINT_H
#define GEN_SEARCH_POINT_H

#include "../../rt/common/subcommand.h"

extern const struct subcommand point_subcommand;

#endif
