/* npy.h: NumPy's file format: versions 1.0, 2.0 and 3.0, either byte order, C and Fortran order.
 *
 * A file is "\x93NUMPY", two bytes of version, the header's length (2 bytes, 4 from version 2.0 on), the header, which
 * is a Python dict with `descr` (the dtype), `fortran_order` and `shape`, and the elements: numbers of 1, 2, 4 or 8
 * bytes. Records, texts and objects are refused. */
#ifndef KB_NPY_H
#define KB_NPY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { NPY_RANK = 32, NPY_DESCR = 8 };                  /* the most axes; the longest dtype, such as "<f4" */

struct npy {
    char descr[NPY_DESCR + 1];                          /* "<f4": byte order, kind, bytes */
    char kind;                                          /* f, i, u, b: bool, V: raw bytes */
    uint32_t bytes;                                     /* of an element */
    bool big_endian, fortran;
    uint32_t rank;                                      /* 0: one element */
    uint64_t shape[NPY_RANK], elements;
    uint64_t descr_at, shape_at, data_at;               /* offsets in the file */
};

/* What is wrong, and at which byte of the file. */
struct npy_error {
    uint64_t at;
    const char *what;
};

/* Reads everything before the elements. Returns false, and the reason in `error`, if it is not such a file. */
bool npy_read_header(FILE *in, struct npy *npy, struct npy_error *error);

/* Reads the elements, which follow the header up to the end of the file: row-major, in this machine's byte order. */
bool npy_read_elements(FILE *in, const struct npy *npy, void *to, struct npy_error *error);

/* "(3, 4)", as Python writes it. */
const char *npy_shape_name(uint32_t rank, const uint64_t *shape);

/* Writes everything before the elements of a row-major array: version 1.0, padded to a multiple of 64 bytes. */
void npy_write_header(FILE *out, const char *descr, uint32_t rank, const uint64_t *shape);

#endif
