/* subcommand.h: what the subcommands of a simulator have in common: options, --help. */
#ifndef KB_SUBCOMMAND_H
#define KB_SUBCOMMAND_H

#include <stdbool.h>
#include <stdio.h>

struct cli_option {
    char letter;                                        /* that subcommand_option returns; 0 behind the last option */
    const char *name;                                   /* "json"; "output" has the short form -o */
    const char *argument;                               /* "FILE"; NULL: none; "FILE ...": the option can be repeated */
    const char *help;                                   /* lines */
};

struct subcommand {
    const char *name;                                   /* "run" */
    const char *arguments;                              /* "BENCH [NAME=VALUE ...]" */
    const char *summary;                                /* for the list of subcommands */
    const char *help;                                   /* lines of its --help, before the options */
    const struct cli_option *options;                   /* NULL: none but --help and --version */
    int (*main)(int argc, char **argv);                 /* argv[0] is its name; returns the exit status */
};

/* Returns the letter of the next option, whose argument is in getopt's `optarg`, or -1 at the end: arguments begin at
 * `optind`. Answers --help and --version itself, and refuses other options and a second argument of one. */
int subcommand_option(const struct subcommand *subcommand, int argc, char **argv);

/* Returns the only argument; a usage error unless there is exactly one. `what` is "an op log". */
const char *subcommand_argument(const struct subcommand *subcommand, int argc, char **argv, const char *what);

/* The name and topology of the machine, and kbgen's version. */
void version_print(FILE *out);

#endif
