/* rows.c: rows by their numbers, from tensors and shards wherever they lie, and back; prints tensors before and after. */
#include <kb/host.h>
#include <kb/tl.h>

#include <stdio.h>
#include <string.h>

enum { COLUMNS = 12, VA = 1 << 20, PAGE = 4096 };

struct rows_args { kb_tensor from, to, scratch; uint64_t rows, count; const char *form; bool async; };

/* Row i of a PE's list: some follow each other. */
static int32_t row_of(uint64_t pe, uint64_t i, uint64_t rows)
{
    return (int32_t)((7 * pe + 5 * (i / 3) + i % 3 + i % 3 / 2 * 3) % rows);
}

static void load(struct tl *tl, bool async, struct tl_shard to, struct tl_rows from, const int32_t *row)
{
    if (async)
        tl_wait(tl, tl_load_rows_async(tl, to, from, row));
    else
        tl_load_rows(tl, to, from, row);
}

KB_KERNEL(listed_rows, struct rows_args)
{
    const char *form = arg->form;
    struct tl_shard y = tl_my_shard(tl, arg->to);
    int32_t row[64];
    for (uint64_t i = 0; i < arg->count; i++)
        row[i] = row_of(tl_pe(tl), i, arg->rows);
    struct tl_shard wide = tl_alloc(tl, y.dtype, arg->count, 2 * COLUMNS), buffer = tl_every(tl, wide, 1, 1, 2);
    if (!strcmp(form, "tensor")) {
        load(tl, arg->async, buffer, TL_ROWS(arg->from), row);
    } else if (!strcmp(form, "part")) {                 /* columns 2 to 6, then the rest */
        load(tl, arg->async, tl_part(tl, buffer, 1, 2, 5), tl_rows_part(arg->from, 2, 5), row);
        load(tl, arg->async, tl_part(tl, buffer, 1, 0, 2), tl_rows_part(arg->from, 0, 2), row);
        load(tl, arg->async, tl_part(tl, buffer, 1, 7, 5), tl_rows_part(arg->from, 7, 5), row);
    } else if (!strcmp(form, "shard")) {                /* the columns apart, each a run */
        struct tl_shard all = tl_shard(tl, arg->from, 0);
        for (uint64_t odd = 0; odd < 2; odd++)
            load(tl, arg->async, tl_every(tl, buffer, 1, odd, 2), TL_ROWS(tl_every(tl, all, 1, odd, 2)), row);
    } else if (!strcmp(form, "pending")) {              /* of results: y's rows hold twice those of this PE */
        struct tl_shard own = tl_my_shard(tl, arg->scratch), x = tl_load(tl, tl_shard(tl, arg->from, 0));
        tl_add(tl, x, x, x);
        tl_store(tl, own, x);
        load(tl, arg->async, buffer, TL_ROWS(own), row);
    } else if (!strcmp(form, "tcm")) {
        struct tl_shard x = tl_load(tl, tl_shard(tl, arg->from, 0));
        load(tl, arg->async, buffer, TL_ROWS(x), row);
    } else {                                            /* "store": row i to row 3 i + the PE's place, of all rows */
        struct tl_shard x = tl_load(tl, tl_part(tl, tl_shard(tl, arg->scratch, 0), 0, 0, arg->count));
        tl_load_into(tl, buffer, tl_part(tl, tl_shard(tl, arg->scratch, 0), 0, 0, arg->count));
        for (uint64_t i = 0; i < arg->count; i++)
            row[i] = (int32_t)((arg->count - 1 - i) * tl_num_pes(tl) + tl_pe(tl));
        if (arg->async)
            tl_wait(tl, tl_store_rows_async(tl, arg->to, row, buffer));
        else
            tl_store_rows(tl, arg->to, row, x);
        return;
    }
    tl_store(tl, y, buffer);
}

static void print_tensor(const char *name, kb_tensor tensor, uint64_t count)
{
    printf("%s", name);
    for (uint64_t i = 0; i < count; i++)
        printf(" %a", kb_peek(tensor, i));
    printf("\n");
}

