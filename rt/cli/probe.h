/* probe.h: `SIM probe`: transfers in an idle machine. */
#ifndef KB_CLI_PROBE_H
#define KB_CLI_PROBE_H

#include "common/subcommand.h"

extern const struct subcommand probe_subcommand;

#endif
