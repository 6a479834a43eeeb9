/* json.c: a writer of JSON. A result may have a row for each command of a run, so what is written is put together here, not by
 * printf. */
#define _GNU_SOURCE                                     /* fwrite_unlocked */
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

/* What a call writes, put together before it goes to the file. */
struct piece {
    FILE *out;
    char *to;                                           /* where the next byte goes */
    char bytes[256];
};

static void piece_write(struct piece *piece)
{
    fwrite_unlocked(piece->bytes, 1, (size_t)(piece->to - piece->bytes), piece->out);
    piece->to = piece->bytes;
}

static inline void add_byte(struct piece *piece, char c)
{
    if (piece->to == piece->bytes + sizeof piece->bytes)
        piece_write(piece);
    *piece->to++ = c;
}

static void add_bytes(struct piece *piece, const char *from, size_t length)
{
    if ((size_t)(piece->bytes + sizeof piece->bytes - piece->to) < length)
        piece_write(piece);
    memcpy(piece->to, from, length);
    piece->to += length;
}

static void add_word(struct piece *piece, const char *word)
{
    add_bytes(piece, word, strlen(word));
}

/* Whether a byte is written as it is; the 0 at the end of a text is not. */
static inline bool is_plain(unsigned char c)
{
    return c >= 0x20 && c != '"' && c != '\\' && c != 0x7f;
}

static void add_quoted(struct piece *piece, const char *text)
{
    char escaped[8], *end = piece->bytes + sizeof piece->bytes;
    add_byte(piece, '"');
    for (;;) {
        char *to = piece->to;
        while (to < end && is_plain((unsigned char)*text))
            *to++ = *text++;
        piece->to = to;
        if (!*text)
            break;
        if (to == end)
            piece_write(piece);
        else
            add_bytes(piece, escaped, escape(escaped, (unsigned char)*text++));
    }
    add_byte(piece, '"');
}

static void add_u64(struct piece *piece, uint64_t value)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    char digits[20], *end = digits + sizeof digits, *first = end;
    for (; value >= 10; value /= 100) {
        first -= 2;
        memcpy(first, pairs + 2 * (value % 100), 2);
    }
    if (value || first == end)
        *--first = (char)('0' + value);
    add_bytes(piece, first, (size_t)(end - first));
}

static void add_new_line(struct piece *piece, int depth)
{
    add_byte(piece, '\n');
    while (depth-- > 0)
        add_byte(piece, ' ');
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

/* Before a value come the comma, the new line and the key: they begin the piece. Returns whether the value is written. */
static bool before_value(struct json *json, const char *key, struct piece *piece)
{
    if (!json->out) {
        if (json->depth)
            path_extend(json, key);
        return false;
    }
    piece->out = json->out;
    piece->to = piece->bytes;
    if (!json->first)
        add_byte(piece, ',');
    if (json->depth && !json->one_line)
        add_new_line(piece, json->depth);
    else if (!json->first)
        add_byte(piece, ' ');
    json->first = false;
    if (key) {
        add_quoted(piece, key);
        add_bytes(piece, ": ", 2);
    }
    return true;
}

/* A value that is a text without quotes. */
static void write_word(struct json *json, const char *key, const char *word)
{
    struct piece piece;
    if (!before_value(json, key, &piece))
        return;
    add_word(&piece, word);
    piece_write(&piece);
}

static void begin(struct json *json, const char *key, char bracket)
{
    write_word(json, key, (const char[]){bracket, 0});
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
    struct piece piece = {.out = json->out};
    piece.to = piece.bytes;
    if (!json->first && !json->one_line)
        add_new_line(&piece, json->depth);
    add_byte(&piece, bracket);
    piece_write(&piece);
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
    struct piece piece;
    if (!before_value(json, key, &piece))
        return;
    add_quoted(&piece, value);
    piece_write(&piece);
}

void json_u64(struct json *json, const char *key, uint64_t value)
{
    struct piece piece;
    if (!before_value(json, key, &piece)) {
        json->numbers->number(json->numbers->user, json->numbers->path, value);
        return;
    }
    add_u64(&piece, value);
    piece_write(&piece);
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
    write_word(json, key, digits);
}

void json_null(struct json *json, const char *key)
{
    write_word(json, key, "null");
}

void json_bool(struct json *json, const char *key, bool value)
{
    write_word(json, key, value ? "true" : "false");
}
