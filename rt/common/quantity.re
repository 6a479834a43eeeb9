/* quantity.re: the grammar of numbers, and their exact values.
 *
 * Decimal, with or without fraction and exponent, or 0x hexadecimal, with `_` between digits; a unit may follow, after at
 * most one space. For each form that YAML 1.1 or C would accept and this grammar does not, a rule says why. */
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "quantity.h"

enum { TEXT_MOST = 10000, MAGNITUDE_MOST = 40 };

const struct unit units[] = {
#define DIMENSION(...)
#define UNIT(name, dimension, up, down) { name, DIMENSION_##dimension, up, down },
#include "units.def"
#undef DIMENSION
#undef UNIT
    { NULL, DIMENSION_none, 0, 0 }
};

const char *const dimension_name[DIMENSIONS] = {
#define DIMENSION(name, ...) [DIMENSION_##name] = #name,
#define UNIT(name, dimension, up, down)
#include "units.def"
#undef DIMENSION
#undef UNIT
};

const char *const dimension_phrase[DIMENSIONS] = {
#define DIMENSION(name, phrase, base) [DIMENSION_##name] = phrase,
#define UNIT(name, dimension, up, down)
#include "units.def"
#undef DIMENSION
#undef UNIT
};

const char *const dimension_base[DIMENSIONS] = {
#define DIMENSION(name, phrase, base) [DIMENSION_##name] = base,
#define UNIT(name, dimension, up, down)
#include "units.def"
#undef DIMENSION
#undef UNIT
};

const struct unit *unit_named(const char *name)
{
    for (const struct unit *unit = units; unit->name; unit++)
        if (!strcmp(unit->name, name))
            return unit;
    return NULL;
}

const struct unit *unit_base(enum dimension dimension)
{
    for (const struct unit *unit = units; unit->name; unit++)
        if (unit->dimension == dimension && unit->up == 1 && unit->down == 1)
            return unit;
    return NULL;
}

/* The units of a dimension, for messages. */
static const char *unit_names(enum dimension dimension)
{
    const char *names = "";
    for (const struct unit *unit = units; unit->name; unit++)
        if (unit->dimension == dimension)
            names = arena_printf("%s %s", names, unit->name);
    return names;
}

static void set_hexadecimal(mpq_t value, const char *text, const char *end)
{
    char *digits = arena_alloc((size_t)(end - text) + 1, 1), *to = digits;
    for (text += strlen("0x"); text < end; text++)
        if (*text != '_')
            *to++ = *text;
    mpz_set_str(mpq_numref(value), digits, 16);
    mpz_set_ui(mpq_denref(value), 1);
}

/* value = digits * 10^exponent, limited to 10^-40 .. 10^40. */
static void set_scaled(mpq_t value, const char *digits, long exponent)
{
    digits += strspn(digits, "0");
    long magnitude = (long)strlen(digits) + exponent;
    bool beyond = *digits && labs(magnitude) > MAGNITUDE_MOST;
    if (beyond) {
        digits = "1";
        exponent = magnitude > 0 ? MAGNITUDE_MOST : -MAGNITUDE_MOST;
    }
    mpq_set_ui(value, 0, 1);
    if (!*digits)
        return;
    mpz_t power;
    mpz_init(power);
    mpz_ui_pow_ui(power, 10, (unsigned long)labs(exponent));
    mpz_set_str(mpq_numref(value), digits, 10);
    if (exponent >= 0)
        mpz_mul(mpq_numref(value), mpq_numref(value), power);
    else
        mpz_set(mpq_denref(value), power);
    mpq_canonicalize(value);
    mpz_clear(power);
}

static void set_decimal(mpq_t value, const char *text, const char *end)
{
    char *digits = arena_alloc((size_t)(end - text) + 1, 1), *to = digits;
    long exponent = 0;
    bool fraction = false;
    for (; text < end && *text != 'e' && *text != 'E'; text++) {
        if (*text == '.')
            fraction = true;
        if (*text == '.' || *text == '_')
            continue;
        exponent -= fraction;
        *to++ = *text;
    }
    bool negative = text < end && text[1] == '-';
    long written = 0;
    for (text += negative; text < end; text++)
        if (*text >= '0' && *text <= '9' && written < 1000 * 1000)
            written = 10 * written + (*text - '0');
    set_scaled(value, digits, exponent + (negative ? -written : written));
}

