/* hbm_banks.c: the timing of topologies/impl/hbm_banks.c, to the picosecond: HBM3 at 6.4 Gb/s, two pseudo channels of
 * 32 GB/s. */
#include <inttypes.h>
#include <stdio.h>

#include <kb/impl.h>

#define hbm_banks_banks UINT64_C(4)
#define hbm_banks_tRCD UINT64_C(19400)
#define hbm_banks_tRP UINT64_C(16250)
#define hbm_banks_tRAS UINT64_C(28100)
#define hbm_banks_tFAW UINT64_C(15000)
#define hbm_banks_tRFC UINT64_C(350000)
#define hbm_banks_tREFI UINT64_C(3900000)
enum { hbm_banks_nodes = 16 };

#include "topologies/impl/hbm_banks.c"

enum { ACCESS = 10000, BLOCK = 256, BLOCK_PS = 8000, ROW = 1024, PCS = 2 };

const struct attrs kb_attrs = {
    .hbm_ctrl_pcs = PCS, .hbm_ctrl_pc_bw_bps = 32000000000, .hbm_ctrl_interleave_bytes = BLOCK,
    .hbm_ctrl_row_bytes = ROW, .hbm_ctrl_access_ps = ACCESS,
};

static int tests;
static uint32_t memory;                                 /* a fresh one for each idea */

static void expect(const char *what, uint64_t got, uint64_t want)
{
    printf("%s %d - %s\n", got == want ? "ok" : "not ok", ++tests, what);
    if (got != want)
        printf("# got %" PRIu64 "\n# want %" PRIu64 "\n", got, want);
}

static struct kb_served ask(bool writes, uint64_t offset, uint64_t bytes, uint64_t at_ps)
{
    struct kb_memory_request request = {memory, writes, offset, bytes, at_ps};
    return hbm_banks_service(hbm_banks_state(memory), &request);
}

/* The first byte of a row of pseudo channel 0. */
static uint64_t row(uint64_t number)
{
    return number * ROW * PCS;
}

static void rows(void)
{
    struct kb_served first = ask(false, row(0), BLOCK, 1000);
    expect("a read of a closed row waits for its activation", first.first_ps, 1000 + hbm_banks_tRCD + ACCESS);
    expect("the data of a read follow its activation", first.last_ps, 1000 + hbm_banks_tRCD + BLOCK_PS + ACCESS);
    expect("a read of an open row moves data at once", ask(false, row(0), BLOCK, 100000).first_ps, 100000 + ACCESS);
    expect("a read of another row of the bank waits for the precharge", ask(false, row(4), BLOCK, 200000).first_ps,
           200000 + hbm_banks_tRP + hbm_banks_tRCD + ACCESS);
    expect("a row is precharged no earlier than tRAS after its activation", ask(false, row(8), BLOCK, 216251).first_ps,
           200000 + hbm_banks_tRP + hbm_banks_tRAS + hbm_banks_tRP + hbm_banks_tRCD + ACCESS);
    expect("a write has no access latency", ask(true, row(8), BLOCK, 400000).last_ps, 400000 + BLOCK_PS);
    expect("each pseudo channel has its own open rows", ask(false, BLOCK, BLOCK, 400000).first_ps,
           400000 + hbm_banks_tRCD + ACCESS);
    memory++;
}

static void pieces(void)
{
    struct kb_served both = ask(false, 0, 2 * BLOCK, 0);
    expect("two pseudo channels move data at the same time", both.last_ps, hbm_banks_tRCD + BLOCK_PS + ACCESS);
    expect("two pseudo channels that move data are busy twice as long", both.busy_ps, 2 * BLOCK_PS);
    struct kb_served odd = ask(false, 100, BLOCK, 100000);
    expect("a request can begin and end within a block", odd.last_ps, 100000 + kb_move_ps(156, 32000000000) + ACCESS);
    struct kb_served rows = ask(true, row(1), 2 * ROW * PCS, 200000);
    expect("the second row is activated while data of the first move", rows.last_ps,
           200000 + hbm_banks_tRCD + 2 * (ROW / BLOCK) * BLOCK_PS);
    memory++;
}

static void window(void)
{
    for (uint64_t i = 0; i < 4; i++)
        ask(false, row(i), 1, 0);
    expect("a fifth activation waits until tFAW after the first", ask(false, row(4), 1, 0).first_ps,
           kb_later(hbm_banks_tFAW, hbm_banks_tRAS + hbm_banks_tRP) + hbm_banks_tRCD + ACCESS);
    memory++;
    for (uint64_t i = 0; i < 4; i++)
        ask(false, row(i), 1, 1000000 + i);
    uint64_t before = hbm_banks_tFAW + 1000000;
    struct bank *bank = &hbm_banks_state(memory)->channel[0].bank[0];
    *bank = (struct bank){0};
    expect("a fifth activation waits until tFAW in a closed bank as well", ask(false, row(4), 1, 1000010).first_ps,
           before + hbm_banks_tRCD + ACCESS);
    memory++;
}

static void refresh(void)
{
    ask(false, row(0), BLOCK, 0);
    expect("a row stays open until a refresh is due", ask(false, row(0), BLOCK, hbm_banks_tREFI - BLOCK_PS).first_ps,
           hbm_banks_tREFI - BLOCK_PS + ACCESS);
    expect("a request during a refresh waits and activates the row again",
           ask(false, row(0), BLOCK, hbm_banks_tREFI).first_ps,
           hbm_banks_tREFI + hbm_banks_tRFC + hbm_banks_tRCD + ACCESS);
    uint64_t behind = 2 * hbm_banks_tREFI + hbm_banks_tRFC;
    expect("after a refresh the rows are closed", ask(false, row(0), BLOCK, behind).first_ps,
           behind + hbm_banks_tRCD + ACCESS);
    memory++;
    uint64_t at = hbm_banks_tREFI - 10000;
    ask(true, row(0), 2 * BLOCK, at - hbm_banks_tRCD);
    ask(true, row(0), PCS * BLOCK * 3, at);
    expect("a request that waits for its channel until a refresh starts waits until the refresh ends",
           ask(true, row(0), BLOCK, at).last_ps, hbm_banks_tREFI + hbm_banks_tRFC + hbm_banks_tRCD + BLOCK_PS);
}

int main(void)
{
    rows();
    pieces();
    window();
    refresh();
    printf("1..%d\n", tests);
}
