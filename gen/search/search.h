/* search.h: `kbgen search`. */
#ifndef GEN_SEARCH_SEARCH_H
#define GEN_SEARCH_SEARCH_H

#include "../../rt/common/subcommand.h"

extern const struct subcommand search_subcommand;

#endif
