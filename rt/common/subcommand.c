/* subcommand.c: options and help of subcommands. */
#include "subcommand.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "command_line.h"
#include "fail.h"

enum { OPTIONS_MOST = 40, HELP_COLUMN = 22, GAP = 2 };

static const struct subcommands_of *program;

void subcommands_begin(const struct subcommands_of *of)
{
    program = of;
}

/* Returns an option's short form, or 0. */
static char short_form(const struct cli_option *option)
{
    return !strcmp(option->name, "output") ? 'o' : !strcmp(option->name, "jobs") ? 'j' : 0;
}

static void help_print(const struct subcommand *s)
{
    const char *options = s->options ? " [OPTION ...]" : "";
    printf("usage: %s %s%s%s%s\n\n%s\n%s", program_name, s->name, *s->arguments ? " " : "", s->arguments,
           options, s->help, *options ? "\n" : "");
    for (const struct cli_option *o = s->options; o && o->letter; o++) {
        int width = printf("  ");
        if (short_form(o))
            width += printf("-%c, ", short_form(o));
        width += printf("--%s%s%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
        for (const char *line = o->help; *line; width = 0) {
            int length = (int)strcspn(line, "\n");
            printf("%*s%.*s\n", width + GAP > HELP_COLUMN ? GAP : HELP_COLUMN - width, "", length, line);
            line += length + (line[length] == '\n');
        }
    }
    printf("\n%s\n", program->statuses);
}

static _Noreturn void end_good(void)
{
    if (fflush(stdout) || ferror(stdout))
        die("write to standard output:");
    fail_exit(STATUS_GOOD);
}

static void check_once(const struct cli_option *options, int letter)
{
    static const char *given[OPTIONS_MOST];
    for (size_t i = 0; options && options[i].letter; i++)
        if (options[i].letter == letter && options[i].argument && !strstr(options[i].argument, " ..."))
            option_once(arena_printf("--%s", options[i].name), &given[i], optarg);
}

int subcommand_option(const struct subcommand *s, int argc, char **argv)
{
    struct option options[OPTIONS_MOST + 3] = {{"help", no_argument, NULL, 'h'},
                                               {"version", no_argument, NULL, 'V'}};
    const char *letters = ":hV";
    size_t count = 2;
    for (const struct cli_option *o = s->options; o && o->letter; o++) {
        assert(count < OPTIONS_MOST + 2);
        options[count++] = (struct option){o->name, o->argument ? required_argument : no_argument, NULL, o->letter};
        if (short_form(o)) {
            assert(short_form(o) == o->letter);
            letters = arena_printf("%s%c:", letters, o->letter);
        }
    }
    opterr = 0;
    int letter = getopt_long(argc, argv, letters, options, NULL);
    switch (letter) {
    case 'h':
        help_print(s);
        end_good();
    case 'V':
        program->version_print();
        end_good();
    case '?':
    case ':':
        option_refused(letter, argv, options, arena_printf("%s %s --help", program_name, s->name));
    default:
        check_once(s->options, letter);
        return letter;
    }
}

const char *subcommand_argument(const struct subcommand *s, int argc, char **argv, const char *what)
{
    if (argc - optind != 1)
        usage_error("%s takes %s; see %s %s --help", s->name, what, program_name, s->name);
    return argv[optind];
}
