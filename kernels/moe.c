/* moe.c: a mixture-of-experts step: y = sum over a token's experts of gate * down(silu(up(x))).
 *
 * The rows of x and y are split over all PEs. The weights of an expert lie with its members, PEs that have no other
 * expert; with more experts than PEs, a PE is the only member of several. The routing, which experts a token goes to,
 * is data that each PE loads and reads:
 *   gather:   the members of an expert load the rows of its tokens into their TCM, from wherever they lie;
 *   expert:   each member multiplies them with its columns of `up`, takes silu, and multiplies with its rows of `down`;
 *   scatter:  it stores each resulting row with the token, in a separate slot for this choice and member;
 *   combine:  after a barrier, each PE adds up its tokens' slots, weighted by their gates.
 * An expert without tokens reads no weights. With few tokens per expert the memories bound the kernel: the weights of
 * every expert in use are read once. The rows of an expert are loaded by one command; the stores of single rows and the
 * fullest expert keep the kernel from the bound. */
#include "levels.h"
#include "skinny_gemm.h"
#include "transfers.h"

/* Experts of a token; rows of an expert at a time; what the buffers of both parts may need to begin at multiples of 64 bytes. */
enum { MOST_TOP = 2, MOST_ROWS = 128, EXPERT_PADDING = 3 * 64, COMBINE_PADDING = 5 * 64 };

struct moe_args {
    kb_tensor x, y;                                     /* tokens x d, rows over all PEs */
    kb_tensor ids, gates;                               /* tokens x top, a copy per PE */
    kb_tensor slots;                                    /* tokens x (top * members) x d, split as x and y */
    const kb_tensor *up, *down;                         /* by expert: columns, rows split over its members */
    uint64_t tokens, d, ffn, experts, members, top, weight_bytes;
    struct kb_order order;
    struct levels levels;
};

/* The first member of an expert; the others follow it. */
static uint64_t first_pe(uint64_t expert, uint64_t experts, uint64_t pes)
{
    return expert * pes / experts;
}

/* Index `token` of the first axis of a tensor that is split along it. */
static struct tl_shard token_row(struct tl *tl, kb_tensor tensor, uint64_t tokens, uint64_t token)
{
    struct tl_shard shard = tl_shard(tl, tensor, block_owner(tokens, tl_shards(tensor), token));
    return tl_part(tl, shard, 0, token - shard.first[0], 1);
}

/* Works on up to MOST_ROWS choices of an expert. A choice is token * top + i, for the token's i-th expert. */
static void expert_rows(struct tl *tl, const struct moe_args *arg, uint64_t expert, uint64_t member,
                        const uint64_t *choice, uint64_t rows)
{
    struct tl_shard up = tl_shard(tl, arg->up[expert], member), down = tl_shard(tl, arg->down[expert], member);
    struct tl_shard x = tl_alloc(tl, up.dtype, rows, arg->d), y = tl_alloc(tl, up.dtype, rows, arg->d);
    struct tl_shard h = tl_alloc(tl, up.dtype, rows, up.shape[1]);
    struct transfers stores = {.begun = 0};
    int32_t token[MOST_ROWS];
    for (uint64_t i = 0; i < rows; i++)
        token[i] = (int32_t)(choice[i] / arg->top);
    tl_load_rows(tl, x, arg->x, token);
    tl_wait(tl, skinny_gemm(tl, h, x, up, arg->weight_bytes, "silu"));
    tl_wait(tl, skinny_gemm(tl, y, h, down, arg->weight_bytes, NULL));
    for (uint64_t i = 0; i < rows; i++) {
        struct tl_shard slots = token_row(tl, arg->slots, arg->tokens, choice[i] / arg->top);
        struct tl_shard slot = tl_part(tl, slots, 1, choice[i] % arg->top * arg->members + member, 1);
        transfers_add(tl, &stores, tl_store_async(tl, tl_reshape(tl, slot, 1, arg->d), tl_part(tl, y, 0, i, 1)));
    }
    transfers_wait(tl, &stores);
    tl_free(tl, h);
    tl_free(tl, y);
    tl_free(tl, x);
}

/* What a member needs of a TCM for each row of an expert: the row of x, that of y, and what it has of the hidden layer. */
static uint64_t expert_row_bytes(const struct moe_args *arg, uint64_t size)
{
    return (2 * arg->d + block_longest(arg->ffn, arg->members)) * size;
}

