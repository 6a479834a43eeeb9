/* fit.h: which constants of the machine explain measured times: least squares over runs with other numbers. */
#ifndef KB_FIT_H
#define KB_FIT_H

#include "bringup/command_times.h"
#include "common/json.h"
#include "common/renumber.h"

/* Simulates on a machine with these numbers (NULL: those of the command line), and adds the times of its commands. Returns
 * false if the run did not end well. */
typedef bool fit_run(const struct numbers *numbers, struct command_list *times);

/* Fits constants so that simulated times become those of `measured`. `simulated` are those of the machine as it is. Without
 * `keys` it finds them: constants that the run depends on and that explain the measured times. Returns NULL if nothing that
 * was measured can be compared. A key that is no number of the topology is a usage error. */
const struct fit *fit_constants(fit_run *run, const struct command_list *simulated, const struct command_list *measured,
                                const char *const *keys, size_t count);

void fit_print(const struct fit *fit, FILE *out);

/* Writes the object "fit". */
void fit_write(struct json *json, const struct fit *fit);

#endif
