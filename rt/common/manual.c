/* manual.c: the manual page of a program, in the macros of mdoc(7). */
#define _GNU_SOURCE                                     /* strptime */
#include "manual.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fail.h"
#include "subcommand.h"
#include "version.h"

enum { LINE_MOST = 78 };

/* Prints text without line breaks. "\&", which is nothing, keeps a line from being a request, and a word from being a macro. */
static void print_text(const char *text, size_t length)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\\')
            fputs("\\e", stdout);
        else
            putchar(text[i]);
}

static bool ends_sentence(const char *word, size_t length)
{
    while (length && strchr(")\"'", word[length - 1]))
        length--;
    return length > 1 && strchr(".?!", word[length - 1]) && word[length - 2] != '.';
}

/* Prints the words of a text in lines of their own for each sentence, as the macros need them, up to the end of a paragraph:
 * an empty line, or one that begins with a blank. Returns that end. */
static const char *print_paragraph(const char *text)
{
    size_t width = 0;
    for (;;) {
        size_t length = strcspn(text, " \n");
        if (width && width + 1 + length > LINE_MOST)
            width = 0, puts("");
        width += printf(width ? " " : "") + length;
        print_text(text, length);
        const char *next = text + length + (text[length] != 0);
        bool ends = !text[length] || (text[length] == '\n' && (*next == '\n' || *next == ' ' || !*next));
        if (ends || ends_sentence(text, length))
            width = 0, puts("");
        if (ends)
            return next;
        text = next;
    }
}

/* Prints paragraphs; lines that begin with a blank stay as they are. */
static void print_paragraphs(const char *text)
{
    for (bool first = true; *text; first = false) {
        if (*text == ' ') {
            puts(".Bd -literal");
            for (size_t length; *text == ' '; text += length + (text[length] == '\n')) {
                length = strcspn(text, "\n");
                print_text(text, length);
                puts("");
            }
            puts(".Ed");
        } else if (*text == '\n') {
            text++;
            if (!first && *text && *text != ' ')
                puts(".Pp");
        } else {
            text = print_paragraph(text);
        }
    }
}

/* Arguments as they are shown, each a word of its macro; [...] encloses optional ones. */
static void print_arguments(const char *arguments)
{
    bool open = false;
    for (int i = 0, end = argument_shown(arguments); i < end;) {
        bool begins = arguments[i] == '[';
        i += begins;
        int length = (int)strcspn(arguments + i, " ]");
        if (length > end - i)
            length = end - i;
        fputs(begins ? " Oo Ar \\&" : open ? " \\&" : " Ar \\&", stdout);
        print_text(arguments + i, (size_t)length);
        i += length;
        open = arguments[i] != ']';
        fputs(open ? "" : " Oc", stdout);
        i += (int)strspn(arguments + i, "] ");
    }
}

static void print_option(const struct cli_option *o)
{
    const char *form = option_short(o);
    fputs(".It", stdout);
    if (form)
        printf(" Fl %s ,", form);
    printf(" Fl Fl %s", o->name);
    if (o->argument)
        print_arguments(o->argument);
    puts("");
    print_paragraphs(o->help);
}

static void print_options(const struct cli_option *options)
{
    puts(".Bl -tag -width indent");
    for (const struct cli_option *o = options; o && o->letter; o++)
        print_option(o);
    for (const struct cli_option *o = options_everywhere; o->letter; o++)
        print_option(o);
    puts(".El");
}

static void print_usage(const struct subcommand *s)
{
    fputs(".Nm\n.", stdout);
    if (*s->name)
        printf(" Cm %s", s->name);
    print_arguments(s->arguments);
    puts(s->options ? " Op Ar OPTION ..." : "");
}

static void print_synopsis(const struct program *program)
{
    puts(".Sh SYNOPSIS");
    if (program->alone)
        print_usage(program->alone);
    for (const struct subcommand *const *s = program->subcommands; *s; s++)
        print_usage(*s);
    puts(".Nm\n.Fl Fl man\n.Nm\n.Fl Fl completion Ar SHELL");
}

static void print_subcommands(const struct program *program)
{
    puts(".Sh SUBCOMMANDS");
    for (const struct subcommand *const *s = program->subcommands; *s; s++) {
        printf(".Ss %s\n", (*s)->name);
        print_usage(*s);
        puts(".Pp");
        print_paragraphs((*s)->help);
        print_options((*s)->options);
    }
}

static void print_head(const struct program *program)
{
    struct tm day = {0};
    char date[32];
    strptime(KBGEN_DATE, "%Y-%m-%d", &day);
    strftime(date, sizeof date, "%B %e, %Y", &day);
    printf(".Dd %s\n.Dt ", date);
    for (const char *c = program_name; *c; c++)
        putchar(toupper((unsigned char)*c));
    printf(" 1\n.Os\n.Sh NAME\n.Nm %s\n.Nd %s\n", program_name, program->about);
}

void manual_print(const struct program *program)
{
    print_head(program);
    print_synopsis(program);
    puts(".Sh DESCRIPTION");
    if (program->alone) {
        print_paragraphs(program->alone->help);
        puts(".Pp\nThe options are:");
        print_options(program->alone->options);
        puts(".Pp");
    }
    print_paragraphs(program->notes);
    puts(".Pp\n.Fl Fl man\nprints this page, and\n.Fl Fl completion\na script for completion in bash, zsh or fish.");
    print_subcommands(program);
    puts(".Sh EXIT STATUS");
    print_paragraphs(program->statuses);
    puts(".Sh SEE ALSO");
    puts(strcmp(program_name, "kbgen") ? ".Xr kbgen 1" : ".Xr kbgen-sim 1");
}
