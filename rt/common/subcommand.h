/* subcommand.h: the command line of a program: its options, its subcommands and theirs, --help.
 *
 * The tables are read by getopt, by --help, by the manual page (manual.h) and by completion in shells (completion.h). */
#ifndef KB_SUBCOMMAND_H
#define KB_SUBCOMMAND_H

#include <stdbool.h>
#include <stdio.h>

/* An argument is a word that tells what it is. Behind it may be " ..." if the option can be repeated, or words to choose from:
 *     FILE, PATH     a file
 *     FILE.json      a file of that ending, also with another word: STORE.db
 *     MODE: off|on   one of these words, or something else that the help describes; the part from ':' on is not shown */
struct cli_option {
    char letter;                                        /* that subcommand_option returns; 0 behind the last option */
    const char *name;                                   /* "json"; some names have a short form, see option_short */
    const char *argument;                               /* "FILE"; NULL: none */
    const char *help;                                   /* lines */
};

struct subcommand {
    const char *name;                                   /* "run"; "": what the program does without a subcommand */
    const char *arguments;                              /* "BENCH [NAME=VALUE ...]" */
    const char *summary;                                /* for the list of subcommands */
    const char *help;                                   /* lines of its --help, before the options */
    const struct cli_option *options;                   /* NULL: only those that are everywhere */
    int (*main)(int argc, char **argv);                 /* argv[0] is its name; returns the exit status */
};

struct program {
    const char *about;                                  /* one line, for the manual page: "a simulator ..." */
    const struct subcommand *alone;                     /* what it does without a subcommand, or NULL */
    const struct subcommand *const *subcommands;        /* NULL behind the last one */
    const char *notes;                                  /* lines behind the options of `alone`: files, environment */
    const char *statuses;                               /* the last lines of each --help: what exit statuses mean */
    void (*version_print)(void);                        /* for --version */
    void (*offer)(const char *argument, const char *first);    /* see completion.h */
};

/* The options of every subcommand: --help and --version. */
extern const struct cli_option options_everywhere[];

/* Call it with the program's arguments before any subcommand reads its options. Answers --man and --completion. */
void program_begin(const struct program *program, int argc, char **argv);

/* Returns the subcommand of that name, or NULL. */
const struct subcommand *subcommand_named(const char *name);

/* Prints a line for each subcommand. */
void subcommands_print(FILE *out);

/* Returns the letter of the next option, whose argument is in getopt's `optarg`, or -1 at the end: arguments begin at
 * `optind`. Answers --help and --version itself, and refuses other options and a second argument of one. */
int subcommand_option(const struct subcommand *subcommand, int argc, char **argv);

/* Returns the only argument; a usage error unless there is exactly one. `what` is "an op log". */
const char *subcommand_argument(const struct subcommand *subcommand, int argc, char **argv, const char *what);

/* Returns the short form of an option without its dash, "o"; NULL: it has none. */
const char *option_short(const struct cli_option *option);

bool option_repeats(const struct cli_option *option);

/* Returns the length of the part of an argument, or of the arguments of a subcommand, that is shown: without words to choose
 * from, and of an option without " ...". */
int argument_shown(const char *argument);

/* Returns the words to choose from, separated by '|', or NULL. */
const char *argument_words(const char *argument);

#endif