/* Works on all choices of one expert, as many at a time as fit into the TCM. */
static void run_expert(struct tl *tl, const struct moe_args *arg, const int32_t *ids, uint64_t expert, uint64_t member)
{
    uint64_t size = kb_dtype_bytes(tl_shard(tl, arg->x, 0).dtype), room = tl_room_bytes(tl);
    uint64_t most = kb_clamp((room - kb_min(room, EXPERT_PADDING)) / expert_row_bytes(arg, size), 1, MOST_ROWS);
    uint64_t choice[MOST_ROWS], rows = 0;
    for (uint64_t i = 0; i < arg->tokens * arg->top; i++) {
        if ((uint64_t)ids[i] == expert)
            choice[rows++] = i;
        if (rows == most || (rows > 0 && i == arg->tokens * arg->top - 1)) {
            expert_rows(tl, arg, expert, member, choice, rows);
            rows = 0;
        }
    }
}

/* What combining needs of a TCM for a column of a token, at most. */
static uint64_t combine_col_bytes(const struct moe_args *arg)
{
    return (arg->top * arg->members + 5) * 4;
}

/* For some columns of some tokens: y = the sum over their choices of gate * the sum over the members' slots. */
static void combine(struct tl *tl, const struct moe_args *arg, struct tl_shard y, struct tl_shard slots,
                    struct tl_shard gates)
{
    uint64_t rows = y.shape[0], cols = y.shape[1];
    struct tl_shard got = tl_load(tl, slots), gate = tl_reshape(tl, tl_load(tl, gates), rows, arg->top, 1);
    struct tl_shard out = tl_alloc(tl, y.dtype, rows, 1, cols);
    struct tl_shard sum = tl_alloc(tl, KB_f32, rows, 1, cols), term = tl_alloc(tl, KB_f32, rows, 1, cols);
    for (uint64_t i = 0; i < arg->top; i++) {
        struct tl_shard to = i ? term : sum;
        tl_sum(tl, to, tl_part(tl, got, 1, i * arg->members, arg->members), 1);
        tl_mul(tl, to, to, tl_part(tl, gate, 1, i, 1));
        if (i)
            tl_add(tl, sum, sum, term);
    }
    tl_cast(tl, out, sum);
    tl_store(tl, y, tl_reshape(tl, out, rows, cols));
    tl_free(tl, term);
    tl_free(tl, sum);
    tl_free(tl, out);
    tl_free(tl, gate);
    tl_free(tl, got);
}

KB_KERNEL(moe, struct moe_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard routing = tl_load(tl, tl_my_shard(tl, arg->ids));
    const int32_t *ids = tl_data(tl, routing);
    for (uint64_t e = 0; e < arg->experts; e++) {
        uint64_t first = first_pe(e, arg->experts, ring.count);
        if (first <= tl_pe(tl) && tl_pe(tl) < first + arg->members)
            run_expert(tl, arg, ids, e, tl_pe(tl) - first);
    }
    if (arg->levels.sips > 1) {
        struct notices notices = notices_open(tl);
        levels_barrier(tl, &notices, &arg->levels);
        notices_close(tl, &notices);
    } else
        dissemination_barrier(tl, &ring);
    struct tl_shard y = tl_my_shard(tl, arg->y), slots = tl_my_shard(tl, arg->slots);
    struct tl_shard gates = tl_part(tl, tl_my_shard(tl, arg->gates), 0, y.first[0], y.shape[0]);
    uint64_t a_col = combine_col_bytes(arg), room = tl_room_bytes(tl);
    room -= kb_min(room, COMBINE_PADDING);
    uint64_t cols = kb_clamp(room / a_col, 1, arg->d);
    uint64_t step = kb_clamp(room / (a_col * arg->d), 1, y.shape[0]);
    for (uint64_t row = 0; row < y.shape[0]; row += step) {
        uint64_t rows = kb_min(step, y.shape[0] - row);
        for (uint64_t col = 0; col < arg->d; col += cols) {
            uint64_t some = kb_min(cols, arg->d - col);
            combine(tl, arg, submatrix(tl, y, row, rows, col, some),
                    tl_part(tl, tl_part(tl, slots, 0, row, rows), 2, col, some), tl_part(tl, gates, 0, row, rows));
        }
    }
}

/* ---- the bench */

/* Draws the experts of each token, no two the same: any expert ('r'); the first ones for half of all choices ('s');
 * only every other expert ('e'). */
static void draw_routing(int32_t *ids, uint64_t tokens, uint64_t top, uint64_t experts, char how)
{
    uint64_t state = 1, some = how == 'e' ? (experts + 1) / 2 : experts;
    for (uint64_t i = 0; i < tokens * top; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t drawn = (state >> 33) % some, which = i % top;
        if (how == 's' && state >> 63)
            drawn = which;
        if (which > 0 && some > 1 && (uint64_t)ids[i - 1] == drawn * (how == 'e' ? 2 : 1))
            drawn = (drawn + 1) % some;
        ids[i] = (int32_t)(drawn * (how == 'e' ? 2 : 1));
    }
}