KB_BENCH(listed_rows, "rows by their numbers", KB_WORD(form, "tensor part shard pending tcm store", ""),
         KB_WORD(split, "rows copies whole", "of what is read"), KB_WORD(dtype, "f32 f16 i32 i8 u8", ""),
         KB_WORD(space, "hbm sram tcm", ""), KB_INT(rows, 23, 1, 1000, ""), KB_INT(count, 9, 1, 64, "rows of a list"),
         KB_BOOL(async, false, ""), KB_TEXT(pes, "*", ""))
{
    struct kb_pes pes = kb_pes(kb_text(pes)), one = {pes.pe + pes.count / 2, 1};
    char space = kb_word(space)[0], split = kb_word(split)[0];
    enum kb_space of = space == 'h' ? KB_HBM : space == 's' ? KB_SRAM : KB_TCM;
    struct kb_place place = split == 'r' ? kb_rows(of, pes) : split == 'c' ? kb_copies(of, pes) : kb_on(of, one);
    uint64_t rows = kb_int(rows), count = kb_int(count);
    struct kb_dims dims = kb_2d(rows, COLUMNS);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    struct rows_args args = {.rows = rows, .count = count, .form = kb_word(form), .async = kb_bool(async)};
    args.from = kb_tensor_new("from", dtype, dims, place);
    args.to = kb_tensor_new("to", dtype, kb_2d(pes.count * count, COLUMNS), kb_rows(KB_HBM, pes));
    args.scratch = kb_tensor_new("scratch", dtype, dims, kb_copies(KB_HBM, pes));
    kb_fill_uniform(args.from, 0, 50);
    kb_fill_uniform(args.scratch, 0, 50);
    kb_wait(kb_launch(listed_rows, pes, &args));
    print_tensor("from", args.from, rows * COLUMNS);
    print_tensor("scratch", args.scratch, rows * COLUMNS);
    print_tensor("to", args.to, pes.count * count * COLUMNS);
}

/* ---- times: rows at one distance are a strided view; rows that follow each other are a part */

struct timed_args { kb_tensor x; uint64_t step; bool listed, stores; };

KB_KERNEL(timed_rows, struct timed_args)
{
    struct tl_shard x = tl_shard(tl, arg->x, tl_shards(arg->x) - 1), buffer = tl_alloc(tl, x.dtype, 16, x.shape[1]);
    struct tl_shard view = tl_part(tl, tl_every(tl, x, 0, 1, arg->step), 0, 0, 16);
    int32_t row[16];
    for (uint64_t i = 0; i < 16; i++)
        row[i] = (int32_t)(1 + i * arg->step);
    if (arg->listed && arg->stores)
        tl_store_rows(tl, x, row, buffer);
    else if (arg->listed)
        tl_load_rows(tl, buffer, x, row);
    else if (arg->stores)
        tl_store(tl, view, buffer);
    else
        tl_load_into(tl, buffer, view);
}

KB_BENCH(timed_rows, "the time of listed rows", KB_INT(step, 3, 1, 3, ""), KB_BOOL(listed, false, ""),
         KB_BOOL(stores, false, ""))
{
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_2d(200, 700), kb_rows(KB_HBM, kb_pes("*")));
    kb_wait(kb_launch(timed_rows, kb_pes("sip0.cube0.pe0"),
                      &(struct timed_args){x, kb_int(step), kb_bool(listed), kb_bool(stores)}));
}

/* ---- pages */

struct rows_of_pages_args { kb_tensor to; uint64_t mapped; };

KB_KERNEL(rows_of_pages, struct rows_of_pages_args)
{
    struct tl_shard y = tl_my_shard(tl, arg->to), buffer = tl_alloc(tl, KB_u8, 6, 1000);
    struct tl_shard x = {.dtype = KB_u8, .rank = 2, .shape = {12, 1000}, .stride = {1000, 1}};
    const int32_t row[] = {11, 3, 4, 5, 0, (int32_t)arg->mapped};
    tl_load_rows(tl, buffer, tl_virtual(x, VA), row);
    tl_store(tl, y, buffer);
}

KB_BENCH(rows_of_pages, "rows of pages that lie apart", KB_INT(mapped, 8, 8, 12, "the last row"))
{
    struct kb_pes pe = kb_pes("sip0.cube0.pe0"), far = kb_pes("sip0.cube1.pe1");
    kb_tensor page[3], to = kb_tensor_new("to", KB_u8, kb_2d(6, 1000), kb_on(KB_HBM, pe));
    for (uint64_t i = 0; i < 3; i++) {                  /* every other page of the memory */
        page[i] = kb_tensor_new(i ? i > 1 ? "third" : "second" : "first", KB_u8, kb_1d(PAGE), kb_on(KB_HBM, far));
        kb_tensor_new("gap", KB_u8, kb_1d(PAGE), kb_on(KB_HBM, far));
        kb_fill_uniform(page[i], 0, 255);
        kb_map(pe, VA + i * PAGE, page[i]);
    }
    kb_wait(kb_launch(rows_of_pages, pe, &(struct rows_of_pages_args){to, kb_int(mapped)}));
    for (uint64_t i = 0; i < 3; i++)
        print_tensor(i ? i > 1 ? "third" : "second" : "first", page[i], PAGE);
    print_tensor("to", to, 6000);
}

