/* npy.c: NumPy's file format: headers as they may be and may not be, elements of any order, and random damage. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/npy.h"
#include "common/arena.h"
#include "tap.h"

struct bytes {
    uint8_t at[600];
    size_t count;
};

static void add(struct bytes *to, const void *from, size_t count)
{
    memcpy(to->at + to->count, from, count);
    to->count += count;
}

/* A file of a version with a dict, which 0-terminates, and elements. */
static struct bytes file_of(unsigned version, const char *dict, const void *elements, size_t bytes)
{
    struct bytes made = {{0}, 0};
    uint8_t start[] = {0x93, 'N', 'U', 'M', 'P', 'Y', (uint8_t)version, 0};
    uint8_t length[] = {(uint8_t)strlen(dict), (uint8_t)(strlen(dict) >> 8), 0, 0};
    add(&made, start, sizeof start);
    add(&made, length, version == 1 ? 2 : 4);
    add(&made, dict, strlen(dict));
    add(&made, elements, bytes);
    return made;
}

/* Reads all of it; true: it is good. */
static bool read_file_of(const struct bytes *file, struct npy *npy, void *to, size_t room, struct npy_error *error)
{
    FILE *in = fmemopen((void *)file->at, file->count, "rb");
    bool good = npy_read_header(in, npy, error) && npy->elements * npy->bytes <= room &&
                npy_read_elements(in, npy, to, error);
    fclose(in);
    return good;
}

#define REST "'fortran_order': False, 'shape': (2, 3), }"
#define DICT "{'descr': '<i2', " REST

/* ---- correct files */

static void gives(unsigned version, const char *dict, const char *what)
{
    static const int16_t little[] = {1, -2, 3, -4, 5, -6};
    static const uint8_t big[] = {0, 1, 255, 254, 0, 3, 255, 252, 0, 5, 255, 250};
    static const int16_t turned[] = {1, -4, -2, 5, 3, -6};
    bool is_big = strchr(dict, '>'), fortran = strstr(dict, "True");
    struct bytes file = file_of(version, dict, is_big ? (const void *)big : fortran ? turned : little, sizeof little);
    struct npy npy;
    struct npy_error error;
    int16_t got[6];
    bool good = read_file_of(&file, &npy, got, sizeof got, &error) && npy.rank == 2 && npy.shape[0] == 2 &&
                npy.shape[1] == 3 && !memcmp(got, little, sizeof got);
    if (!expect(good, "%s", what))
        printf("# byte %lu: %s\n", (unsigned long)error.at, error.what ? error.what : "nothing is wrong");
}

static void well_formed(void)
{
    gives(1, DICT "     \n", "a header of version 1.0 is read");
    gives(2, DICT "     \n", "a header of version 2.0 is read");
    gives(3, DICT, "a header of version 3.0 without padding is read");
    gives(1, "{'descr': '>i2', " REST "\n", "big-endian elements are read");
    gives(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }\n", "elements in Fortran order are read");
    gives(1, "{\"shape\":(2L,3L),'fortran_order':False,'descr':\"<i2\"}",
          "a header with its keys in another order is read");
    gives(1, " { 'descr' : '<i2' ,\n'fortran_order'\t: False, 'shape': ( 2 , 3 , ) } ",
          "a header with blanks everywhere is read");
}

/* ---- mistakes */

static void refused(const char *dict, uint64_t at, const char *what)
{
    struct bytes file = file_of(1, dict, "abcdefghijkl", 12);
    struct npy npy;
    struct npy_error error;
    char got[64];
    bool good = read_file_of(&file, &npy, got, sizeof got, &error);
    char name[120];
    snprintf(name, sizeof name, "a header with a mistake is refused at its byte %lu: %s", (unsigned long)at, what);
    if (!expect(!good && error.at == at && error.what && strstr(error.what, what), "%s", name))
        printf("# %s: byte %lu: %s\n", dict, (unsigned long)error.at, error.what ? error.what : "nothing is wrong");
}

