/* views.c: views of shards that are loaded, stored, sent, received and looked at; prints tensors before and after. */
#include <kb/host.h>
#include <kb/tl.h>

#include <stdio.h>
#include <string.h>

struct viewed_args { kb_tensor from, to; const char *form; bool async; };

static void load(struct tl *tl, bool async, struct tl_shard to, struct tl_shard from)
{
    if (async)
        tl_wait(tl, tl_load_async(tl, to, from));
    else
        tl_load_into(tl, to, from);
}

static void store(struct tl *tl, bool async, struct tl_shard to, struct tl_shard from)
{
    if (async)
        tl_wait(tl, tl_store_async(tl, to, from));
    else
        tl_store(tl, to, from);
}

/* A buffer of every third element of a larger one. */
static struct tl_shard sparse(struct tl *tl, struct tl_shard like)
{
    struct tl_shard large = tl_alloc(tl, like.dtype, like.shape[0], like.shape[1], like.shape[2], 3 * like.shape[3]);
    return tl_every(tl, large, 3, 1, 3);
}

static void pass_on(struct tl *tl, bool async, struct tl_shard x, struct tl_shard y)
{
    uint32_t pes = tl_num_pes(tl), right = (tl_pe(tl) + 1) % pes, left = (tl_pe(tl) + pes - 1) % pes;
    tl_handle sent = NULL;
    if (async)
        sent = tl_send_async(tl, right, x);
    else
        tl_send(tl, right, x);
    tl_recv(tl, left, y);
    if (async)
        tl_wait(tl, sent);
}

KB_KERNEL(viewed, struct viewed_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->from), y = tl_my_shard(tl, arg->to);
    const char *form = arg->form;
    if (!strcmp(form, "part")) {
        x = tl_part(tl, tl_part(tl, x, 3, 2, 4), 1, 1, 2);
        y = tl_part(tl, tl_part(tl, y, 3, 2, 4), 1, 1, 2);
        struct tl_shard buffer = tl_load(tl, x);
        store(tl, arg->async, y, buffer);
        tl_free(tl, buffer);
    } else if (!strcmp(form, "every")) {
        struct tl_shard buffer = tl_alloc(tl, x.dtype, 2, 3, 2, 7);
        load(tl, arg->async, buffer, tl_every(tl, x, 2, 1, 3));
        store(tl, arg->async, tl_every(tl, y, 2, 0, 4), buffer);
    } else if (!strcmp(form, "transposed")) {
        x = tl_transposed(tl, x, 1, 3);
        struct tl_shard buffer = tl_alloc(tl, x.dtype, 2, 7, 5, 3);
        load(tl, arg->async, buffer, x);
        store(tl, arg->async, tl_reshape(tl, y, 2, 7, 5, 3), buffer);
    } else if (!strcmp(form, "reshape")) {
        x = tl_reshape(tl, tl_part(tl, x, 1, 0, 2), 2, 2, 35);
        struct tl_shard buffer = sparse(tl, tl_reshape(tl, x, 2, 2, 5, 7));
        load(tl, arg->async, buffer, tl_reshape(tl, x, 2, 2, 5, 7));
        store(tl, arg->async, tl_part(tl, y, 1, 1, 2), buffer);
    } else if (!strcmp(form, "tcm")) {
        struct tl_shard buffer = sparse(tl, x);
        load(tl, arg->async, buffer, x);
        store(tl, arg->async, tl_reshape(tl, y, 7, 3, 5, 2), tl_transposed(tl, buffer, 0, 3));
    } else if (!strcmp(form, "looked")) {               /* as many times to the right as the first element says */
        struct tl_shard buffer = tl_load(tl, tl_every(tl, x, 3, 6, 1));
        struct tl_shard some = tl_part(tl, tl_transposed(tl, buffer, 0, 2), 0, 4, 1);
        const uint8_t *bytes = tl_data(tl, some);
        uint8_t copied[6];
        tl_data_into(tl, copied, some);
        if (memcmp(copied, bytes, sizeof copied))
            tl_fail(tl, 1, "tl_data_into copies other bytes than those of tl_data");
        store(tl, arg->async, tl_part(tl, y, 3, copied[0] % 7, 1), buffer);
    } else {
        struct tl_shard got = sparse(tl, x), own = tl_load(tl, x);
        pass_on(tl, arg->async, tl_transposed(tl, own, 0, 2), tl_transposed(tl, got, 0, 2));
        store(tl, arg->async, y, got);
    }
}

