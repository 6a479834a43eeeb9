/* npy.c: reads and writes NumPy's file format.
 *
 * The header is a Python literal: a dict with three keys in any order, each once, and quotes of either kind. Nothing
 * else that Python could evaluate is accepted. */
#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/fail.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements in memory are little-endian");

enum {
    MOST_HEADER = 1 << 16,                              /* bytes; the header of an array of numbers has about 100 */
    HEADER_UNIT = 64,                                   /* elements begin at a multiple of it */
};

struct npy_cursor {
    const char *text;                                   /* 0-terminated */
    size_t at, length;
    uint64_t start;                                     /* offset of the text in the file */
    struct npy_error *error;
};

/* ---- tokens of the header; the first error is reported */

static bool wrong_at(struct npy_cursor *c, size_t at, const char *what)
{
    if (!c->error->what)
        *c->error = (struct npy_error){c->start + at, what};
    return false;
}

static char next_char(struct npy_cursor *c)
{
    c->at += strspn(c->text + c->at, " \t\r\n");
    return c->text[c->at];
}

static bool take(struct npy_cursor *c, char wanted)
{
    bool found = next_char(c) == wanted;
    c->at += found;
    return found;
}

static bool need(struct npy_cursor *c, char wanted)
{
    return take(c, wanted) || wrong_at(c, c->at, arena_printf("'%c' is expected here", wanted));
}

/* Reads a quoted text of at most `most` characters, and ends it with 0. */
static bool text_read(struct npy_cursor *c, char *out, size_t most)
{
    char quote = next_char(c);
    if (quote != '\'' && quote != '"')
        return wrong_at(c, c->at, "a text in quotes is expected here");
    const char *text = c->text + c->at + 1, *end = strchr(text, quote);
    if (!end)
        return wrong_at(c, c->at, "a text that does not end");
    if ((size_t)(end - text) > most)
        return wrong_at(c, c->at, "this text is not known");
    memcpy(out, text, (size_t)(end - text));
    out[end - text] = 0;
    c->at += (size_t)(end - text) + 2;
    return true;
}

/* Reads a size; Python 2 wrote an L behind it. */
static bool size_read(struct npy_cursor *c, uint64_t *size)
{
    next_char(c);
    const char *digits = c->text + c->at;
    size_t count = strspn(digits, "0123456789");
    if (count == 0 || count > 18 || (count > 1 && digits[0] == '0'))
        return wrong_at(c, c->at, "a whole number below 10^18 is expected here");
    *size = strtoull(digits, NULL, 10);
    c->at += count + (digits[count] == 'L');
    return true;
}

/* ---- the three entries of the header */