static void malformed(void)
{
    refused("", 10, "'{' is expected here");
    refused("['descr']", 10, "'{' is expected here");
    refused("{'descr': '<f3', " REST, 20, "dtype '<f3' is not supported");
    refused("{'descr': '=i2', " REST, 20, "dtype '=i2' is not supported");
    refused("{'descr': '|i2', " REST, 20, "dtype '|i2' is not supported");
    refused("{'descr': '<f16', " REST, 20, "dtype '<f16' is not supported");
    refused("{'descr': '|O', " REST, 20, "dtype '|O' is not supported");
    refused("{'descr': '<U12345678', " REST, 20, "this text is not known");
    refused("{'descr': '', " REST, 20, "dtype '' is not supported");
    refused("{'descr': [('x', '<f4')], " REST, 20, "elements are records");
    refused("{'descr': 4, " REST, 20, "a text in quotes is expected here");
    refused("{'descr': '<i2, 1", 20, "a text that does not end");
    refused("{'descr': '<i2' " REST, 26, "',' or '}' is expected here");
    refused("{'descr' '<i2', " REST, 19, "':' is expected here");
    refused("{'order': 'C', " REST, 11, "there is no key 'order'");
    refused("{'descr': '<i2', 'descr': '<i2', " REST, 27, "'descr' is given twice");
    refused("{" REST, 52, "'descr' is missing");
    refused("{'descr': '<i2', 'fortran_order': 0, 'shape': (2, 3)}", 44, "True or False is expected here");
    refused("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3)", 66, "',' or '}' is expected here");
    refused("{'descr': '<i2', 'fortran_order': False, 'shape': [2, 3]}", 60, "'(' is expected here");
    refused("{'descr': '<i2', 'fortran_order': False, 'shape': (6)}", 60, "a shape of one axis must have a comma");
    refused("{'descr': '<i2', 'fortran_order': False, 'shape': (2 3)}", 63, "',' or ')' is expected here");
    refused("{'descr': '<i2', 'fortran_order': False, 'shape': (2,-3)}", 63, "a whole number below 10^18");
    refused("{'descr': '<i2', 'fortran_order': False, 'shape': (02, 3)}", 61, "a whole number below 10^18");
    refused("{'descr': '<i2', 'fortran_order': False, 'shape': (99999999999, 99999999999)}", 60, "2^60 elements");
    refused(DICT " x", 10 + sizeof DICT, "the header goes on after its dict");
    refused("{'descr': '<i2', 'fortran_order': False, 'shape': (7,)}", 10 + 55 + 12, "the file ends");
    refused("{'descr': '<i2', 'fortran_order': False, 'shape': (5,)}", 10 + 55 + 10, "more bytes than the 10 of");
}

/* ---- damage: no byte of a file, and no end of it, does more than give an error at a place of the file */

static void damaged(void)
{
    static const char bits[] = "{}()[],:'\"0129L<>|fiub \n\0\xff";
    bool good = true;
    unsigned accepted = 0;
    srand(7);
    for (int round = 0; round < 20000; round++) {
        struct bytes file = file_of(1 + (unsigned)round % 3, DICT "   \n", "abcdefghijkl", 12);
        for (int change = rand() % 3; change >= 0; change--)
            file.at[(size_t)rand() % file.count] = (uint8_t)bits[(size_t)rand() % (sizeof bits - 1)];
        if (round % 5 == 0)
            file.count = 1 + (size_t)rand() % file.count;
        struct npy npy;
        struct npy_error error = {0};
        char got[512];
        struct arena_mark mark = arena_mark();
        bool taken = read_file_of(&file, &npy, got, sizeof got, &error);
        accepted += taken;
        good &= taken || (error.what ? error.at <= file.count : npy.elements * npy.bytes > sizeof got);
        arena_release(mark);
    }
    expect(good && accepted > 100 && accepted < 19900,
           "a damaged file is read or gives an error with a byte of the file");
}

static void written(void)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    npy_write_header(out, "<f4", 3, (const uint64_t[]){1000, 2, 30});
    fclose(out);
    FILE *in = fmemopen(text, length, "rb");
    struct npy npy;
    struct npy_error error;
    expect(npy_read_header(in, &npy, &error) && length % 64 == 0 && npy.data_at == length && text[length - 1] == '\n' &&
           npy.rank == 3 && npy.elements == 60000 && npy.kind == 'f' && npy.bytes == 4 && !npy.fortran,
           "a written header can be read, and elements begin at a multiple of 64");
    fclose(in);
    free(text);
}

int main(void)
{
    well_formed();
    malformed();
    damaged();
    written();
    return tests_end();
}
