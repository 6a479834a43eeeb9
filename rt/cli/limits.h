/* limits.h: the options of `run` and `replay` that end a run, and show how far it is. */
#ifndef KB_LIMITS_H
#define KB_LIMITS_H

#include <stdbool.h>

#include "launch/watchdog.h"

/* Rows of a list of struct cli_option, whose letters limits_option understands. */
#define LIMIT_OPTIONS                                                                                                  \
    {'L', "time-limit", "TIME", "end a run, of a sweep each point, after this host time, such as 30 s"},               \
    {'M', "mem-limit", "SIZE", "end a run when the simulator has more memory than this, such as 2 GiB"},               \
    {'T', "sim-limit", "TIME", "end a run at this simulated time, such as 10 ms"},                                     \
    {'P', "progress", NULL, "say how far the run is every 10 s, also where standard error is no terminal"}

/* Takes an option with its argument. Returns false if the letter is not one of these. */
bool limits_option(int letter, const char *argument);

/* Parses a size in bytes, with or without a unit. */
uint64_t parse_size(const char *option, const char *text);

/* Parses a simulated time with its unit, in ps. */
uint64_t parse_time(const char *option, const char *text);

/* Parses a number of --seed. */
uint64_t parse_seed(const char *text);

extern struct watchdog_limits limits;

#endif
