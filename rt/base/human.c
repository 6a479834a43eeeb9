/* human.c: numbers for people. */
#include "human.h"

#include <inttypes.h>
#include <stdio.h>

enum { BUFFERS = 16, BUFFER_BYTES = 48 };

static char *buffer(void)
{
    static char buffers[BUFFERS][BUFFER_BYTES];
    static unsigned turn;
    return buffers[turn++ % BUFFERS];
}

/* Divides the value by `step` while it is at least that, and appends the unit it then has. */
static const char *scaled(double value, double step, const char *const *units, unsigned count, const char *suffix)
{
    unsigned unit = 0;
    while (value >= step && unit + 1 < count) {
        value /= step;
        unit++;
    }
    char *text = buffer();
    snprintf(text, BUFFER_BYTES, "%.4g %s%s", value, units[unit], suffix);
    return text;
}

static const char *const time_units[] = {"ps", "ns", "us", "ms", "s"};

const char *human_time(uint64_t ps)
{
    return scaled((double)ps, 1000, time_units, 5, "");
}

const char *human_time_exact(uint64_t ps)
{
    uint64_t scale = 1;
    unsigned unit = 0;
    for (; unit < 4 && ps / scale >= 1000; unit++)
        scale *= 1000;
    unsigned digits = 3 * unit;
    uint64_t part = ps % scale;
    for (; digits > 0 && part % 10 == 0; digits--)
        part /= 10;
    char *text = buffer();
    if (digits)
        snprintf(text, BUFFER_BYTES, "%" PRIu64 ".%0*" PRIu64 " %s", ps / scale, (int)digits, part, time_units[unit]);
    else
        snprintf(text, BUFFER_BYTES, "%" PRIu64 " %s", ps / scale, time_units[unit]);
    return text;
}

const char *human_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    return scaled((double)bytes, 1024, units, 6, "");
}

const char *human_count(double count, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    return scaled(count, 1000, prefixes, 7, unit);
}

const char *human_seconds(double seconds)
{
    char *text = buffer();
    snprintf(text, BUFFER_BYTES, "%.3g s", seconds);
    return text;
}
