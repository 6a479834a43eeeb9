/* npy_header.c: what comes before the elements of a NumPy file: magic, version, length, and a dict of three entries.
 *
 * The dict is a Python literal as NumPy and its like write it: the keys in any order, none twice, none missing; quotes
 * of either kind; nothing else that Python could evaluate. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"
#include "common/arena.h"

enum { MOST_HEADER = 1 << 16 };                         /* an array of numbers has one of some hundred bytes */

struct cursor {
    const char *text;                                   /* 0-terminated */
    size_t at, length;
    uint64_t start;                                     /* offset of the text in the file */
    struct npy_error *error;
};

/* ---- tokens; what is wrong first is what is said */

static bool wrong_at(struct cursor *c, size_t at, const char *what)
{
    if (!c->error->what)
        *c->error = (struct npy_error){c->start + at, what};
    return false;
}

static char next(struct cursor *c)
{
    c->at += strspn(c->text + c->at, " \t\r\n");
    return c->text[c->at];
}

static bool take(struct cursor *c, char wanted)
{
    bool found = next(c) == wanted;
    c->at += found;
    return found;
}

static bool need(struct cursor *c, char wanted)
{
    return take(c, wanted) || wrong_at(c, c->at, arena_printf("'%c' must stand here", wanted));
}

/* A text of at most so many characters, to `out` with its 0. */
static bool text_read(struct cursor *c, char *out, size_t most)
{
    char quote = next(c);
    if (quote != '\'' && quote != '"')
        return wrong_at(c, c->at, "a text in quotes must stand here");
    const char *text = c->text + c->at + 1, *end = strchr(text, quote);
    if (!end)
        return wrong_at(c, c->at, "a text that does not end");
    if ((size_t)(end - text) > most)
        return wrong_at(c, c->at, "this text is none that is known");
    memcpy(out, text, (size_t)(end - text));
    out[end - text] = 0;
    c->at += (size_t)(end - text) + 2;
    return true;
}

/* A size; Python 2 put an L behind it. */
static bool size_read(struct cursor *c, uint64_t *size)
{
    next(c);
    const char *digits = c->text + c->at;
    size_t count = strspn(digits, "0123456789");
    if (count == 0 || count > 18 || (count > 1 && digits[0] == '0'))
        return wrong_at(c, c->at, "a whole number below 10^18 must stand here");
    *size = strtoull(digits, NULL, 10);
    c->at += count + (digits[count] == 'L');
    return true;
}

/* ---- the three entries */

static bool descr_read(struct cursor *c, struct npy *npy)
{
    next(c);
    size_t at = c->at;
    if (c->text[at] == '[')
        return wrong_at(c, at, "elements are records; one number each is possible");
    if (!text_read(c, npy->descr, NPY_DESCR))
        return false;
    const char *descr = npy->descr, *digits = descr[0] && descr[1] ? descr + 2 : "";
    npy->descr_at = c->start + at;
    npy->big_endian = descr[0] == '>';
    npy->kind = descr[0] ? descr[1] : 0;
    npy->bytes = strlen(digits) == 1 && strchr("1248", *digits) ? (uint32_t)(*digits - '0') : 0;
    bool ordered = descr[0] == '<' || descr[0] == '>' || (descr[0] == '|' && (npy->bytes == 1 || npy->kind == 'V'));
    if (!ordered || !npy->bytes || !npy->kind || !strchr("fiubV", npy->kind))
        return wrong_at(c, at, arena_printf("dtype '%s' is not supported: numbers of 1, 2, 4 or 8 bytes are, such as "
                                            "'<f4'", descr));
    return true;
}

static bool order_read(struct cursor *c, struct npy *npy)
{
    next(c);
    for (unsigned i = 0; i < 2; i++) {
        const char *word = i ? "True" : "False";
        if (strncmp(c->text + c->at, word, strlen(word)))
            continue;
        c->at += strlen(word);
        npy->fortran = i;
        return true;
    }
    return wrong_at(c, c->at, "True or False must stand here");
}

