/* npy.c: NumPy's file format: what comes before the elements is in npy_header.c, here are the elements, and what is
 * written. */
#include "npy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/diag.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are little-endian ones");

enum { HEADER_UNIT = 64 };                              /* where elements begin is a multiple of this */

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

/* From the order in which the first axis runs fastest to the one in which the last does. */
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
    bool turn = npy->fortran && npy->rank > 1;
    uint8_t *read = turn ? malloc(npy->elements * npy->bytes + 1) : to;
    if (!read)
        die("no memory for an array of %" PRIu64 " elements:", npy->elements);
    bool good = read_all(in, npy, read, error);
    if (good && npy->big_endian)
        swap_bytes(read, npy->elements, npy->bytes);
    if (good && turn)
        make_row_major(npy, read, to);
    if (turn)
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
