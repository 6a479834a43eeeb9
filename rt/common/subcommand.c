/* subcommand.c: options and help of a program and of its subcommands. */
#include "subcommand.h"

#include <assert.h>
#include <getopt.h>
#include <string.h>

#include "arena.h"
#include "command_line.h"
#include "completion.h"
#include "fail.h"
#include "manual.h"

enum { OPTIONS_MOST = 40, HELP_COLUMN = 24, LIST_COLUMN = 34, GAP = 2 };

static const struct program *program;

const char *option_short(const struct cli_option *option)
{
    /* One name has the same short form wherever it is an option. Two letters are one with a fixed argument, as gcc's -MD. */
    static const struct {
        const char *name, *form;
    } forms[] = {{"output", "o"}, {"jobs", "j"}, {"kernel", "k"}, {"optimise", "O"}, {"depfile", "MD"}, {"verbose", "v"}, {"help", "h"},
               {"version", "V"}};
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        if (!strcmp(option->name, forms[i].name))
            return forms[i].form;
    return NULL;
}

const struct cli_option options_everywhere[] = {
    {'h', "help", NULL, "print this"},
    {'V', "version", NULL, "print the version"},
    {0},
};

bool option_repeats(const struct cli_option *option)
{
    return option->argument && strstr(option->argument, " ...");
}

const char *argument_words(const char *argument)
{
    size_t length = argument ? strcspn(argument, " ") : 0;
    return length && !strncmp(argument + length - 1, ": ", 2) ? argument + length + 1 : NULL;
}

int argument_shown(const char *argument)
{
    const char *end = strstr(argument, ": ");
    return (int)(end ? (size_t)(end - argument) : strlen(argument));
}

static void list_option(const struct cli_option *o)
{
    const char *form = option_short(o);
    int width = form ? printf("  -%s, --%s", form, o->name) : printf("  --%s", o->name);
    if (o->argument)
        width += printf(" %.*s", argument_shown(o->argument), o->argument);
    for (const char *line = o->help; *line; width = 0) {
        int length = (int)strcspn(line, "\n");
        printf("%*s%.*s\n", width + GAP > HELP_COLUMN ? GAP : HELP_COLUMN - width, "", length, line);
        line += length + (line[length] == '\n');
    }
}

void subcommands_print(FILE *out)
{
    for (const struct subcommand *const *s = program->subcommands; *s; s++) {
        int width = fprintf(out, "  %s %.*s", (*s)->name, argument_shown((*s)->arguments), (*s)->arguments);
        fprintf(out, "%*s%s\n", width < LIST_COLUMN ? LIST_COLUMN - width : 1, "", (*s)->summary);
    }
}

static void help_print(const struct subcommand *s)
{
    printf("usage: %s%s%s", program_name, *s->name ? " " : "", s->name);
    printf("%s%.*s%s\n\n%s\n", *s->arguments ? " " : "", argument_shown(s->arguments), s->arguments,
           s->options ? " [OPTION ...]" : "", s->help);
    puts("");
    for (const struct cli_option *o = s->options; o && o->letter; o++)
        list_option(o);
    for (const struct cli_option *o = options_everywhere; o->letter; o++)
        list_option(o);
    if (s == program->alone) {
        puts("\nSubcommands, each with a --help of its own:\n");
        subcommands_print(stdout);
        printf("\n%s\n", program->notes);
    }
    printf("\n%s\n", program->statuses);
}

static _Noreturn void end_good(void)
{
    if (fflush(stdout) || ferror(stdout))
        die("write to standard output:");
    fail_exit(STATUS_GOOD);
}

void program_begin(const struct program *of, int argc, char **argv)
{
    program = of;
    if (argc == 2 && !strcmp(argv[1], "--man"))
        manual_print(of);
    else if (argc == 3 && !strcmp(argv[1], "--completion"))
        completion_print(argv[2]);
    else if (argc > 1 && !strcmp(argv[1], "--complete"))
        completion_offers(of, argc - 2, argv + 2);
    else
        return;
    end_good();
}

const struct subcommand *subcommand_named(const char *name)
{
    for (const struct subcommand *const *s = program->subcommands; *s; s++)
        if (!strcmp(name, (*s)->name))
            return *s;
    return NULL;
}

static void check_once(const struct cli_option *options, int letter)
{
    static const char *given[OPTIONS_MOST];
    for (size_t i = 0; options && options[i].letter; i++)
        if (options[i].letter == letter && options[i].argument && !option_repeats(&options[i])) {
            const char *form = option_short(&options[i]);
            option_once(arena_printf(form ? "-%s" : "--%s", form ? form : options[i].name), &given[i], optarg);
        }
}

/* Refuses -Mx where the option is -MD, which for getopt is -M with the argument D. */
static void check_letters(const struct cli_option *options, int letter)
{
    for (const struct cli_option *o = options; o && o->letter; o++) {
        const char *form = o->letter == letter ? option_short(o) : NULL;
        if (form && form[1] && optarg && strcmp(optarg, form + 1))
            usage_error("no option '-%c%s'; did you mean '-%s'?", *form, optarg, form);
    }
}

/* The options of a subcommand as getopt_long takes them. */
struct getopt_options {
    struct option list[OPTIONS_MOST + 1];
    size_t count;
    const char *letters;
};

static void add_options(struct getopt_options *to, const struct cli_option *options)
{
    for (const struct cli_option *o = options; o && o->letter; o++) {
        const char *form = option_short(o);
        assert(to->count < OPTIONS_MOST && (!form || *form == o->letter));
        to->list[to->count++] = (struct option){o->name, o->argument ? required_argument : no_argument, NULL, o->letter};
        if (form)
            to->letters = arena_printf("%s%c%s", to->letters, o->letter, o->argument || form[1] ? ":" : "");
    }
}

int subcommand_option(const struct subcommand *s, int argc, char **argv)
{
    struct getopt_options options = {.letters = ":"};
    add_options(&options, options_everywhere);
    add_options(&options, s->options);
    opterr = 0;
    int letter = getopt_long(argc, argv, options.letters, options.list, NULL);
    switch (letter) {
    case 'h':
        help_print(s);
        end_good();
    case 'V':
        program->version_print();
        end_good();
    case '?':
    case ':':
        option_refused(letter, argv, options.list,
                       arena_printf("%s%s%s --help", program_name, *s->name ? " " : "", s->name));
    default:
        check_letters(s->options, letter);
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
