/* names.h: what emitted code would define, for unit tests of rooms that name a machine and its ops. */
#ifndef KB_UNIT_NAMES_H
#define KB_UNIT_NAMES_H

#include "machine/emitted.h"

const char kb_machine_name[] = "unit", kb_topology_hash[] = "0", kb_version[] = "0";
const char *const kb_op_names[] = {
#define OP(name, ...) #name,
#include "kb/ops.def"
};

#endif
