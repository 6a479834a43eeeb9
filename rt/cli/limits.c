/* limits.c: --time-limit, --mem-limit, --sim-limit, --progress. */
#include "limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "common/command_line.h"
#include "common/fail.h"

struct watchdog_limits limits;

/* Zero would mean that there is no limit. */
static uint64_t not_zero(const char *option, const char *text, uint64_t limit)
{
    if (!limit)
        usage_error("--%s %s: a limit must not be 0", option, text);
    return limit;
}

uint64_t parse_time(const char *option, const char *text)
{
    return option_quantity(option, text, DIMENSION_time, NULL, "10 us");
}

uint64_t parse_size(const char *option, const char *text)
{
    return option_quantity(option, text, DIMENSION_size, "B", "64 MiB");
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
                                          option_quantity("time-limit", argument, DIMENSION_time, "s", "30 s")) * 1e-12;
        return true;
    case 'M':
        limits.bytes = not_zero("mem-limit", argument, parse_size("mem-limit", argument));
        return true;
    case 'T':
        limits.ps = not_zero("sim-limit", argument, option_quantity("sim-limit", argument, DIMENSION_time, NULL, "10 ms"));
        return true;
    case 'P':
        progress_lines = true;
        return true;
    default:
        return false;
    }
}
