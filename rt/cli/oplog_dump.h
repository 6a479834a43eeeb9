/* oplog_dump.h: `SIM oplog`. */
#ifndef KB_OPLOG_DUMP_H
#define KB_OPLOG_DUMP_H

#include "subcommand.h"

extern const struct subcommand oplog_subcommand;

#endif