static void print_tensor(const char *name, kb_tensor tensor, uint64_t count)
{
    printf("%s", name);
    for (uint64_t i = 0; i < count; i++)
        printf(" %a", kb_peek(tensor, i));
    printf("\n");
}

KB_BENCH(viewed, "strided views", KB_WORD(dtype, "f32 f16 bf16 i32 i16 i8 u8", ""),
         KB_WORD(form, "part every transposed reshape tcm looked sent", ""), KB_WORD(space, "hbm sram tcm", ""),
         KB_BOOL(async, false, ""), KB_TEXT(pes, "*", "PEs"))
{
    struct kb_pes pes = kb_pes(kb_text(pes));
    char first = kb_word(space)[0];
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    enum kb_space space = first == 'h' ? KB_HBM : first == 's' ? KB_SRAM : KB_TCM;
    struct kb_dims dims = kb_4d(2 * pes.count, 3, 5, 7);
    kb_tensor from = kb_tensor_new("from", dtype, dims, kb_rows(space, pes));
    kb_tensor to = kb_tensor_new("to", dtype, dims, kb_rows(space, pes));
    kb_fill_uniform(from, 0, 100);
    kb_fill(to, 1);
    kb_wait(kb_launch(viewed, pes, &(struct viewed_args){from, to, kb_word(form), kb_bool(async)}));
    print_tensor("from", from, 210 * pes.count);
    print_tensor("to", to, 210 * pes.count);
}

/* ---- pages that follow one another and lie apart: a strided view of the same bytes takes the same time */

struct paged_args { kb_tensor from, to; bool paged; uint64_t columns; };

enum { VA = 1 << 20 };

KB_KERNEL(paged, struct paged_args)
{
    struct tl_shard x = tl_shard(tl, arg->from, 0), y = tl_shard(tl, arg->to, 0);
    x = tl_view(tl, (struct tl_shard){.addr = x.addr, .dtype = KB_u8, .rank = 2, .shape = {2, arg->columns},
                                      .stride = {arg->paged ? 4096 : 8192, 1}});
    if (arg->paged)
        x = tl_virtual(x, VA);
    struct tl_shard buffer = tl_load(tl, x);
    tl_store(tl, y, tl_transposed(tl, buffer, 0, 1));
    if (arg->paged)
        x = tl_virtual(x, VA);
    tl_store(tl, x, buffer);
}

KB_BENCH(paged, "runs of pages and of views", KB_BOOL(paged, false, ""), KB_INT(columns, 4096, 1, 4096, ""))
{
    struct kb_pes pes = kb_pes("sip0.cube0.pe0"), far = kb_pes("sip0.cube1.pe1");
    kb_tensor first = kb_tensor_new("first", KB_u8, kb_1d(4096), kb_on(KB_HBM, far));
    kb_tensor_new("gap", KB_u8, kb_1d(4096), kb_on(KB_HBM, far));
    kb_tensor second = kb_tensor_new("second", KB_u8, kb_1d(4096), kb_on(KB_HBM, far));
    kb_tensor to = kb_tensor_new("to", KB_u8, kb_2d(kb_int(columns), 2), kb_on(KB_HBM, pes));
    kb_map(pes, VA, first);
    kb_map(pes, VA + 4096, second);
    kb_fill_uniform(first, 0, 255);
    kb_fill_uniform(second, 0, 255);
    kb_wait(kb_launch(paged, pes, &(struct paged_args){first, to, kb_bool(paged), kb_int(columns)}));
    print_tensor("first", first, kb_int(columns));
    print_tensor("second", second, kb_int(columns));
    print_tensor("to", to, 2 * kb_int(columns));
}

