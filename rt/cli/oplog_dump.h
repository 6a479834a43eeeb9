/* oplog_dump.h: `SIM oplog`. */
#ifndef KB_OPLOG_DUMP_H
#define KB_OPLOG_DUMP_H

#include "common/subcommand.h"

extern const struct subcommand oplog_subcommand;

#endif
