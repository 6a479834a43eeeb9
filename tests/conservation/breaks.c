/* breaks.c: a run in which every part of a PE works, and after which one figure of the machine is wrong; for
 * tests/conservation.t. Two files of the library are compiled into this one, which replaces them: machine/ipcq.c, because
 * rings are its own, and why/accounts.c, to change an account before --why checks it. */
#include "machine/ipcq.c"
#define accounts_close accounts_close_rightly
#include "why/accounts.c"
#undef accounts_close

#include <stdlib.h>

#include "host/bounds.h"
#include "kb/host.h"
#include "launch/launch.h"
#include "machine/stats.h"
#include "machine/tile_buffers.h"
#include "report/demand.h"

struct breaks_args { kb_tensor a, c; bool unread; };

/* Strided loads, a composite, messages in a circle; unread: and a last one of 16 bytes, which no PE receives. */
KB_KERNEL(breaks, struct breaks_args)
{
    struct tl_shard mine = tl_my_shard(tl, arg->a), x = tl_load(tl, mine), y = tl_alloc(tl, KB_f16, 64, 64);
    uint32_t next = (tl_pe(tl) + 1) % tl_num_pes(tl), before = (tl_pe(tl) + tl_num_pes(tl) - 1) % tl_num_pes(tl);
    tl_wait(tl, tl_composite(tl, &(struct tl_composite){
        .op = TL_GEMM, .m = 64, .n = 64, .k = 64, .tile = {32, 32, 32}, .a = tl_in(mine), .b = tl_in(mine),
        .c = tl_out(tl_my_shard(tl, arg->c)) }));
    tl_exp(tl, y, x);
    tl_send(tl, next, y);
    tl_recv(tl, before, x);
    tl_store(tl, mine, x);
    if (arg->unread && !tl_pe(tl))
        tl_send(tl, next, tl_alloc(tl, KB_f16, 1, 8));
}

KB_KERNEL(delays, struct breaks_args)
{
    tl_delay(tl, 1000000);
}

/* A link that carried data, after `from`; LINK_CLASSES: of any class. */
static uint64_t used_link(uint64_t from, unsigned class)
{
    while (!kb_links[from].busy_ps || (class < LINK_CLASSES && link_class(from) != class))
        from++;
    return from;
}

/* A link of the same class that did not. */
static uint64_t unused_link(enum link_class class)
{
    uint64_t link = 0;
    while (kb_links[link].busy_ps || link_class(link) != class)
        link++;
    return link;
}

