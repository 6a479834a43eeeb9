/* param.c: parameters of benches: the values of each type on the command line, in results and in `list`. */
#include "param.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/diag.h"
#include "common/quantity.h"

struct kb_value param_default(const struct kb_param *p)
{
    struct kb_value value = {.number = p->initial, .real = p->initial_real};
    if (p->type == KB_PARAM_WORD)
        value.word = arena_text(p->words, strcspn(p->words, " "));
    else if (p->type == KB_PARAM_TEXT)
        value.word = p->words;
    return value;
}

/* ---- from text */

/* "1024", "0x400" */
static const char *parse_whole(const char *text, uint64_t *out)
{
    bool hexadecimal = text[0] == '0' && text[1] == 'x';
    const char *digits = hexadecimal ? text + 2 : text;
    const char *allowed = hexadecimal ? "0123456789abcdefABCDEF" : "0123456789";
    if (!*digits || digits[strspn(digits, allowed)] || (!hexadecimal && digits[0] == '0' && digits[1]))
        return "is not a whole number";
    errno = 0;
    *out = strtoull(digits, NULL, hexadecimal ? 16 : 10);
    return errno ? "does not fit into 64 bits" : NULL;
}

/* "4096", "4 KiB", "1.5MiB" */
static const char *parse_size(const char *text, uint64_t *out)
{
    const char *unit;
    mpq_t value;
    mpq_init(value);
    const char *why = quantity_lex(text, value, &unit);
    if (!why)
        why = quantity_scale(value, unit, DIMENSION_size, NULL);
    bool whole = !why && quantity_whole(value, out);
    mpq_clear(value);
    if (why)
        return *why ? arena_printf("is not a size: %s", why) : "is not a size: bytes, or a number with KiB, MiB or GiB";
    return whole ? NULL : "is not a whole number of bytes below 2^64";
}

/* "0.5", "-1e-3". strtod alone would also accept hexadecimal numbers, infinities and blanks. */
static const char *parse_real(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    if (!*text || *end || text[0] == '+' || text[strspn(text, "0123456789+-.eE")] || !isfinite(*out))
        return "is not a decimal number";
    return NULL;
}

static const char *parse_bool(const char *text, uint64_t *out)
{
    *out = !strcmp(text, "true");
    return *out || !strcmp(text, "false") ? NULL : "is neither true nor false";
}

/* One of `words`, which are separated by spaces. */
static const char *parse_word(const char *words, const char *text, const char **out)
{
    for (const char *at = words; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (strlen(text) == length && !strncmp(at, text, length)) {
            *out = arena_text(at, length);
            return NULL;
        }
        at += length;
    }
    return arena_printf("is not one of: %s", words);
}

/* "64 KiB", in the largest unit that is exact. */
static const char *size_name(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    unsigned i = 0;
    while (i + 1 < COUNT_OF(units) && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        i++;
    }
    return arena_printf("%" PRIu64 " %s", bytes, units[i]);
}

static const char *bounds(const struct kb_param *p)
{
    if (p->type == KB_PARAM_REAL)
        return arena_printf("%g to %g", p->least_real, p->most_real);
    if (p->type == KB_PARAM_SIZE)
        return arena_printf("%s to %s", size_name(p->least), size_name(p->most));
    return arena_printf("%" PRIu64 " to %" PRIu64, p->least, p->most);
}

bool param_within(const struct kb_param *p, const struct kb_value *value)
{
    if (p->type == KB_PARAM_REAL)
        return value->real >= p->least_real && value->real <= p->most_real;
    bool counts = p->type == KB_PARAM_INT || p->type == KB_PARAM_SIZE;
    return !counts || (value->number >= p->least && value->number <= p->most);
}

