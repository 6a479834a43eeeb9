/* report.h: `kbgen report`. */
#ifndef GEN_SEARCH_REPORT_H
#define GEN_SEARCH_REPORT_H

#include "../../rt/common/subcommand.h"

extern const struct subcommand report_subcommand;

#endif
