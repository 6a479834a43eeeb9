/* subcommand.h: what the subcommands of kbgen and of a simulator have in common: options, --help. */
#ifndef KB_SUBCOMMAND_H
#define KB_SUBCOMMAND_H

struct cli_option {
    char letter;                                        /* that subcommand_option returns; 0 behind the last option */
    const char *name;                                   /* "json"; "output" and "jobs" have the short forms -o and -j */
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

/* What the subcommands of one program answer in the same way. */
struct subcommands_of {
    void (*version_print)(void);                        /* for --version */
    const char *statuses;                               /* the last lines of each --help: what exit statuses mean */
};

/* Call it before any subcommand reads its options. */
void subcommands_begin(const struct subcommands_of *program);

/* Returns the letter of the next option, whose argument is in getopt's `optarg`, or -1 at the end: arguments begin at
 * `optind`. Answers --help and --version itself, and refuses other options and a second argument of one. */
int subcommand_option(const struct subcommand *subcommand, int argc, char **argv);

/* Returns the only argument; a usage error unless there is exactly one. `what` is "an op log". */
const char *subcommand_argument(const struct subcommand *subcommand, int argc, char **argv, const char *what);

#endif