static const char *parse_value(const struct kb_param *p, const char *text, struct kb_value *out)
{
    switch (p->type) {
    case KB_PARAM_INT: return parse_whole(text, &out->number);
    case KB_PARAM_SIZE: return parse_size(text, &out->number);
    case KB_PARAM_REAL: return parse_real(text, &out->real);
    case KB_PARAM_BOOL: return parse_bool(text, &out->number);
    case KB_PARAM_WORD: return parse_word(p->words, text, &out->word);
    case KB_PARAM_TEXT: out->word = text;
    }
    return NULL;
}

const char *param_parse(const struct kb_param *p, const char *text, struct kb_value *out)
{
    const char *wrong = parse_value(p, text, out);
    return wrong || param_within(p, out) ? wrong : arena_printf("is out of bounds: %s", bounds(p));
}

const char *param_domain(const struct kb_param *p)
{
    switch (p->type) {
    case KB_PARAM_INT: return arena_printf("a whole number from %s", bounds(p));
    case KB_PARAM_SIZE: return arena_printf("a size from %s", bounds(p));
    case KB_PARAM_REAL: return arena_printf("a number from %s", bounds(p));
    case KB_PARAM_BOOL: return "true or false";
    case KB_PARAM_WORD: return arena_printf("one of: %s", p->words);
    default: return "a text";
    }
}

/* ---- to text */

void param_write(struct json *json, const struct kb_param *p, const struct kb_value *value)
{
    switch (p->type) {
    case KB_PARAM_INT:
    case KB_PARAM_SIZE: json_u64(json, p->name, value->number); break;
    case KB_PARAM_REAL: json_double(json, p->name, value->real); break;
    case KB_PARAM_BOOL: json_bool(json, p->name, value->number); break;
    case KB_PARAM_WORD:
    case KB_PARAM_TEXT: json_string(json, p->name, value->word); break;
    }
}

const char *param_text(const struct kb_param *p, const struct kb_value *value)
{
    switch (p->type) {
    case KB_PARAM_INT: return arena_printf("%" PRIu64, value->number);
    case KB_PARAM_SIZE: return size_name(value->number);
    case KB_PARAM_REAL: return arena_printf("%g", value->real);
    case KB_PARAM_BOOL: return value->number ? "true" : "false";
    default: return value->word;
    }
}

void param_list(FILE *out, const struct kb_param *p)
{
    struct kb_value value = param_default(p);
    const char *may_be = p->type == KB_PARAM_WORD ? p->words : p->type == KB_PARAM_BOOL ? "true false"
                         : p->type == KB_PARAM_TEXT ? "text" : bounds(p);
    const char *type = p->type == KB_PARAM_REAL ? "decimal, " : p->type == KB_PARAM_SIZE ? "size, " : "";
    fprintf(out, "  %-10s = %-10s %s (%s%s)\n", p->name, printable(param_text(p, &value)),
            printable(p->help), type, may_be);
}

void param_describe(struct json *json, const struct kb_param *p)
{
    static const char *const types[] = {
        [KB_PARAM_INT] = "int", [KB_PARAM_SIZE] = "size", [KB_PARAM_REAL] = "real", [KB_PARAM_BOOL] = "bool",
        [KB_PARAM_WORD] = "word", [KB_PARAM_TEXT] = "text",
    };
    struct kb_value value = param_default(p);
    struct kb_param standard = *p;
    standard.name = "default";
    json_object(json, NULL);
    json_string(json, "name", p->name);
    json_string(json, "type", types[p->type]);
    param_write(json, &standard, &value);
    if (p->type == KB_PARAM_INT || p->type == KB_PARAM_SIZE) {
        json_u64(json, "least", p->least);
        json_u64(json, "most", p->most);
    } else if (p->type == KB_PARAM_REAL) {
        json_double(json, "least", p->least_real);
        json_double(json, "most", p->most_real);
    } else if (p->type == KB_PARAM_WORD) {
        json_array(json, "words");
        for (const char *at = p->words; *at; at += strspn(at, " ")) {
            size_t length = strcspn(at, " ");
            json_string(json, NULL, arena_text(at, length));
            at += length;
        }
        json_array_end(json);
    }
    json_string(json, "help", p->help);
    json_object_end(json);
}
