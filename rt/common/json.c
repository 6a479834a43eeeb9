/* json.c: a writer of JSON. */
#include "json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"

void json_open(struct json *json, FILE *out)
{
    *json = (struct json){.out = out, .first = true};
}

void json_close(struct json *json)
{
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

/* Before a value come the comma, the new line and the key. */
static void before_value(struct json *json, const char *key)
{
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
}

static void begin(struct json *json, const char *key, char bracket)
{
    before_value(json, key);
    fputc(bracket, json->out);
    json->depth++;
    json->first = true;
}

static void end(struct json *json, char bracket)
{
    json->depth--;
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
    before_value(json, key);
    text_write(json->out, value);
}

void json_u64(struct json *json, const char *key, uint64_t value)
{
    before_value(json, key);
    fprintf(json->out, "%" PRIu64, value);
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
    before_value(json, key);
    fputs(digits, json->out);
}

void json_null(struct json *json, const char *key)
{
    before_value(json, key);
    fputs("null", json->out);
}

void json_bool(struct json *json, const char *key, bool value)
{
    before_value(json, key);
    fputs(value ? "true" : "false", json->out);
}