const char quantity_pattern[] = "(0|[1-9](_?[0-9])*)(\\.[0-9](_?[0-9])*)?([eE]-?[0-9](_?[0-9])*)?"
                                "|0x[0-9a-fA-F](_?[0-9a-fA-F])*";

const char *quantity_lex(const char *text, mpq_t value, const char **unit)
{
    *unit = "";
    mpq_set_ui(value, 0, 1);
    if (strnlen(text, TEXT_MOST + 1) > TEXT_MOST)
        return "it is too long";
    const char *cursor = text, *marker;
    /*!re2c
    re2c:define:YYCTYPE = "unsigned char";
    re2c:define:YYCURSOR = cursor;
    re2c:define:YYPEEK = "(unsigned char)*cursor";
    re2c:define:YYMARKER = marker;
    re2c:yyfill:enable = 0;

    digits = [0-9] ("_"? [0-9])*;
    whole = "0" | [1-9] ("_"? [0-9])*;
    number = whole ("." digits)? ([eE] "-"? digits)?;       // programs write 1.0e-05
    hexadecimal = "0x" [0-9a-fA-F] ("_"? [0-9a-fA-F])*;
    end = [\x00];

    number          { set_decimal(value, text, cursor); *unit = cursor + (*cursor == ' '); return NULL; }
    hexadecimal     { set_hexadecimal(value, text, cursor); *unit = cursor + (*cursor == ' '); return NULL; }
    number "_" | hexadecimal "_" { return "'_' is allowed only between two digits"; }
    "0" [0-9_]+     { return "numbers have no leading zeros, and octal is not supported"; }
    "0" [oObB] [0-9] { return "numbers are decimal or 0x hexadecimal"; }
    "0X" [0-9a-fA-F] { return "hexadecimal begins with 0x, in small letters"; }
    whole "."       { return "a '.' needs digits on both sides"; }
    "." [0-9]       { return "a '.' needs digits on both sides"; }
    whole ("." digits)? [eE] "+" { return "numbers have no '+'"; }
    "+" [0-9.]      { return "numbers have no '+'"; }
    "-" [0-9.]      { return "numbers must not be negative"; }
    whole ":" [0-9] { return "base 60 is not supported"; }
    [+-]? "."? 'inf' end | "."? 'nan' end { return "infinity and NaN are not allowed"; }
    [^]             { return ""; }
    */
}

const char *quantity_scale(mpq_t value, const char *unit, enum dimension dimension, const struct unit *bare)
{
    const struct unit *in = *unit ? unit_named(unit) : bare;
    if (*unit && dimension == DIMENSION_none)
        return "it takes no unit";
    if (*unit && (!in || in->dimension != dimension))
        return arena_printf("'%s' is %s%s; %s has%s", unit, in ? "the unit of " : "not a unit",
                            in ? dimension_phrase[in->dimension] : "", dimension_phrase[dimension],
                            unit_names(dimension));
    if (!in)
        return NULL;
    mpq_t factor;
    mpq_init(factor);
    mpq_set_ui(factor, in->up, in->down);
    mpq_canonicalize(factor);
    mpq_mul(value, value, factor);
    mpq_clear(factor);
    return NULL;
}

bool quantity_round(const mpq_t value, uint64_t *out)
{
    mpz_t twice, rounded;
    mpz_inits(twice, rounded, NULL);
    mpz_mul_2exp(twice, mpq_denref(value), 1);
    mpz_mul_2exp(rounded, mpq_numref(value), 1);
    mpz_add(rounded, rounded, mpq_denref(value));
    mpz_fdiv_q(rounded, rounded, twice);
    bool fits = mpz_fits_ulong_p(rounded);
    *out = fits ? mpz_get_ui(rounded) : 0;
    mpz_clears(twice, rounded, NULL);
    return fits;
}

bool quantity_whole(const mpq_t value, uint64_t *out)
{
    return !mpz_cmp_ui(mpq_denref(value), 1) && quantity_round(value, out);
}
