/* messages.c: what PEs send each other and compute with: benches print tensors as exact numbers, before and after. */
#include <kb/host.h>
#include <kb/tl.h>

#include <stdio.h>

static void print(const char *name, kb_tensor tensor, uint64_t count)
{
    printf("%s", name);
    for (uint64_t i = 0; i < count; i++)
        printf(" %a", kb_peek(tensor, i));
    printf("\n");
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- to the right: op of what is mine and what comes from the left, in pieces */

struct right_args { kb_tensor from, to; const char *op; uint64_t piece; bool async; };

KB_KERNEL(right, struct right_args)
{
    uint32_t pes = tl_num_pes(tl), right = (tl_pe(tl) + 1) % pes, left = (tl_pe(tl) + pes - 1) % pes;
    struct tl_shard mine = tl_my_shard(tl, arg->from), out = tl_my_shard(tl, arg->to);
    for (uint64_t first = 0, count; first < mine.shape[0]; first += count) {
        count = least(arg->piece, mine.shape[0] - first);
        struct tl_shard x = tl_alloc(tl, mine.dtype, count), y = tl_alloc(tl, mine.dtype, count);
        struct tl_shard part = tl_part(tl, mine, 0, first, count), to = tl_part(tl, out, 0, first, count);
        if (arg->async) {
            tl_wait(tl, tl_load_async(tl, x, part));
            tl_handle receive = tl_recv_async(tl, left, y), send = tl_send_async(tl, right, x);
            tl_wait(tl, receive);
            tl_wait(tl, send);
            tl_handle sum = tl_math_async(tl, arg->op, y, x, y);
            tl_after(tl, sum);
            tl_wait(tl, tl_store_async(tl, to, y));
            tl_wait(tl, sum);
        } else {
            tl_load_into(tl, x, part);
            tl_send(tl, right, x);
            tl_recv(tl, left, y);
            tl_math(tl, arg->op, y, x, y);
            tl_store(tl, to, y);
        }
        tl_free(tl, x);
        tl_free(tl, y);
    }
}

KB_BENCH(right, "a neighbour's elements, computed with the own ones", KB_WORD(dtype, "f32 f16 bf16 i32 i16 i8 u8", ""),
         KB_WORD(op, "add mul min max", ""), KB_INT(n, 7, 1, 100000, "elements of each PE"),
         KB_INT(piece, 100000, 1, 100000, "elements of a message"), KB_BOOL(async, false, ""),
         KB_INT(large, 0, 0, 1, "values near the ends of the range"))
{
    struct kb_pes all = kb_pes("*");
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    struct kb_dims dims = kb_1d(kb_int(n) * all.count);
    kb_tensor from = kb_tensor_new("from", dtype, dims, kb_rows(KB_HBM, all));
    kb_tensor to = kb_tensor_new("to", dtype, dims, kb_rows(KB_HBM, all));
    kb_fill_uniform(from, -90, 90);
    if (kb_int(large))
        kb_fill_uniform(from, dtype == KB_f16 ? -65000 : -2147483648.0, dtype == KB_f16 ? 65000 : 2147483647.0);
    kb_fill(to, 1);
    struct right_args args = {from, to, kb_word(op), kb_int(piece), kb_bool(async)};
    kb_wait(kb_launch(right, all, &args));
    print("from", from, kb_int(n) * all.count);
    print("to", to, kb_int(n) * all.count);
}

/* ---- a result that no kernel knows goes from PE to PE, and is looked at or not */

struct relay_args { kb_tensor from, to; bool look; };

KB_KERNEL(relay, struct relay_args)
{
    uint32_t me = tl_pe(tl), last = tl_num_pes(tl) - 1;
    struct tl_shard x = tl_alloc(tl, KB_f32, 33);
    if (me == 0) {
        struct tl_shard known = tl_load(tl, tl_shard(tl, arg->from, 0));
        tl_add(tl, x, known, known);
    } else {
        tl_recv(tl, me - 1, x);
    }
    if (me < last)
        tl_send(tl, me + 1, x);
    else
        tl_store(tl, tl_shard(tl, arg->to, 0), x);
    if (arg->look && me == last)
        tl_data(tl, tl_part(tl, tl_load(tl, tl_shard(tl, arg->to, 0)), 0, 32, 1));
}

KB_BENCH(relay, "a pending result on its way through all PEs", KB_BOOL(look, false, "the last PE looks at it"))
{
    struct kb_pes all = kb_pes("*");
    kb_tensor from = kb_tensor_new("from", KB_f32, kb_1d(33), kb_on(KB_SRAM, kb_pes("sip0.cube0.pe1")));
    kb_tensor to = kb_tensor_new("to", KB_f32, kb_1d(33), kb_on(KB_HBM, kb_pes("sip0.cube1.pe0")));
    kb_fill_uniform(from, 0, 1);
    kb_wait(kb_launch(relay, all, &(struct relay_args){from, to, kb_bool(look)}));
    print("from", from, 33);
    print("to", to, 33);
}

/* ---- a message is what its buffer held at the call; a part of it may be pending */

struct order_args { kb_tensor one, two, to; };

KB_KERNEL(order, struct order_args)
{
    struct tl_shard x = tl_alloc(tl, KB_i32, 8);
    if (tl_pe(tl) == 0) {
        struct tl_shard other = tl_load(tl, tl_shard(tl, arg->two, 0));
        tl_load_into(tl, x, tl_shard(tl, arg->one, 0));
        tl_send_async(tl, 1, x);
        tl_load_into(tl, x, other);                     /* the message keeps what was there */
        tl_math(tl, "add", tl_part(tl, x, 0, 4, 4), tl_part(tl, x, 0, 4, 4), tl_part(tl, other, 0, 4, 4));
        tl_send_async(tl, 1, x);
    } else {
        for (uint64_t i = 0; i < 2; i++) {
            tl_recv(tl, 0, x);
            const int32_t *known = tl_data(tl, i ? tl_part(tl, x, 0, 0, 4) : x);
            tl_log(tl, "message %lu: %d %d", i, known[0], known[3]);
            tl_store(tl, tl_part(tl, tl_shard(tl, arg->to, 0), 0, 8 * i, 8), x);
        }
    }
}

KB_BENCH(order, "what a message holds")
{
    struct kb_pes two = kb_pes("sip0.cube0.pe*");
    struct kb_place place = kb_on(KB_HBM, kb_pes("sip0.cube0.pe0"));
    struct order_args args = {kb_tensor_new("one", KB_i32, kb_1d(8), place),
                              kb_tensor_new("two", KB_i32, kb_1d(8), place),
                              kb_tensor_new("to", KB_i32, kb_1d(16), place)};
    kb_fill(args.one, 1);
    kb_fill(args.two, 2);
    kb_wait(kb_launch(order, two, &args));
    print("to", args.to, 16);
}

/* ---- more messages than slots, of all lengths; some are under way while the data pass runs */

struct flood_args { kb_tensor from, to; uint64_t messages, delay_ps; };

KB_KERNEL(flood, struct flood_args)
{
    struct tl_shard x = tl_load(tl, tl_shard(tl, arg->from, 0)), y = tl_alloc(tl, KB_u8, x.shape[0]);
    struct tl_shard to = tl_shard(tl, arg->to, 0);
    if (tl_pe(tl) == 0)
        tl_math(tl, "add", x, x, x);
    for (uint64_t i = 0, first = 0; i < arg->messages; i++, first += i) {
        struct tl_shard part = tl_part(tl, tl_pe(tl) ? y : x, 0, first, i + 1);
        if (tl_pe(tl) == 0) {
            tl_send_async(tl, 1, part);
            continue;
        }
        tl_delay(tl, arg->delay_ps);
        tl_recv(tl, 0, part);
        tl_store(tl, tl_part(tl, to, 0, first, i + 1), part);
    }
}

struct nothing_args { int nothing; };

KB_KERNEL(other_compute, struct nothing_args)
{
    struct tl_shard x = tl_alloc(tl, KB_u8, 9);
    tl_add(tl, x, x, x);
}

KB_BENCH(flood, "messages of 1, 2, 3 ... bytes", KB_INT(messages, 60, 1, 200, ""), KB_BOOL(peek, false, "early"))
{
    struct kb_pes two = kb_pes("sip0.cube0.pe*"), other = kb_pes("sip0.cube1.pe0");
    struct kb_place place = kb_on(KB_HBM, kb_pes("sip0.cube0.pe0"));
    uint64_t messages = kb_int(messages), bytes = messages * (messages + 1) / 2;
    kb_tensor from = kb_tensor_new("from", KB_u8, kb_1d(bytes), place);
    kb_tensor to = kb_tensor_new("to", KB_u8, kb_1d(bytes), place);
    kb_fill_uniform(from, 0, 256);
    kb_future first = kb_launch(flood, two, &(struct flood_args){from, to, messages, 3000000});
    for (unsigned i = 0; i < 5 && kb_bool(peek); i++) {
        kb_wait(kb_launch(other_compute, other, &(struct nothing_args){0}));
        kb_peek(from, 0);
        kb_peek(to, 30 * i);                            /* pending if it has arrived */
    }
    kb_wait(first);
    print("from", from, bytes);
    print("to", to, bytes);
}

/* ---- a send that is refused leaves other messages alone */

KB_KERNEL(refused, struct order_args)
{
    struct tl_shard x = tl_alloc(tl, KB_i32, 8), long_one = tl_alloc(tl, KB_i32, tl_slot_bytes(tl));
    if (tl_pe(tl) == 0) {
        tl_load_into(tl, x, tl_shard(tl, arg->one, 0));
        tl_send(tl, 1, x);
        tl_send(tl, 1, x);
    } else if (tl_pe(tl) == 1) {
        tl_recv(tl, 0, x);
        tl_delay(tl, 10000000);
        tl_recv(tl, 0, x);
        const int32_t *known = tl_data(tl, x);
        printf("to %a %a\n", (double)known[0], (double)known[7]);
    } else if (tl_pe(tl) == 2) {
        tl_delay(tl, 5000000);
        tl_send(tl, 1, long_one);
    }
}

KB_BENCH(refused, "a message that is too long")
{
    kb_tensor one = kb_tensor_new("one", KB_i32, kb_1d(8), kb_on(KB_HBM, kb_pes("sip0.cube0.pe0")));
    kb_fill(one, 1);
    kb_wait(kb_launch(refused, kb_pes("*"), &(struct order_args){one, one, one}));
}

/* ---- where PEs are */

KB_KERNEL(places_of, struct nothing_args)
{
    struct tl_place here = tl_place(tl, tl_pe(tl)), last = tl_place(tl, tl_num_pes(tl) - 1);
    struct tl_place number = tl_place(tl, TL_NUMBER(here.number));
    printf("%u %u: %u %u %u %u %u %u; %u %u; %lu %lu %lu\n", tl_sip(tl), tl_cube(tl), here.number, here.sip, here.cube,
           here.pe, here.cube_row, here.cube_col, last.number, number.number, tl_slot_bytes(tl), tl_slots(tl),
           tl_now(tl));
}

KB_BENCH(here, "places of PEs", KB_WORD(pes, "all odd", ""))
{
    struct kb_pes pes = kb_pes(kb_word(pes)[0] == 'a' ? "*" : "*.pe1");
    kb_wait(kb_launch(places_of, pes, &(struct nothing_args){0}));
}

/* ---- between two launches, by numbers over the machine */

struct apart_args { uint32_t peer; kb_tensor tensor; bool sends; };

KB_KERNEL(apart, struct apart_args)
{
    struct tl_shard x = tl_load(tl, tl_shard(tl, arg->tensor, 0));
    if (arg->sends)
        tl_send(tl, TL_NUMBER(arg->peer), x);
    else
        tl_recv(tl, TL_NUMBER(arg->peer), x);
    tl_store(tl, tl_shard(tl, arg->tensor, 0), x);
}

KB_BENCH(apart, "a message between launches")
{
    struct kb_pes one = kb_pes("sip0.cube0.pe1"), two = kb_pes("sip0.cube1.pe0");
    kb_tensor from = kb_tensor_new("from", KB_i8, kb_1d(5), kb_on(KB_HBM, one));
    kb_tensor to = kb_tensor_new("to", KB_i8, kb_1d(5), kb_on(KB_SRAM, two));
    kb_fill_uniform(from, -100, 100);
    kb_future receiver = kb_launch(apart, two, &(struct apart_args){one.pe[0], to, false});
    kb_wait(kb_launch(apart, one, &(struct apart_args){two.pe[0], from, true}));
    kb_wait(receiver);
    print("from", from, 5);
    print("to", to, 5);
}

/* ---- room in the TCM */

KB_KERNEL(room, struct nothing_args)
{
    uint64_t all = tl_room_bytes(tl);
    struct tl_shard a = tl_alloc(tl, KB_u8, 1), b = tl_alloc(tl, KB_f32, 10, 10), c = tl_alloc(tl, KB_i16, 2, 3, 4, 5);
    printf("%lu %lu %lu %lu\n", a.addr % 64, b.addr - a.addr, c.addr - b.addr, all - tl_room_bytes(tl));
    printf("%lu %lu %lu %lu\n", c.stride[0], c.stride[1], c.stride[2], c.stride[3]);
    tl_free(tl, b);
    struct tl_shard d = tl_alloc(tl, KB_u8, 449), e = tl_alloc(tl, KB_u8, 448);
    printf("%d %d\n", d.addr > c.addr, e.addr == b.addr);
    tl_free(tl, d);
    tl_free(tl, c);
    tl_free(tl, e);
    tl_free(tl, a);
    printf("%d\n", all == tl_room_bytes(tl));
    tl_free(tl, tl_alloc(tl, KB_u8, all));
    tl_alloc(tl, KB_u8, all);                           /* goes when the kernel ends */
}

KB_BENCH(room, "buffers in the TCM")
{
    struct kb_pes one = kb_pes("sip0.cube0.pe1");
    kb_tensor_new("t", KB_u8, kb_1d(100), kb_on(KB_TCM, one));
    kb_wait(kb_launch(room, one, &(struct nothing_args){0}));
    kb_wait(kb_launch(room, one, &(struct nothing_args){0}));
}