/* ---- mistakes */

static const char *what;

static bool is(const char *name)
{
    return !strcmp(what, name);
}

struct blurred_args { kb_tensor far; };

static void shapes(struct tl *tl, struct tl_shard x, struct tl_shard y)
{
    if (is("axis")) tl_transposed(tl, x, 0, 2);
    if (is("step")) tl_every(tl, x, 0, 0, 0);
    if (is("past")) tl_every(tl, x, 1, 9000, 2);
    if (is("count")) tl_reshape(tl, x, 5, 9000);
    if (is("five_axes")) tl_reshape(tl, x, 4, 9000, 1, 1, 1);
    if (is("apart")) tl_reshape(tl, tl_part(tl, x, 1, 0, 10), 40);
    if (is("outside")) tl_view(tl, (struct tl_shard){.addr = x.addr, .rank = 2, .shape = {2, 2}, .stride = {1 << 30, 1}});
    if (is("no_rank")) tl_view(tl, (struct tl_shard){.addr = x.addr, .rank = 7});
    if (is("no_dtype")) tl_view(tl, (struct tl_shard){.addr = x.addr, .rank = 1, .dtype = 99, .shape = {1}});
    if (is("odd")) tl_view(tl, (struct tl_shard){.addr = x.addr + 1, .rank = 1, .shape = {1}});
    if (is("odd_load")) x.addr += 2, tl_load(tl, tl_part(tl, x, 1, 0, 1));
    if (is("runs")) tl_load(tl, tl_every(tl, x, 1, 0, 2));
    if (is("runs_4096")) tl_load(tl, tl_part(tl, tl_every(tl, x, 1, 0, 2), 1, 0, 1024));
    x = tl_part(tl, x, 1, 0, 4);
    if (is("over")) x.stride[0] = 2, tl_load(tl, x);
    if (is("again")) x.stride[0] = 0, tl_load(tl, x);
    if (is("over_buffer")) y.stride[0] = 2, tl_load_into(tl, y, x);
    if (is("over_send")) y.stride[0] = 2, tl_send(tl, 1, y);
    if (is("common")) tl_load_into(tl, tl_transposed(tl, y, 0, 1), y);
    if (is("far")) x.stride[0] = (uint64_t)1 << 35, tl_load(tl, x);
    if (is("wraps")) x.stride[0] = 5000000000, tl_load(tl, x);
}

static void freed(struct tl *tl, struct tl_shard x, struct tl_shard y)
{
    x = tl_part(tl, x, 1, 0, 4);
    if (is("free_load")) tl_free(tl, y), tl_load_into(tl, y, x);
    if (is("free_send")) tl_free(tl, y), tl_send(tl, 1, y);
    if (is("free_recv")) tl_free(tl, y), tl_recv_async(tl, 1, y);
    if (is("free_math")) tl_free(tl, y), tl_add(tl, y, y, y);
    if (is("free_data")) tl_free(tl, y), tl_data(tl, y);
    if (is("free_free")) tl_free(tl, y), tl_free(tl, y);
    if (is("free_source")) tl_free(tl, y), tl_load(tl, y);
    if (is("free_part")) {
        tl_free(tl, y);
        struct tl_shard small = tl_alloc(tl, KB_f32, 4);
        tl_data(tl, small);
        y.addr += 16;
        tl_data(tl, tl_part(tl, y, 0, 0, 1));
    }
    if (is("free_again")) tl_free(tl, y), tl_load_into(tl, tl_alloc(tl, KB_f32, 4, 4), x), tl_data(tl, y);
    if (is("after")) tl_after(tl, NULL);
}

KB_KERNEL(blurred, struct blurred_args)
{
    struct tl_shard x = tl_shard(tl, arg->far, 0), y = tl_alloc(tl, KB_f32, 4, 4);
    shapes(tl, x, y);
    freed(tl, x, y);
}

