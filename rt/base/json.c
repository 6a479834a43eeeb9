/* json.c: writes JSON. */
#include "json.h"

#include <inttypes.h>
#include <stdlib.h>

void json_open(struct json *json, FILE *out)
{
    *json = (struct json){.out = out, .first = true};
}

void json_close(struct json *json)
{
    fputc('\n', json->out);
}

static void text(struct json *json, const char *s)
{
    fputc('"', json->out);
    for (; *s; s++) {
        unsigned char c = *s;
        if (c == '"' || c == '\\')
            fprintf(json->out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(json->out, "\\u%04x", c);
        else
            fputc(c, json->out);
    }
    fputc('"', json->out);
}

/* What stands before a value: the comma, the line, the key. */
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
        text(json, key);
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
    text(json, value);
}

void json_u64(struct json *json, const char *key, uint64_t value)
{
    before_value(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void json_double(struct json *json, const char *key, double value)
{
    char digits[32];
    if (value - value != 0) {                           /* an infinity or NaN has no place in JSON */
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