/* A column of a tensor, as an exact reference. */
static kb_ref exact_column(kb_tensor tensor, uint64_t rows, uint64_t columns, uint64_t which)
{
    double *values = kb_array(double, rows);
    for (uint64_t i = 0; i < rows; i++)
        values[i] = kb_peek(tensor, i * columns + which);
    return kb_ref_exact(kb_ref_given(values, kb_2d(rows, 1)));
}

/* What an expert makes of all tokens: each member's part is rounded, and they are added up in f32. */
static kb_ref expert_result(const struct moe_args *arg, uint64_t e)
{
    kb_ref hidden = kb_ref_gemm(arg->x, arg->up[e]), out = NULL;
    kb_ref_unrounded(hidden);                           /* silu is an epilogue */
    hidden = kb_ref_unary("silu", hidden);
    for (uint64_t member = 0; member < arg->members; member++) {
        struct indices columns = block_range(arg->ffn, arg->members, member);
        double *mine = kb_array(double, arg->ffn);
        for (uint64_t i = 0; i < arg->ffn; i++)
            mine[i] = columns.first <= i && i < columns.first + columns.count;
        kb_ref part = arg->members == 1 ? hidden
                      : kb_ref_binary("mul", hidden, kb_ref_exact(kb_ref_given(mine, kb_2d(1, arg->ffn))));
        part = kb_ref_cast(kb_ref_gemm(part, arg->down[e]), KB_f32);
        out = out ? kb_ref_binary("add", out, part) : part;
    }
    return out;
}

/* The reference: every expert works on all tokens, and each token selects the results of the experts that it is routed to. */
static kb_ref expected(const struct moe_args *arg, const bool *used)
{
    kb_ref chosen[MOST_TOP], term[MOST_TOP] = {NULL}, y = NULL;
    for (uint64_t i = 0; i < arg->top; i++)
        chosen[i] = exact_column(arg->ids, arg->tokens, arg->top, i);
    for (uint64_t e = 0; e < arg->experts; e++) {
        if (!used[e])
            continue;
        kb_ref out = expert_result(arg, e);
        for (uint64_t i = 0; i < arg->top; i++)
            term[i] = term[i] ? kb_ref_where(kb_ref_binary("eq", chosen[i], e), out, term[i]) : out;
    }
    for (uint64_t i = 0; i < arg->top; i++) {
        term[i] = kb_ref_binary("mul", kb_ref_cast(term[i], KB_f32), exact_column(arg->gates, arg->tokens, arg->top, i));
        y = y ? kb_ref_binary("add", y, term[i]) : term[i];
    }
    return y;
}

/* PEs and members of each expert. */
struct moe_plan {
    struct kb_pes pes;
    uint64_t members;
};

/* Chooses SIPs and members for the shortest time: that in which the PE with most weights of the `active` experts reads them,
 * and that of the messages between SIPs, which are, for each choice and member, the row of x, the result and its
 * acknowledgement. In one SIP, an expert has as many members as there are. */
static struct moe_plan plan_moe(uint64_t choices, uint64_t d, uint64_t ffn, uint64_t experts, uint64_t active, uint64_t size,
                                uint64_t all_bytes)
{
    uint32_t in_sip = kb_machine_pes("sip0.*").count;
    struct moe_plan best = {kb_pes("*"), 0};
    uint64_t best_ps = UINT64_MAX;
    for (uint32_t i = sips_least(all_bytes); i <= sips_count(); i++) {
        uint64_t pes = (uint64_t)i * in_sip, most = kb_clamp(kb_min(pes / experts, ffn), 1, pes);
        for (uint64_t members = most; members; members = i > 1 ? members / 2 : 0) {
            uint64_t of_pe = kb_ceil_div(active, kb_min(pes, experts)) * 2 * d * block_longest(ffn, members) * size;
            uint64_t far = choices * members - choices * members / i;
            uint64_t ps = kb_memory_ps(kb_main_memory(), of_pe, 0);
            if (i > 1)
                ps += kb_max(switch_ps(i, 3 * far), sips_exchange_ps(2 * far * d * size / i, 4));
            if (ps >= best_ps)
                continue;
            best_ps = ps;
            best = (struct moe_plan){sips_first("*", i), members};
        }
    }
    return best;
}