/* ---- mistakes */

static const char *what;

static bool is(const char *name)
{
    return !strcmp(what, name);
}

struct wrong_rows_args { kb_tensor x, columns, copies, line; };

KB_KERNEL(wrong_rows, struct wrong_rows_args)
{
    static int32_t many[9000];
    int32_t row[8] = {7, 1, 2, 3, 90, 5, 6, 4};
    struct tl_shard buffer = tl_alloc(tl, KB_f16, 8, 40), own = tl_shard(tl, arg->x, 0);
    for (int i = 0; i < 9000; i++)
        many[i] = i % 2 * 2 + i / 4 % 7;
    if (is("low")) row[3] = -4;
    if (is("high")) row[3] = 100;
    if (is("twice")) row[3] = 90;
    if (is("null")) tl_load_rows(tl, buffer, arg->x, NULL);
    if (is("no_tensor")) tl_load_rows(tl, buffer, (kb_tensor)NULL, row);
    if (is("shape")) tl_load_rows(tl, tl_part(tl, buffer, 1, 0, 39), arg->x, row);
    if (is("rank")) tl_load_rows(tl, tl_reshape(tl, buffer, 8, 5, 8), arg->x, row);
    if (is("dtype")) tl_load_rows(tl, tl_alloc(tl, KB_i16, 8, 40), arg->x, row);
    if (is("columns")) tl_load_rows(tl, buffer, arg->columns, row);
    if (is("elsewhere")) tl_load_rows(tl, buffer, arg->copies, row);
    if (is("no_columns")) tl_load_rows(tl, tl_part(tl, buffer, 1, 0, 3), tl_rows_part(arg->x, 38, 3), row);
    if (is("of_line")) tl_load_rows(tl, tl_alloc(tl, KB_f16, 8), tl_rows_part(arg->line, 0, 1), row);
    if (is("line")) tl_load_rows(tl, tl_alloc(tl, KB_f16, 7), arg->line, row + 1);
    if (is("runs")) tl_load_rows(tl, tl_part(tl, tl_alloc(tl, KB_f16, 5000, 40), 1, 0, 3), tl_rows_part(arg->x, 0, 3), many);
    if (is("high_of_shard")) row[4] = (int32_t)own.shape[0], tl_load_rows(tl, buffer, own, row);
    if (is("common")) tl_load_rows(tl, tl_part(tl, buffer, 0, 0, 2), buffer, row);
    if (is("beside")) tl_load_rows(tl, tl_part(tl, buffer, 0, 0, 1), buffer, row);
    if (is("freed")) tl_free(tl, buffer);
    if (is("odd")) own.addr++, row[4] = 0, tl_load_rows(tl, buffer, own, row);
    if (is("wrapped")) {                                /* row 2^23 would begin at byte 2^64 */
        own.stride[0] = UINT64_C(1) << 40, own.shape[0] = 1 << 24;
        for (int i = 0; i < 8; i++)
            row[i] = i % 2 ? 0 : 1 << 23;
        tl_load_rows(tl, buffer, own, row);
    }
    if (is("over")) own.stride[0] = 39, row[4] = 0, tl_store_rows(tl, own, row, buffer);
    if (is("twice") || is("store")) tl_store_rows(tl, arg->x, row, buffer);
    if (is("wait")) {
        tl_handle load = tl_load_rows_async(tl, buffer, arg->x, row);
        tl_data(tl, buffer);
        tl_wait(tl, load);
    }
    tl_load_rows(tl, buffer, arg->x, row);
    if (is("waits")) tl_data(tl, buffer);
}

KB_BENCH(wrong_rows, "rows that cannot be moved",
         KB_WORD(what, "none low high twice null no_tensor shape rank dtype columns elsewhere no_columns of_line line runs "
                       "high_of_shard common beside freed odd wrapped over store wait waits", ""))
{
    struct kb_pes pes = kb_pes("*"), one = kb_pes("sip0.cube0.pe1"), other = kb_pes("sip0.cube1.pe0");
    what = kb_word(what);
    struct wrong_rows_args args = {
        .x = kb_tensor_new("x", KB_f16, kb_2d(100, 40), kb_rows(KB_HBM, pes)),
        .columns = kb_tensor_new("columns", KB_f16, kb_2d(100, 40), kb_cols(KB_HBM, pes)),
        .copies = kb_tensor_new("copies", KB_f16, kb_2d(100, 40), kb_copies(KB_HBM, other)),
        .line = kb_tensor_new("line", KB_f16, kb_1d(100), kb_rows(KB_HBM, pes)),
    };
    kb_wait(kb_launch(wrong_rows, one, &args));
}
