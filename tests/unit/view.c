/* view.c: whether views have a byte in common, against sets of bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/emitted.h"
#include "machine/tiling.h"
#include "store/view.h"
#include "tap.h"

const struct shape kb_shape = {.sips = 1, .cubes = 1, .pes = 4, .slices = 4, .srams = 1};
const struct attrs kb_attrs = {.hbm_slice_bytes = 1 << 30, .sram_bytes = 1 << 20, .pe_tcm_size_bytes = 1 << 20};

enum { BYTES = 4096 };

static uint8_t taken[BYTES];

static void take(uint64_t offset, uint64_t bytes, void *arg)
{
    (void)arg;
    memset(taken + offset, 1, bytes);
}

static void look(uint64_t offset, uint64_t bytes, void *found)
{
    *(bool *)found |= memchr(taken + offset, 1, bytes) != NULL;
}

static bool share(const struct view *x, const struct view *y)
{
    bool found = false;
    memset(taken, 0, sizeof taken);
    view_each_run(x, take, NULL);
    view_each_run(y, look, &found);
    return found;
}

/* Up to four axes with strides that hold, or do not hold, what lies within them. */
static struct view any_view(void)
{
    struct view v;
    do {
        v = (struct view){.memory = 0, .dtype = (enum dtype)below(DTYPES), .rank = VIEW_RANK};
        v.offset = below(BYTES / 8) * 4;
        for (unsigned axis = 0; axis < VIEW_RANK; axis++) {
            v.shape[axis] = 1 + below(3) * below(3);
            v.stride[axis] = below(40);
        }
    } while (v.offset + view_span(&v) > BYTES);
    return v;
}

/* A part of the columns of a matrix. */
static struct view columns(uint64_t first, uint64_t count)
{
    return view_matrix(0, DTYPE_f16, 64 + 2 * first, 10, count, 24);
}

int main(void)
{
    bool never_missed = true, exact = true;
    unsigned apart = 0;
    for (int i = 0; i < 20000; i++) {
        struct view x = any_view(), y = any_view();
        bool said = view_overlap(&x, &y);
        never_missed &= said || !share(&x, &y);
        apart += !said;
    }
    expect(never_missed && apart > 1000, "views that are said to lie apart have no common byte");
    for (uint64_t i = 0; i < 24; i++)
        for (uint64_t j = 0; j < 24; j++) {
            struct view x = columns(i, 1 + below(24 - i)), y = columns(j, 1 + below(24 - j));
            exact &= view_overlap(&x, &y) == share(&x, &y);
        }
    expect(exact, "columns of one matrix lie apart exactly if they differ");
    struct view x = columns(3, 5), other = x;
    other.memory = 1;
    expect(!view_overlap(&x, &other), "views of different memories lie apart");
    return tests_end();
}
