/* subcommand.c: options and help of subcommands. */
#include "subcommand.h"

#include <assert.h>
#include <getopt.h>
#include <string.h>

#include "common/arena.h"
#include "common/command_line.h"
#include "common/fail.h"
#include "machine/emitted.h"

enum { OPTIONS_MOST = 40, HELP_COLUMN = 22 };

void version_print(FILE *out)
{
    fprintf(out, "%s: topology %s, kbgen %s\n", kb_machine_name, kb_topology_hash, kb_version);
}

static bool has_short_form(const struct cli_option *option)
{
    return !strcmp(option->name, "output");
}

static void help_print(const struct subcommand *s)
{
    bool options = s->options;
    printf("usage: %s %s%s%s%s\n\n%s\n%s", program_name, s->name, *s->arguments ? " " : "", s->arguments,
           options ? " [OPTION ...]" : "", s->help, options ? "\n" : "");
    for (const struct cli_option *o = s->options; o && o->letter; o++) {
        int width = printf("  %s--%s%s%s", has_short_form(o) ? "-o, " : "", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
        for (const char *line = o->help; *line; width = 0) {
            int length = (int)strcspn(line, "\n");
            printf("%*s%.*s\n", HELP_COLUMN - width, "", length, line);
            line += length + (line[length] == '\n');
        }
    }
    puts("\nExit status: 0 good; 1 the run failed, or data are wrong; 2 wrong use or input; 3 the host system failed.");
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
    const char *short_forms = ":hV";
    size_t count = 2;
    for (const struct cli_option *o = s->options; o && o->letter; o++) {
        assert(count < OPTIONS_MOST + 2);
        options[count++] = (struct option){o->name, o->argument ? required_argument : no_argument, NULL, o->letter};
        if (has_short_form(o))
            short_forms = ":hVo:";
    }
    opterr = 0;
    int letter = getopt_long(argc, argv, short_forms, options, NULL);
    switch (letter) {
    case 'h':
        help_print(s);
        end_good();
    case 'V':
        version_print(stdout);
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
