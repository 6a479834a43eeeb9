/* limits.c: --time-limit, --mem-limit, --sim-limit, --progress. */
#include "limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "common/fail.h"
#include "common/quantity.h"

struct watchdog_limits limits;

static uint64_t parse(const char *option, const char *text, enum dimension dimension, const char *bare,
                      const char *example)
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

/* Zero would mean that there is no limit. */
static uint64_t not_zero(const char *option, const char *text, uint64_t limit)
{
    if (!limit)
        usage_error("--%s %s: a limit must not be 0", option, text);
    return limit;
}

uint64_t parse_time(const char *option, const char *text)
{
    return parse(option, text, DIMENSION_time, NULL, "10 us");
}

uint64_t parse_size(const char *option, const char *text)
{
    return parse(option, text, DIMENSION_size, "B", "64 MiB");
}

uint64_t parse_seed(const char *text)
{
    char *end;
    errno = 0;
    uint64_t seed = strtoull(text, &end, 0);
    if (!*text || *end || errno || strspn(text, "0123456789xabcdefABCDEF") != strlen(text))
        usage_error("--seed %s: a whole number below 2^64 is needed", text);
    return seed;
}

bool limits_option(int letter, const char *argument)
{
    switch (letter) {
    case 'L':
        limits.seconds = (double)not_zero("time-limit", argument,
                                          parse("time-limit", argument, DIMENSION_time, "s", "30 s")) * 1e-12;
        return true;
    case 'M':
        limits.bytes = not_zero("mem-limit", argument, parse_size("mem-limit", argument));
        return true;
    case 'T':
        limits.ps = not_zero("sim-limit", argument, parse("sim-limit", argument, DIMENSION_time, NULL, "10 ms"));
        return true;
    case 'P':
        progress_lines = true;
        return true;
    default:
        return false;
    }
}