/* A tuple: (), (3,), (3, 4), (3, 4,). */
static bool shape_read(struct cursor *c, struct npy *npy)
{
    next(c);
    size_t at = c->at;
    npy->shape_at = c->start + at;
    npy->elements = 1;
    if (!need(c, '('))
        return false;
    bool comma = true;
    while (!take(c, ')')) {
        if (!comma)
            return wrong_at(c, c->at, "',' or ')' must stand here");
        if (npy->rank == NPY_RANK)
            return wrong_at(c, c->at, "more than 32 axes");
        if (!size_read(c, &npy->shape[npy->rank]))
            return false;
        if (__builtin_mul_overflow(npy->elements, npy->shape[npy->rank++], &npy->elements) || npy->elements >> 60)
            return wrong_at(c, at, "2^60 elements or more");
        comma = take(c, ',');
    }
    return npy->rank != 1 || comma || wrong_at(c, at, "a shape of one axis must have a comma: (3,)");
}

static const struct entry {
    const char *key;
    bool (*read)(struct cursor *c, struct npy *npy);
} entries[] = {{"descr", descr_read}, {"fortran_order", order_read}, {"shape", shape_read}};

/* A key of a dict and its value. */
static bool entry_read(struct cursor *c, struct npy *npy, bool *seen)
{
    char key[16];
    next(c);
    size_t at = c->at;
    if (!text_read(c, key, sizeof key - 1))
        return false;
    for (size_t i = 0; i < COUNT_OF(entries); i++) {
        if (strcmp(key, entries[i].key))
            continue;
        if (seen[i])
            return wrong_at(c, at, arena_printf("'%s' stands twice", key));
        seen[i] = true;
        return need(c, ':') && entries[i].read(c, npy);
    }
    return wrong_at(c, at, arena_printf("there is no key '%s'; descr, fortran_order and shape are", key));
}

static bool dict_read(struct cursor *c, struct npy *npy)
{
    bool seen[COUNT_OF(entries)] = {0}, comma = true;
    if (!need(c, '{'))
        return false;
    while (!take(c, '}')) {
        if (!comma)
            return wrong_at(c, c->at, "',' or '}' must stand here");
        if (!entry_read(c, npy, seen))
            return false;
        comma = take(c, ',');
    }
    for (size_t i = 0; i < COUNT_OF(entries); i++)
        if (!seen[i])
            return wrong_at(c, c->at - 1, arena_printf("'%s' is missing", entries[i].key));
    next(c);
    return c->at == c->length || wrong_at(c, c->at, "the header goes on after its dict");
}

/* ---- the file */

/* Reads so many bytes, to the file's offset `at`. */
static bool bytes_read(FILE *in, void *to, size_t bytes, uint64_t at, struct npy_error *error)
{
    size_t got = fread(to, 1, bytes, in);
    if (got < bytes)
        *error = (struct npy_error){at + got, ferror(in) ? strerror(errno) : "the file ends within its header"};
    return got == bytes;
}

bool npy_read_header(FILE *in, struct npy *npy, struct npy_error *error)
{
    uint8_t start[12];
    *npy = (struct npy){0};
    *error = (struct npy_error){0};
    if (!bytes_read(in, start, 8, 0, error))
        return false;
    if (memcmp(start, "\x93NUMPY", 6)) {
        *error = (struct npy_error){0, "no NumPy file: it does not begin with \"\\x93NUMPY\""};
        return false;
    }
    if (start[6] < 1 || start[6] > 3 || start[7] != 0) {
        *error = (struct npy_error){6, arena_printf("version %u.%u; 1.0, 2.0 and 3.0 are known", start[6], start[7])};
        return false;
    }
    size_t width = start[6] == 1 ? 2 : 4;
    if (!bytes_read(in, start + 8, width, 8, error))
        return false;
    uint64_t length = 0;
    for (size_t i = width; i-- > 0;)
        length = length << 8 | start[8 + i];
    npy->data_at = 8 + width + length;
    if (length > MOST_HEADER) {
        *error = (struct npy_error){8, arena_printf("a header of %" PRIu64 " bytes; an array of numbers has one of at "
                                                    "most %d", length, MOST_HEADER)};
        return false;
    }
    char *text = arena_alloc(length + 1, 1);
    struct cursor cursor = {.text = text, .length = length, .start = 8 + width, .error = error};
    return bytes_read(in, text, length, cursor.start, error) && dict_read(&cursor, npy);
}
