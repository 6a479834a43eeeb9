/* data.h: `SIM data`, and the hashes that it compares. */
#ifndef KB_DATA_H
#define KB_DATA_H

#include "common/subcommand.h"

extern const struct subcommand data_subcommand;

/* Records in the op log a hash of each tensor that it names, after the data pass of a run: `SIM data` compares them. */
void data_record_hashes(void);

#endif
