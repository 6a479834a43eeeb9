/* runs.c: runs of random views, and what two of them have in common, against sets of bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/emitted.h"
#include "machine/tiling.h"
#include "store/view.h"
#include "tap.h"

const struct shape kb_shape = {.sips = 1, .cubes = 1, .pes = 4, .slices = 4, .srams = 1};
const struct attrs kb_attrs = {.hbm_slice_bytes = 1 << 30, .sram_bytes = 1 << 20, .pe_tcm_size_bytes = 1 << 20};

enum { BYTES = 1 << 14, TIMES = 20000 };

/* Axes in any order; most reach beyond those within them, some lie over one another, some repeat. */
static struct view random_view(void)
{
    static const enum dtype dtypes[] = {DTYPE_u8, DTYPE_f16, DTYPE_f32};
    struct view view = {.dtype = dtypes[rand() % 3], .rank = 4, .shape = {1, 1, 1, 1}};
    unsigned order[] = {0, 1, 2, 3};
    uint64_t span = 1;
    for (unsigned i = 3; i > 0; i--) {
        unsigned j = (unsigned)rand() % (i + 1), axis = order[i];
        order[i] = order[j];
        order[j] = axis;
    }
    for (unsigned i = 0; i < 4; i++) {
        uint64_t size = (uint64_t)rand() % 5 + 1, gap = rand() % 2 ? 0 : (uint64_t)rand() % 5;
        view.shape[order[i]] = size;
        view.stride[order[i]] = rand() % 20 == 0 ? (uint64_t)rand() % 4 : span + gap;
        span += (size - 1) * view.stride[order[i]];
    }
    view.offset = dtype_bytes[view.dtype] * ((uint64_t)rand() % 200);
    return view;
}

static void mark(uint64_t offset, uint64_t bytes, void *set)
{
    memset((char *)set + offset, 1, bytes);
}

/* Whether runs are what is in the set, each as long as it can be. */
static bool are_runs(const struct runs *runs, const struct view *view, const char *set)
{
    static struct address_run list[BYTES];
    char again[BYTES] = {0};
    uint64_t end = 0, number = runs_number(runs);
    runs_list(runs, view->offset, false, list);
    for (uint64_t i = 0; i < number; i++) {
        if (list[i].bytes == 0 || (i && list[i].address <= end))
            return false;
        end = list[i].address + list[i].bytes;
        memset(again + list[i].address, 1, list[i].bytes);
    }
    return end == view->offset + runs_span(runs) && !memcmp(again, set, BYTES);
}

static uint64_t held(const char *set)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < BYTES; i++)
        bytes += (uint64_t)set[i];
    return bytes;
}

static bool lies_over_itself(const struct view *view, const char *set)
{
    return held(set) != view_bytes_of(view);
}

int main(void)
{
    bool right = true, refused = true, dense = true, found = true, first_one = true;
    for (int i = 0; i < TIMES; i++) {
        char x_set[BYTES] = {0}, y_set[BYTES] = {0};
        struct view x = random_view(), y = random_view();
        struct runs x_runs, y_runs;
        view_each_run(&x, mark, x_set);
        view_each_run(&y, mark, y_set);
        bool x_apart = runs_of(&x_runs, x.shape, x.stride, dtype_bytes[x.dtype]);
        bool y_apart = runs_of(&y_runs, y.shape, y.stride, dtype_bytes[y.dtype]);
        right &= !x_apart || are_runs(&x_runs, &x, x_set);
        refused &= !x_apart || !lies_over_itself(&x, x_set);
        dense &= view_is_dense(&x) == (!lies_over_itself(&x, x_set) && held(x_set) == view_span(&x));
        if (!x_apart || !y_apart)
            continue;
        uint64_t first = 0, end = 0, want = 0;
        while (want < BYTES && !(x_set[want] && y_set[want]))
            want++;
        bool meet = views_meet(&x, &y, &first, &end);
        found &= meet == (want < BYTES);
        for (uint64_t at = first; meet && at < end; at++)
            first_one &= x_set[at] && y_set[at];
        first_one &= !meet || (first == want && end > first);
    }
    expect(right, "the runs of a view are all its bytes, in order of address, and maximal");
    expect(refused, "elements that overlap are found");
    expect(dense, "a view without gaps and overlaps is one run");
    expect(found, "views with common bytes are found");
    expect(first_one, "the first common byte of two views is found");
    return tests_end();
}