static void tamper(const char *what)
{
    static struct buffer buffer = {.bytes = 64};
    static struct command command;
    buffer.at = 0;
    uint64_t noc = used_link(0, LINK_noc), much = UINT64_C(1) << 56;
    struct ring *ring = ring_of(0, 1);
    if (!strcmp(what, "kernel_too_late")) launches->runs[0].end_ps = launches->done_ps + 1;
    if (!strcmp(what, "done_before_begin")) launches->done_ps = launches->start_ps - 1;
    if (!strcmp(what, "link_sum")) kb_links[noc].busy_ps++;
    if (!strcmp(what, "slice_sum")) kb_hbm[0].busy_ps--;
    if (!strcmp(what, "slice_waits")) stats.read_wait_ps[SPACE_HBM]++;
    if (!strcmp(what, "engine_busy")) stats.busy_ps[ENGINE_FETCH_STORE] = much;
    if (!strcmp(what, "pe_busy")) kb_pe[1].dma.total_ps = much;
    if (!strcmp(what, "slice_busy")) kb_hbm[0].busy_ps += much, stats.read_busy_ps[SPACE_HBM] += much;
    if (!strcmp(what, "link_busy")) kb_links[noc].busy_ps += much, stats.link_busy_ps[LINK_noc] += much;
    if (!strcmp(what, "tcm_busy")) stats.write_busy_ps[SPACE_TCM] += much;
    if (!strcmp(what, "sram_busy")) stats.read_busy_ps[SPACE_SRAM] += much;
    if (!strcmp(what, "slot_lost")) kb_pe[1].free_slots[STAGE_GEMM]--;
    if (!strcmp(what, "slot_twice")) kb_pe[0].free_slots[STAGE_DMA_READ]++;
    if (!strcmp(what, "buffer_outside")) buffer.at = kb_attrs.pe_tcm_reserved_bytes, kb_pe[0].lowest = &buffer;
    if (!strcmp(what, "credit_lost")) ring->credits--;
    if (!strcmp(what, "received_unsent")) ring->received++;
    if (!strcmp(what, "link_bytes")) stats.link_bytes[LINK_noc] += much;
    if (!strcmp(what, "hbm_bytes")) stats.write_bytes[SPACE_HBM] += much;
    if (!strcmp(what, "sram_bytes")) stats.read_bytes[SPACE_SRAM] += much;
    if (!strcmp(what, "tcm_bytes")) stats.read_bytes[SPACE_TCM] += much;
    if (!strcmp(what, "engine_serves")) kb_pe[1].dma.servers = 1;
    if (!strcmp(what, "tile_waits")) kb_pe[1].waiting = 1;
    if (!strcmp(what, "buffer_left")) kb_pe[0].lowest = &buffer;
    if (!strcmp(what, "data_left")) kb_nodes[7].arriving = 1;
    if (!strcmp(what, "receive_waits")) ring->waiting = &command;
    if (!strcmp(what, "command_lost")) launches->runs[1].tl.commands++;
    if (!strcmp(what, "service_twice")) stats.services++;
    if (!strcmp(what, "operations")) stats.gemm_flops -= 2;
    if (!strcmp(what, "gemm_ps")) stats.busy_ps[ENGINE_GEMM]++;
    if (!strcmp(what, "math_ps")) stats.busy_ps[ENGINE_MATH]--;
    if (!strcmp(what, "too_fast")) stats.gemm_flops += much, demand.gemm_flops += much;
    if (!strcmp(what, "hbm_read")) stats.read_bytes[SPACE_HBM] += 2;
    if (!strcmp(what, "hbm_read_more")) stats.read_bytes[SPACE_HBM] += 32;
    if (!strcmp(what, "tcm_written")) stats.write_bytes[SPACE_TCM] -= 2;
    if (!strcmp(what, "attach_bytes")) stats.link_bytes[LINK_attach] -= 2;
    if (!strcmp(what, "attach_lost")) stats.link_bytes[LINK_attach] -= stats.link_bytes[LINK_attach] / 8;
    if (!strcmp(what, "ucie_bytes")) stats.link_bytes[LINK_ucie] += 2;
    if (!strcmp(what, "wrong_link")) {
        kb_links[unused_link(LINK_noc)].busy_ps = kb_links[noc].busy_ps;
        kb_links[noc].busy_ps = 0;
    }
}

#define CHANGES                                                                                                        \
    "nothing kernel_too_late done_before_begin link_sum slice_sum slice_waits engine_busy pe_busy slice_busy link_busy "   \
    "tcm_busy sram_busy slot_lost slot_twice buffer_outside credit_lost received_unsent link_bytes hbm_bytes sram_bytes "  \
    "tcm_bytes engine_serves tile_waits buffer_left data_left receive_waits command_lost service_twice operations gemm_ps " \
    "math_ps too_fast hbm_read hbm_read_more tcm_written attach_bytes attach_lost ucie_bytes wrong_link"

KB_BENCH(breaks, "a machine in which a law does not hold", KB_WORD(what, CHANGES, "what is changed"),
         KB_BOOL(again, false, "another launch follows"), KB_BOOL(unread, false, "a message is not received"))
{
    struct kb_pes all = kb_pes("*");
    kb_tensor a = kb_tensor_new("a", KB_f16, kb_2d(64 * all.count, 64), kb_rows(KB_HBM, all));
    kb_tensor c = kb_tensor_new("c", KB_f16, kb_2d(64 * all.count, 64), kb_rows(KB_HBM, all));
    kb_fill(a, 1);
    kb_wait(kb_launch(breaks, all, &(struct breaks_args){a, c, kb_bool(unread)}));
    tamper(kb_word(what));
    if (kb_bool(again))
        kb_wait(kb_launch(delays, all, &(struct breaks_args){a, c}));
}

/* What is changed in any run, a replay as well. */
static bool breaks_always(const char *what)
{
    const char *given = getenv("BREAKS");
    return given && !strcmp(given, what);
}

/* Data are on their way that nobody has sent. */
__attribute__((constructor)) static void before_runs(void)
{
    if (breaks_always("data"))
        kb_nodes[7].departing = 1;
}

void accounts_close(uint64_t end_ps);

void accounts_close(uint64_t end_ps)
{
    accounts_close_rightly(end_ps);
    if (breaks_always("account"))
        accounts.at[0].reason_ps[0]++;
    if (breaks_always("engines"))                       /* then the kernel's own account adds up */
        accounts.at[0].reason_ps[0]++, accounts.at[0].end_ps++;
}
