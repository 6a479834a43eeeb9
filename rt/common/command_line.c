/* command_line.c: what kbgen and a simulator say of options.
 *
 * getopt_long's own messages have another form and know no nearest name. */
#include "command_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "diag.h"

/* The option that getopt_long has stopped at, without its value: "--jsno", "-x". */
static const char *option_at(char *const *argv)
{
    const char *word = argv[optind - 1];
    if (!strncmp(word, "--", 2))
        return arena_text(word, strcspn(word, "="));
    return arena_printf("-%c", optopt);
}

static const char *possible(const char *option, const struct option *options, const char *separator)
{
    const char *list = "";
    for (const struct option *o = options; o->name; o++)
        if (!strncmp(o->name, option + 2, strlen(option + 2)))
            list = arena_printf("%s%s--%s", list, *list ? separator : "", o->name);
    return list;
}

static const char *nearest(const char *option, const struct option *options)
{
    const char **names = NULL;
    size_t count = 0;
    for (const struct option *o = options; o->name; o++) {
        names = arena_grow(names, count, sizeof *names);
        names[count++] = o->name;
    }
    return strncmp(option, "--", 2) ? NULL : nearest_name(option + 2, names, count);
}

void option_refused(int letter, char *const *argv, const struct option *options, const char *help)
{
    const char *option = option_at(argv);
    bool is_long = !strncmp(option, "--", 2);
    if (letter == ':')
        usage_error("%s needs a value; %s lists the options", option, help);
    if (is_long && strchr(argv[optind - 1], '=') && optopt)
        usage_error("%s takes no value; %s lists the options", option, help);
    const char *all = is_long ? possible(option, options, " or ") : "";
    if (*all)
        usage_error("%s may be %s: write it out", option, all);
    const char *near = nearest(option, options);
    if (near)
        usage_error("no option '%s'; did you mean '--%s'?", option, near);
    usage_error("no option '%s'; %s lists the options", option, help);
}

uint64_t option_whole(const char *option, const char *text, uint64_t least, uint64_t most)
{
    errno = 0;
    uint64_t number = strtoull(text, NULL, 10);
    if (!*text || text[strspn(text, "0123456789")] || errno || number < least || number > most)
        usage_error("--%s %s: a whole number from %" PRIu64 " to %" PRIu64 " is needed", option, text, least, most);
    return number;
}

uint64_t option_quantity(const char *option, const char *text, enum dimension dimension, const char *bare, const char *example)
{
    uint64_t number = 0;
    const char *unit, *why;
    mpq_t value;
    mpq_init(value);
    why = quantity_lex(text, value, &unit);
    if (!why)
        why = quantity_scale(value, unit, dimension, bare ? unit_named(bare) : NULL);
    if (!why && dimension == DIMENSION_time && !bare && !*unit)
        why = "a number without a unit";
    if (why || mpq_sgn(value) < 0 || !quantity_whole(value, &number))
        usage_error("--%s %s: %s such as %s is needed%s%s", option, text, dimension_phrase[dimension], example,
                    why && *why ? ": " : "", why ? why : "");
    mpq_clear(value);
    return number;
}

void option_once(const char *name, const char **given, const char *value)
{
    if (*given)
        usage_error("%s is given twice, as '%s' and '%s'; it takes one value", name, *given, value);
    *given = value;
}
