/* numbers.h: --set: runs on a machine with other numbers than the one that was built. */
#ifndef KB_CLI_NUMBERS_H
#define KB_CLI_NUMBERS_H

#include <stdbool.h>

#include "common/renumber.h"

/* A row of a list of struct cli_option, whose letter numbers_option understands. */
#define SET_OPTION                                                                                                     \
    {'K', "set", "KEY=VALUE ...",                                                                                      \
     "replace a number of the topology, as a build with this option does:\n"                                           \
     "--set cube.noc.link_bw_gbs=512"}

/* Takes a --set option. Returns false if the letter is not its. */
bool numbers_option(int letter, const char *argument);

/* Replaces the numbers as the options say. Call it after all options, before anything reads a number. */
void numbers_options_end(void);

/* Computes the numbers of the command line with further keys replaced: a mapping of dotted keys. Returns NULL after
 * errors. */
const struct numbers *numbers_of_keys(const struct node *keys);

/* The number keys of the topology with those of the command line replaced, and a better number for each. */
struct better_keys numbers_better(struct better_by by);

/* Where the topology has a key: "ref_sip.yaml:54", "--set", "default"; NULL: topologies have no such key. */
const char *numbers_place(const char *key);

/* Whether one of these numbers differs from the one in place, unless it is the cost of an op that no run has asked for yet:
 * if not, runs that have ended would be the same with these. */
bool numbers_matter(const struct numbers *numbers);

/* Replaces the numbers, between two runs. NULL: by those of the command line. */
void numbers_put(const struct numbers *numbers);

#endif