static bool descr_read(struct npy_cursor *c, struct npy *npy)
{
    next_char(c);
    size_t at = c->at;
    if (c->text[at] == '[')
        return wrong_at(c, at, "elements are records; each must be one number");
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

static bool order_read(struct npy_cursor *c, struct npy *npy)
{
    next_char(c);
    for (unsigned i = 0; i < 2; i++) {
        const char *word = i ? "True" : "False";
        if (strncmp(c->text + c->at, word, strlen(word)))
            continue;
        c->at += strlen(word);
        npy->fortran = i;
        return true;
    }
    return wrong_at(c, c->at, "True or False is expected here");
}

/* Reads a tuple: (), (3,), (3, 4), (3, 4,). */
static bool shape_read(struct npy_cursor *c, struct npy *npy)
{
    next_char(c);
    size_t at = c->at;
    npy->shape_at = c->start + at;
    npy->elements = 1;
    if (!need(c, '('))
        return false;
    bool comma = true;
    while (!take(c, ')')) {
        if (!comma)
            return wrong_at(c, c->at, "',' or ')' is expected here");
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

static const struct npy_entry {
    const char *key;
    bool (*read)(struct npy_cursor *c, struct npy *npy);
} entries[] = {{"descr", descr_read}, {"fortran_order", order_read}, {"shape", shape_read}};

/* Reads a key and its value. */
static bool entry_read(struct npy_cursor *c, struct npy *npy, bool *seen)
{
    char key[16];
    next_char(c);
    size_t at = c->at;
    if (!text_read(c, key, sizeof key - 1))
        return false;
    for (size_t i = 0; i < COUNT_OF(entries); i++) {
        if (strcmp(key, entries[i].key))
            continue;
        if (seen[i])
            return wrong_at(c, at, arena_printf("'%s' is given twice", key));
        seen[i] = true;
        return need(c, ':') && entries[i].read(c, npy);
    }
    return wrong_at(c, at, arena_printf("there is no key '%s'; descr, fortran_order and shape are", key));
}

static bool dict_read(struct npy_cursor *c, struct npy *npy)
{
    bool seen[COUNT_OF(entries)] = {0}, comma = true;
    if (!need(c, '{'))
        return false;
    while (!take(c, '}')) {
        if (!comma)
            return wrong_at(c, c->at, "',' or '}' is expected here");
        if (!entry_read(c, npy, seen))
            return false;
        comma = take(c, ',');
    }
    for (size_t i = 0; i < COUNT_OF(entries); i++)
        if (!seen[i])
            return wrong_at(c, c->at - 1, arena_printf("'%s' is missing", entries[i].key));
    next_char(c);
    return c->at == c->length || wrong_at(c, c->at, "the header goes on after its dict");
}

/* ---- the file up to the elements */

/* Reads bytes from the current position of the file, which is `at`. */
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
        *error = (struct npy_error){0, "not a NumPy file: it does not begin with \"\\x93NUMPY\""};
        return false;
    }
    if (start[6] < 1 || start[6] > 3 || start[7] != 0) {
        *error = (struct npy_error){6, arena_printf("version %u.%u; 1.0, 2.0 and 3.0 are supported", start[6],
                                                    start[7])};
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
    struct npy_cursor cursor = {.text = text, .length = length, .start = 8 + width, .error = error};
    return bytes_read(in, text, length, cursor.start, error) && dict_read(&cursor, npy);
}

/* ---- elements */

static void swap_bytes(uint8_t *at, uint64_t elements, uint32_t bytes)
{
    for (uint64_t i = 0; i < elements; i++, at += bytes)
        for (uint32_t low = 0, high = bytes - 1; low < high; low++, high--) {
            uint8_t byte = at[low];
            at[low] = at[high];
            at[high] = byte;
        }
}

/* Turns Fortran order, in which the first axis runs fastest, into C order. */
static void make_row_major(const struct npy *npy, const uint8_t *from, uint8_t *to)
{
    uint64_t index[NPY_RANK] = {0}, stride[NPY_RANK], bytes = npy->bytes, at = 0;
    for (uint32_t axis = 0; axis < npy->rank; axis++)
        stride[axis] = axis ? stride[axis - 1] * npy->shape[axis - 1] : 1;
    for (uint64_t i = 0; i < npy->elements; i++) {
        memcpy(to + i * bytes, from + at * bytes, bytes);
        for (uint32_t axis = npy->rank; axis-- > 0;) {
            at += stride[axis];
            if (++index[axis] < npy->shape[axis])
                break;
            at -= stride[axis] * npy->shape[axis];
            index[axis] = 0;
        }
    }
}

static bool read_all(FILE *in, const struct npy *npy, uint8_t *to, struct npy_error *error)
{
    uint64_t bytes = npy->elements * npy->bytes, got = fread(to, 1, bytes, in);
    const char *shape = npy_shape_name(npy->rank, npy->shape);
    *error = (struct npy_error){npy->data_at + got, NULL};
    if (got < bytes)
        error->what = arena_printf("the file ends; a shape of %s has %" PRIu64 " bytes from byte %" PRIu64 " on", shape,
                                   bytes, npy->data_at);
    else if (getc(in) != EOF)
        error->what = arena_printf("more bytes than the %" PRIu64 " of a shape of %s", bytes, shape);
    return !error->what;
}

bool npy_read_elements(FILE *in, const struct npy *npy, void *to, struct npy_error *error)
{
    bool reorder = npy->fortran && npy->rank > 1;
    uint8_t *read = reorder ? malloc(npy->elements * npy->bytes + 1) : to;
    if (!read)
        die("no memory for an array of %" PRIu64 " elements:", npy->elements);
    bool good = read_all(in, npy, read, error);
    if (good && npy->big_endian)
        swap_bytes(read, npy->elements, npy->bytes);
    if (good && reorder)
        make_row_major(npy, read, to);
    if (reorder)
        free(read);
    return good;
}

/* ---- writing */

const char *npy_shape_name(uint32_t rank, const uint64_t *shape)
{
    const char *name = "(";
    for (uint32_t axis = 0; axis < rank; axis++)
        name = arena_printf("%s%s%" PRIu64, name, axis ? ", " : "", shape[axis]);
    return arena_printf("%s%s)", name, rank == 1 ? "," : "");
}

void npy_write_header(FILE *out, const char *descr, uint32_t rank, const uint64_t *shape)
{
    static const uint8_t start[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    const char *text = arena_printf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr,
                                    npy_shape_name(rank, shape));
    size_t before = sizeof start + 2, all = before + strlen(text) + 1;
    all = (all + HEADER_UNIT - 1) / HEADER_UNIT * HEADER_UNIT;
    uint8_t length[] = {(uint8_t)(all - before), (uint8_t)((all - before) >> 8)};
    fwrite(start, 1, sizeof start, out);
    fwrite(length, 1, sizeof length, out);
    fprintf(out, "%-*s\n", (int)(all - before - 1), text);
}
