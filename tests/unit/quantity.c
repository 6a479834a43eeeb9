/* quantity.c: the grammar of numbers, exact values, rounding. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/quantity.h"

static int tests;

static void check(const char *text, const char *got, const char *want)
{
    printf("%s %d - '%s' is %s\n", strcmp(got, want) ? "not ok" : "ok", ++tests, text,
           want[0] == '!' ? "refused" : want);
    if (strcmp(got, want))
        printf("# got %s\n# want %s\n", got, want);
}

/* Reads a text as a quantity of a dimension and compares the exact value: a fraction, or `!` and why there is none. */
static void expect(const char *text, enum dimension dimension, const char *bare, const char *want)
{
    static char got[2000];
    const char *unit;
    mpq_t value;
    mpq_init(value);
    const char *why = quantity_lex(text, value, &unit);
    if (!why)
        why = quantity_scale(value, unit, dimension, bare ? unit_named(bare) : NULL);
    if (why)
        snprintf(got, sizeof(got), "!%s", why);
    else
        gmp_snprintf(got, sizeof(got), "%Qd", value);
    mpq_clear(value);
    check(text, got, want);
}

static void expect_number(const char *text, const char *want)
{
    expect(text, DIMENSION_none, NULL, want);
}

static void numbers(void)
{
    expect_number("0", "0");
    expect_number("18446744073709551616", "18446744073709551616");
    expect_number("0.1", "1/10");
    expect_number("1.0e-05", "1/100000");
    expect_number("0.10", "1/10");
    expect_number("1_000.2_5", "4001/4");
    expect_number("1e3", "1000");
    expect_number("1E-3", "1/1000");
    expect_number("12.5e1", "125");
    expect_number("0x1F", "31");
    expect_number("0xf_f", "255");
    expect_number("0e99999999999999999999", "0");
    expect_number("1e40", "10000000000000000000000000000000000000000");
    expect_number("1e999999999999999999", "10000000000000000000000000000000000000000");
    expect_number("1e-999999999999999999", "1/10000000000000000000000000000000000000000");
    expect_number("0.00000000000000000000000000000000000000000000000001e50", "1");
}

static void no_numbers(void)
{
    static const char zeros[] = "!numbers have no leading zeros, and octal is not supported";
    static const char point[] = "!a '.' needs digits on both sides";
    static const char underscore[] = "!'_' is allowed only between two digits";
    static const char plus[] = "!numbers have no '+'";
    expect_number("", "!");
    expect_number(" 1", "!");
    expect_number("x", "!");
    expect_number("_1", "!");
    expect_number("0x", "!it takes no unit");
    expect_number("00", zeros);
    expect_number("0_1", zeros);
    expect_number("012.5", zeros);
    expect_number("1.", point);
    expect_number("1.e5", point);
    expect_number(".5", point);
    expect_number("1_", underscore);
    expect_number("1._5", point);
    expect_number("0x1_", underscore);
    expect_number("+1", plus);
    expect_number("1e+1", plus);
    expect_number("-1", "!numbers must not be negative");
    expect_number("190:20:30", "!base 60 is not supported");
    expect_number(".inf", "!infinity and NaN are not allowed");
    expect_number("NaN", "!infinity and NaN are not allowed");
    expect_number("0b1", "!numbers are decimal or 0x hexadecimal");
    expect_number("0X1", "!hexadecimal begins with 0x, in small letters");
    expect_number("1 2", "!it takes no unit");
    expect_number("1 ", "1");
}

static void units_of_all_kinds(void)
{
    expect("5", DIMENSION_time, "ns", "5000");
    expect("5 us", DIMENSION_time, "ns", "5000000");
    expect("0.5ps", DIMENSION_time, "ns", "1/2");
    expect("2 MiB", DIMENSION_size, "B", "2097152");
    expect("2 MB", DIMENSION_size, "B", "2097152");
    expect("2 MB/s", DIMENSION_bandwidth, "GB/s", "2000000");
    expect("1.4 GHz", DIMENSION_clock, "GHz", "1400000");
    expect("1 Hz", DIMENSION_clock, "GHz", "1/1000");
    expect("0x10 cm", DIMENSION_length, "mm", "160000");
    expect("1e3m", DIMENSION_length, "mm", "1000000000");
    expect("5 KiB", DIMENSION_time, "ns", "!'KiB' is the unit of a size; a time has ps ns us ms s");
    expect("5 TB", DIMENSION_size, "B", "!'TB' is not a unit; a size has B KiB MiB GiB KB MB GB");
    expect("5  ns", DIMENSION_time, "ns", "!' ns' is not a unit; a time has ps ns us ms s");
    expect("5 ns", DIMENSION_none, NULL, "!it takes no unit");
}

/* Rounded half up, and whether it is whole: "3" or "~3". */
static void expect_rounded(const char *text, const char *want)
{
    char got[64];
    const char *unit;
    uint64_t rounded, whole;
    mpq_t value;
    mpq_init(value);
    quantity_lex(text, value, &unit);
    bool fits = quantity_round(value, &rounded), is_whole = quantity_whole(value, &whole);
    snprintf(got, sizeof(got), "%s%" PRIu64, !fits ? "beyond " : is_whole ? "" : "~", rounded);
    mpq_clear(value);
    check(text, got, want);
}

static void rounding(void)
{
    expect_rounded("2.4999999999999999999999999999", "~2");
    expect_rounded("2.5", "~3");
    expect_rounded("3.5", "~4");
    expect_rounded("0.5", "~1");
    expect_rounded("1e-999", "~0");
    expect_rounded("7.0", "7");
    expect_rounded("18446744073709551615", "18446744073709551615");
    expect_rounded("18446744073709551615.4", "~18446744073709551615");
    expect_rounded("18446744073709551615.5", "beyond 0");
    expect_rounded("1e999", "beyond 0");
}

int main(void)
{
    numbers();
    no_numbers();
    units_of_all_kinds();
    rounding();
    printf("1..%d\n", tests);
    return 0;
}