KB_BENCH(moe, "a mixture-of-experts step, routed by ids in memory",
         KB_INT(tokens, 128, 1, 1 << 14, "rows of x and y"), KB_INT(d, 1024, 1, 1 << 16, "columns of x and y"),
         KB_INT(ffn, 1024, 1, 1 << 20, "columns of the hidden layer of an expert"),
         KB_INT(experts, 64, 1, 1 << 10, "experts"), KB_INT(top, 2, 1, MOST_TOP, "experts of a token"),
         KB_WORD(routing, "random skewed empty", "any expert; half of the choices the first; every other one unused"),
         KB_WORD(dtype, "f16 bf16 f32", "dtype of x, y and weights"), SKINNY_GEMM_PARAM)
{
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    uint64_t tokens = kb_int(tokens), d = kb_int(d), ffn = kb_int(ffn), experts = kb_int(experts), top = kb_int(top);
    kb_tensor *up = kb_array(kb_tensor, experts), *down = kb_array(kb_tensor, experts);
    uint64_t size = kb_dtype_bytes(dtype), active = 0;
    int32_t *ids = kb_array(int32_t, tokens * top);
    bool *used = kb_array(bool, experts);
    draw_routing(ids, tokens, top, experts, kb_word(routing)[0]);
    for (uint64_t i = 0; i < tokens * top; i++) {
        active += !used[ids[i]];
        used[ids[i]] = true;
    }
    struct moe_plan plan = plan_moe(tokens * top, d, ffn, experts, active, size, (2 * experts * ffn + 4 * tokens) * d * size);
    struct kb_pes pes = plan.pes;
    uint64_t members = plan.members;
    struct moe_args args = {.up = up, .down = down, .tokens = tokens, .d = d, .ffn = ffn, .experts = experts,
                            .weight_bytes = kb_size(tile),
                            .members = members, .top = top, .order = kb_snake(pes),
                            .levels = levels_of(pes)};
    uint64_t row = EXPERT_PADDING + expert_row_bytes(&args, size), of_ids = tcm_padded(tokens * top * 4);
    uint64_t need = of_ids + kb_max(row, COMBINE_PADDING + combine_col_bytes(&args));
    skinny_gemm_needs();
    needs_tcm(need, "the experts of all tokens and a row of x, y and the hidden layer", "make tokens, d or ffn smaller");
    args.x = kb_tensor_new("x", dtype, kb_2d(tokens, d), kb_rows(kb_main_memory(), pes));
    args.y = kb_tensor_new("y", dtype, kb_2d(tokens, d), kb_rows(kb_main_memory(), pes));
    args.ids = kb_tensor_new("ids", KB_i32, kb_2d(tokens, top), kb_copies(kb_main_memory(), pes));
    args.gates = kb_tensor_new("gates", KB_f32, kb_2d(tokens, top), kb_copies(kb_main_memory(), pes));
    args.slots = kb_tensor_new("slots", dtype, kb_3d(tokens, top * members, d), kb_rows(kb_main_memory(), pes));
    kb_fill_uniform(args.x, -1, 1);
    kb_fill_uniform(args.gates, 0.9, 1);
    kb_write(args.ids, ids);
    for (uint64_t e = 0; e < experts; e++) {
        struct kb_pes group = {pes.pe + first_pe(e, experts, pes.count), members};
        up[e] = kb_tensor_new("up", dtype, kb_2d(d, ffn), kb_cols(kb_main_memory(), group));
        down[e] = kb_tensor_new("down", dtype, kb_2d(ffn, d), kb_rows(kb_main_memory(), group));
        if (!kb_has_data())
            continue;
        kb_fill_uniform(up[e], -1 / __builtin_sqrt(d), 1 / __builtin_sqrt(d));
        kb_fill_uniform(down[e], -1 / __builtin_sqrt(ffn), 1 / __builtin_sqrt(ffn));
    }
    kb_ref want = kb_has_data() ? expected(&args, used) : NULL;
    kb_future launch = kb_launch(moe, pes, &args);
    kb_wait(launch);

    uint64_t weights = active * 2 * d * ffn * size;
    uint64_t rows = tokens * d * size, routing = tokens * top * 4;
    uint64_t choices = members * top * rows;            /* rows that are gathered; slots, which are written and read */
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = dtype, .macs = 2 * tokens * top * d * ffn, .reads = {args.x, args.ids, args.gates},
        .writes = {args.y}, .read_bytes = weights }, &(struct kb_work){
        .hbm_read = weights + 2 * choices + (pes.count + 1) * routing, .hbm_written = rows + choices });
    if (kb_has_data())
        kb_expect_close(args.y, want);
}
