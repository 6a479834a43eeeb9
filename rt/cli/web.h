/* web.h: `SIM web`: the report page with a form to run benches. */
#ifndef KB_WEB_H
#define KB_WEB_H

#include "common/subcommand.h"

extern const struct subcommand web_subcommand;

#endif
