/* diag.c: the form of errors.
 *
 * Any bytes can be quoted: control characters become '?', and a long line is cut to a window around the caret. Each
 * character counts as one column. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "diag.h"

static unsigned errors;
static struct where shown;                              /* the place whose line was printed last */
static const char *said;                                /* all errors and notes, on one line */

enum { LINE_MOST = 120, CARET_AT = 60, MESSAGE_MOST = 400, CHAR_MOST = 4, NAME_MOST = 64 };

/* Bytes of the character at s; 1 if it is not UTF-8. */
static size_t char_bytes(const char *s, const char *end)
{
    unsigned char lead = (unsigned char)*s;
    size_t bytes = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    for (size_t i = 1; i < bytes; i++)
        if (s + i >= end || ((unsigned char)s[i] & 0xc0) != 0x80)
            return 1;
    return bytes;
}

/* Bytes of the line break at s, 0 if there is none. Lines are counted by the breaks of YAML 1.1. */
static size_t break_bytes(const char *s, const char *end)
{
    size_t left = (size_t)(end - s);
    if (*s == '\r')
        return left > 1 && s[1] == '\n' ? 2 : 1;
    if (*s == '\n')
        return 1;
    if (left > 1 && !memcmp(s, "\xc2\x85", 2))
        return 2;
    return left > 2 && (!memcmp(s, "\xe2\x80\xa8", 3) || !memcmp(s, "\xe2\x80\xa9", 3)) ? 3 : 0;
}

/* Copies a character, or its replacement; returns the bytes written. */
static size_t put_char(char *to, const char *s, size_t bytes)
{
    unsigned char lead = (unsigned char)*s;
    bool control = lead < 0x20 || lead == 0x7f || (lead == 0xc2 && bytes == 2 && (unsigned char)s[1] < 0xa0);
    if (control || (lead >= 0x80 && bytes == 1)) {
        *to = lead == '\t' ? ' ' : '?';
        return 1;
    }
    memmove(to, s, bytes);
    return bytes;
}

void make_printable(char *text, bool lines)
{
    const char *end = text + strlen(text);
    char *to = text;                                    /* a replacement is not longer than its character */
    for (size_t bytes, at = 0; text + at < end; at += bytes) {
        bytes = char_bytes(text + at, end);
        if (lines && text[at] == '\n')
            *to++ = '\n';
        else
            to += put_char(to, text + at, bytes);
    }
    *to = '\0';
}

const char *printable(const char *text)
{
    char *out = arena_printf("%s", text);
    make_printable(out, false);
    return out;
}

static void print_printable(const char *text)
{
    static char out[MESSAGE_MOST * CHAR_MOST + sizeof("...")];
    const char *end = text + strlen(text);
    char *to = out;
    unsigned chars = 0;
    for (size_t bytes; text < end && chars < MESSAGE_MOST; text += bytes, chars++) {
        bytes = char_bytes(text, end);
        to += put_char(to, text, bytes);
    }
    strcpy(to, text < end ? "..." : "");
    message("%s\n", out);
}

static const char *line_begin(struct where at, const char *end)
{
    const char *s = at.file->text;
    for (unsigned line = 1 + at.file->lines_before; line < at.line && s < end;) {
        size_t bytes = break_bytes(s, end);
        line += bytes > 0;
        s += bytes ? bytes : char_bytes(s, end);
    }
    return s;
}

/* Prints the line of a place and the caret below it. */
static void print_line(struct where at)
{
    static char out[LINE_MOST * CHAR_MOST + 2 * sizeof("...")];
    const char *end = at.file->text + at.file->length, *s = line_begin(at, end);
    unsigned length = 0;
    for (const char *c = s; c < end && !break_bytes(c, end) && length < at.col + LINE_MOST; c += char_bytes(c, end))
        length++;
    unsigned first = length > LINE_MOST && at.col > CARET_AT ? at.col - CARET_AT : 0, i = 0;
    char *to = out;
    if (first)
        to = stpcpy(to, "...");
    for (size_t bytes; s < end && !break_bytes(s, end) && i < first + LINE_MOST; s += bytes, i++) {
        bytes = char_bytes(s, end);
        if (i >= first)
            to += put_char(to, s, bytes);
    }
    *to = '\0';
    unsigned before = at.col - 1 < first ? 0 : at.col - 1 - first + (first ? 3 : 0);
    message("%s%s\n%*s^\n", out, i < length ? "..." : "", (int)before, "");
    shown = at;
}

static void print_at(struct where at, const char *kind, const char *format, va_list args)
{
    char text[MESSAGE_MOST * CHAR_MOST];
    vsnprintf(text, sizeof(text), format, args);
    said = said ? arena_printf("%s; %s", said, text) : arena_text(text, strlen(text));
    if (at.file)
        print_printable(arena_printf("%s:%u:%u: %s%s", at.file->path, at.line, at.col, kind, text));
    else
        print_printable(arena_printf("%s: %s%s", program_name, kind, text));
}

void error_at(struct where at, const char *format, ...)
{
    if (++errors > DIAG_MOST)
        return;
    va_list args;
    va_start(args, format);
    print_at(at, "error: ", format, args);
    va_end(args);
    if (at.file)
        print_line(at);
}

void note_at(struct where at, const char *format, ...)
{
    if (errors > DIAG_MOST)
        return;
    va_list args;
    va_start(args, format);
    print_at(at, "", format, args);
    va_end(args);
    if (at.file && (at.file != shown.file || at.line != shown.line || at.col != shown.col))
        print_line(at);
}

unsigned error_count(void)
{
    return errors;
}

const char *errors_forget(void)
{
    const char *all = said;
    said = NULL;
    errors = 0;
    shown = (struct where){0};
    return all;
}

void errors_end(void)
{
    if (errors > DIAG_MOST)
        message("... and %u more error%s\n", errors - DIAG_MOST, errors == DIAG_MOST + 1 ? "" : "s");
    if (errors)
        fail_exit(STATUS_WRONG_USE);
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* The edit distance of Damerau and Levenshtein between names of at most NAME_MOST characters. */
static unsigned edits(const char *a, const char *b)
{
    unsigned rows[3][NAME_MOST + 1], *before = rows[0], *above = rows[1], *row = rows[2];
    size_t width = strlen(b);
    for (size_t j = 0; j <= width; j++)
        above[j] = (unsigned)j;
    for (size_t i = 1; a[i - 1]; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= width; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        unsigned *oldest = before;
        before = above, above = row, row = oldest;
    }
    return above[width];
}

const char *nearest_name(const char *name, const char *const *names, size_t count)
{
    size_t length = strnlen(name, NAME_MOST + 1);
    const char *nearest = NULL;
    unsigned fewest = length < 3 ? 2 : (unsigned)length / 3 + 2;    /* a third of it may be wrong */
    for (size_t i = 0; i < count && length <= NAME_MOST; i++) {
        unsigned n = strlen(names[i]) <= NAME_MOST ? edits(name, names[i]) : fewest;
        if (n > 1 && length > 1 && !strncmp(name, names[i], length))
            n = 1;                                      /* the unit left out: one slip, however many letters */
        if (n < fewest)
            fewest = n, nearest = names[i];
    }
    return nearest;
}