KB_BENCH(blurred, "what a view must not be",
         KB_WORD(what, "none axis step past count five_axes apart outside no_rank no_dtype odd odd_load runs runs_4096 "
                       "over again over_buffer over_send common far wraps free_load free_send free_recv free_math "
                       "free_data free_free free_source free_part free_again after", ""))
{
    what = kb_word(what);
    kb_tensor far = kb_tensor_new("far", KB_f32, kb_2d(4, 9000), kb_on(KB_HBM, kb_pes("sip0.cube1.pe1")));
    kb_wait(kb_launch(blurred, kb_pes("sip0.cube0.pe*"), &(struct blurred_args){far}));
}

/* ---- what the host wrote, seen by tl_data: element i of x, 8 x 16, is i; by columns over the PEs too */

struct written_args {
    kb_tensor x, columns;
};

static void see(struct tl *tl, struct tl_shard view, int32_t first, int32_t down, int32_t right)
{
    const int32_t *got = tl_data(tl, view);
    for (uint64_t i = 0; i < view.shape[0]; i++)
        for (uint64_t j = 0; j < view.shape[1]; j++) {
            int32_t want = first + (int32_t)i * down + (int32_t)j * right;
            if (got[i * view.shape[1] + j] != want)
                tl_fail(tl, 1, "(%llu, %llu) is %d instead of %d", (unsigned long long)i, (unsigned long long)j,
                        got[i * view.shape[1] + j], want);
        }
}

KB_KERNEL(written, struct written_args)
{
    struct tl_shard x = tl_load(tl, tl_my_shard(tl, arg->x)), mine = tl_my_shard(tl, arg->columns);
    see(tl, x, 0, 16, 1);
    see(tl, tl_part(tl, x, 0, 3, 2), 48, 16, 1);
    see(tl, tl_transposed(tl, x, 0, 1), 0, 1, 16);
    see(tl, tl_part(tl, x, 1, 5, 3), 5, 16, 1);
    see(tl, tl_part(tl, tl_reshape(tl, x, 1, 128), 1, 1, 99), 1, 0, 1);
    see(tl, tl_load(tl, mine), (int32_t)mine.first[1], 16, 1);
    tl_store(tl, tl_part(tl, tl_my_shard(tl, arg->x), 0, 0, 2), tl_part(tl, x, 0, 4, 2));
    x = tl_load(tl, tl_my_shard(tl, arg->x));
    see(tl, tl_part(tl, x, 0, 0, 2), 64, 16, 1);
    see(tl, tl_part(tl, x, 0, 1, 1), 80, 0, 1);
    see(tl, tl_part(tl, x, 0, 2, 6), 32, 16, 1);
    const int32_t *over = tl_data(tl, tl_part(tl, x, 0, 1, 2));
    if (over[0] != 80 || over[16] != 32)
        tl_fail(tl, 1, "row 1 begins with %d, row 2 with %d", over[0], over[16]);
}

KB_BENCH(written, "what tl_data shows of what the host wrote")
{
    int32_t value[128];
    struct kb_pes pes = kb_pes("*");
    for (int32_t i = 0; i < 128; i++)
        value[i] = i;
    kb_tensor x = kb_tensor_new("x", KB_i32, kb_2d(8, 16), kb_copies(KB_HBM, pes));
    kb_tensor columns = kb_tensor_new("columns", KB_i32, kb_2d(8, 16), kb_cols(KB_HBM, pes));
    kb_write(x, value);
    kb_write(columns, value);
    kb_wait(kb_launch(written, pes, &(struct written_args){x, columns}));
    double *expected = kb_array(double, 128);
    for (int32_t i = 0; i < 128; i++)
        expected[i] = i < 32 ? i + 64 : i;
    kb_expect_close(x, kb_ref_exact(kb_ref_given(expected, kb_2d(8, 16))));
}
