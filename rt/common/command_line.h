/* command_line.h: what kbgen and a simulator say of options, in one form. */
#ifndef KB_COMMAND_LINE_H
#define KB_COMMAND_LINE_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "quantity.h"

/* After getopt_long, with `opterr` 0 and a ':' first in its list of letters, has returned '?' or ':': a usage error that
 * names the option, what is wrong with it and the nearest option. `help` is the command that lists the options. */
_Noreturn void option_refused(int letter, char *const *argv, const struct option *options, const char *help);

/* The value of an option `--OPTION`, decimal digits of a number from `least` to `most`; else a usage error. */
uint64_t option_whole(const char *option, const char *text, uint64_t least, uint64_t most);

/* The value of an option `--OPTION`, a time, a size or the like from 0 on, in base units; else a usage error. bare: the unit of
 * a number without one; NULL: it must have one. */
uint64_t option_quantity(const char *option, const char *text, enum dimension dimension, const char *bare, const char *example);

/* Notes that an option with a value was given; a usage error if it was given before. `name` is as messages write it,
 * "--json"; `given` is what was given before, NULL at first. */
void option_once(const char *name, const char **given, const char *value);

#endif
