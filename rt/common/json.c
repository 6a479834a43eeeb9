/* json.c: a writer of JSON. */
#include "json.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"

void json_open(struct json *json, FILE *out)
{
    *json = (struct json){.out = out, .first = true};
}

void json_visit(struct json *json, struct json_numbers *numbers)
{
    *json = (struct json){.numbers = numbers, .first = true};
}

void json_close(struct json *json)
{
    if (json->out)
        fputc('\n', json->out);
}

/* A byte of a text as JSON writes it; returns the length. */
static size_t escape(char to[8], unsigned char c)
{
    if (c == '"' || c == '\\')
        return (size_t)sprintf(to, "\\%c", c);
    if (c < 0x20 || c == 0x7f)
        return (size_t)sprintf(to, "\\u%04x", c);
    *to = (char)c;
    return 1;
}

const char *json_quoted(const char *text)
{
    char *quoted = arena_alloc(6 * strlen(text) + 3, 1), *to = quoted, escaped[8];
    *to++ = '"';
    for (; *text; text++) {
        size_t length = escape(escaped, (unsigned char)*text);
        memcpy(to, escaped, length);
        to += length;
    }
    *to = '"';
    return quoted;
}

static void text_write(FILE *out, const char *text)
{
    char escaped[8];
    fputc('"', out);
    for (; *text; text++) {
        size_t length = escape(escaped, (unsigned char)*text);
        if (length == 1)
            fputc(*escaped, out);
        else
            fwrite(escaped, 1, length, out);
    }
    fputc('"', out);
}

/* Puts the path of a value after that of what it is in. */
static void path_extend(struct json *json, const char *key)
{
    struct json_numbers *numbers = json->numbers;
    size_t length = numbers->level[json->depth].length, room = sizeof numbers->path - length;
    const char *dot = length ? "." : "";
    if (key)
        snprintf(numbers->path + length, room, "%s%s", dot, key);
    else
        snprintf(numbers->path + length, room, "%s%" PRIu64, dot, numbers->level[json->depth].index++);
}

/* Before a value come the comma, the new line and the key. Returns whether the value is written. */
static bool before_value(struct json *json, const char *key)
{
    if (!json->out) {
        if (json->depth)
            path_extend(json, key);
        return false;
    }
    if (!json->first)
        fputc(',', json->out);
    if (json->depth && !json->one_line)
        fprintf(json->out, "\n%*s", json->depth, "");
    else if (!json->first)
        fputc(' ', json->out);
    json->first = false;
    if (key) {
        text_write(json->out, key);
        fputs(": ", json->out);
    }
    return true;
}

static void begin(struct json *json, const char *key, char bracket)
{
    if (before_value(json, key))
        fputc(bracket, json->out);
    json->depth++;
    json->first = true;
    if (!json->out) {
        assert(json->depth < JSON_LEVELS);
        json->numbers->level[json->depth].length = json->depth > 1 ? strlen(json->numbers->path) : 0;
        json->numbers->level[json->depth].index = 0;
    }
}

static void end(struct json *json, char bracket)
{
    json->depth--;
    if (!json->out)
        return;
    if (!json->first && !json->one_line)
        fprintf(json->out, "\n%*s", json->depth, "");
    fputc(bracket, json->out);
    json->first = false;
}

void json_object(struct json *json, const char *key)
{
    begin(json, key, '{');
}

void json_object_end(struct json *json)
{
    end(json, '}');
}

void json_array(struct json *json, const char *key)
{
    begin(json, key, '[');
}

void json_array_end(struct json *json)
{
    end(json, ']');
}

void json_string(struct json *json, const char *key, const char *value)
{
    if (!value) {
        json_null(json, key);
        return;
    }
    if (before_value(json, key))
        text_write(json->out, value);
}

void json_u64(struct json *json, const char *key, uint64_t value)
{
    if (before_value(json, key))
        fprintf(json->out, "%" PRIu64, value);
    else
        json->numbers->number(json->numbers->user, json->numbers->path, value);
}

void json_u64_array(struct json *json, const char *key, const uint64_t *values, size_t count)
{
    json_array(json, key);
    for (size_t i = 0; i < count; i++)
        json_u64(json, NULL, values[i]);
    json_array_end(json);
}

void json_double(struct json *json, const char *key, double value)
{
    char digits[32];
    if (value - value != 0) {                           /* JSON has neither infinities nor NaN */
        json_null(json, key);
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    if (before_value(json, key))
        fputs(digits, json->out);
}

void json_null(struct json *json, const char *key)
{
    if (before_value(json, key))
        fputs("null", json->out);
}

void json_bool(struct json *json, const char *key, bool value)
{
    if (before_value(json, key))
        fputs(value ? "true" : "false", json->out);
}
