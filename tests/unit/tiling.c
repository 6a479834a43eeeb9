/* tiling.c: composites as tiles: which stages a tile has, where its blocks lie, what buffers it takes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "machine/tiling.h"

const struct attrs kb_attrs;                             /* of no machine: only a generator of plans reads them */

static int tests;

static void expect(const char *what, const char *got, const char *want)
{
    bool good = !strcmp(got, want);
    printf("%s %d - %s\n", good ? "ok" : "not ok", ++tests, what);
    if (!good)
        printf("# got %s\n# want %s\n", got, want);
}

/* Stages of a tile: one letter each, a MATH with the number of its op. */
static const char *stages(const struct command *command, uint64_t id)
{
    static char text[128];
    struct tile tile = tiling_tile(command, id);
    text[0] = 0;
    for (uint32_t i = 0;; i++) {
        struct stage stage = tile.shape->stages[i];
        if (stage.kind == STAGE_NONE)
            return text;
        size_t used = strlen(text);
        if (stage.kind == STAGE_DMA_READ)
            snprintf(text + used, sizeof text - used, "R%c ", "ABC"[stage.operand]);
        else if (stage.kind == STAGE_MATH)
            snprintf(text + used, sizeof text - used, "M%d ", stage.op);
        else
            snprintf(text + used, sizeof text - used, "%c ", "C?FG?SW"[stage.kind]);
    }
}

static struct command gemm(uint64_t m, uint64_t k, uint64_t n, const struct epilogue *epilogue, uint32_t epilogues)
{
    struct command command = {.ask = {.kind = COMMAND_gemm_tiles, .dtype = DTYPE_f16, .out_dtype = DTYPE_f32,
                                      .m = m, .k = k, .n = n, .tile_m = 4, .tile_k = 8, .tile_n = 16,
                                      .epilogue = epilogue, .epilogues = epilogues}};
    tiling_make(&command);
    return command;
}

static void stage_lists(void)
{
    static const struct epilogue ops[] = {{1, SCOPE_OUTPUT_TILE}, {2, SCOPE_K_TILE}, {3, SCOPE_ONCE}, {4, SCOPE_K_TILE},
                                          {5, SCOPE_OUTPUT_TILE}};
    struct command plain = gemm(4, 16, 32, NULL, 0), full = gemm(4, 16, 32, ops, 5), pinned = plain;
    expect("a tile that is not the last along k stores nothing", stages(&plain, 0), "RA RB F G ");
    expect("the last tile along k stores", stages(&plain, 1), "RA RB F G S W ");
    pinned.ask.pinned[OPERAND_A] = true;
    tiling_make(&pinned);
    expect("a pinned operand is not read", stages(&pinned, 1), "RB F G S W ");
    pinned.ask.pinned[OPERAND_B] = true;
    tiling_make(&pinned);
    expect("two pinned operands are not read", stages(&pinned, 0), "F G ");
    expect("epilogues of k tiles follow every gemm", stages(&full, 0), "RA RB F G M2 M4 ");
    expect("epilogues of output tiles follow the last gemm along k, in their order", stages(&full, 1),
           "RA RB F G M2 M4 M1 M5 S W ");
    expect("an epilogue of scope once follows the last tile alone", stages(&full, 3), "RA RB F G M2 M4 M1 M5 M3 S W ");
    struct command math = {.ask = {.kind = COMMAND_math_tiles, .m = 4, .n = 4, .tile_m = 4, .tile_n = 4, .op = 7}};
    tiling_make(&math);
    expect("a tile of math has one operand and one op", stages(&math, 0), "RA F M7 S W ");
    struct command load = {.ask = {.kind = COMMAND_load}};
    tiling_make(&load);
    expect("a load is one stage", stages(&load, 0), "RA ");
}

static void blocks(void)
{
    char text[128];
    struct command command = gemm(10, 20, 40, NULL, 0);
    uint64_t last = command.tiles - 1;
    struct tile tile = tiling_tile(&command, last);
    snprintf(text, sizeof text, "%" PRIu64 ": %" PRIu64 " %" PRIu64 " %" PRIu64, command.tiles, tile.shape->m, tile.shape->k, tile.shape->n);
    expect("tiles at the edges have the rest of the elements", text, "27: 2 4 8");
    struct tile next = tiling_tile(&command, 0);
    bool same = true, rest = true;
    for (uint64_t id = 1; id < command.tiles; id++) {
        struct tile found = tiling_tile(&command, id);
        tiling_next(&command, &next);
        same &= next.id == id && next.i_m == found.i_m && next.i_k == found.i_k && next.i_n == found.i_n;
        same &= next.shape == found.shape && next.shape->stages;
        rest &= next.shape->m == (next.i_m == 2 ? 2 : 4) && next.shape->k == (next.i_k == 2 ? 4 : 8);
        rest &= next.shape->n == (next.i_n == 2 ? 8 : 16);
    }
    expect("every tile at an edge has the rest of the elements", rest ? "always" : "not always", "always");
    expect("tiling_next gives what tiling_tile gives", same ? "always" : "not always", "always");
    /* A: 8 rows above, 2 rows of 16 columns before; B: 16 rows above, 4 rows of 32 before; C: 8 rows above, 2 of 32
     * before. */
    snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " %" PRIu64, tiling_address(&command, &tile, OPERAND_A),
             tiling_address(&command, &tile, OPERAND_B), tiling_address(&command, &tile, OPERAND_C));
    expect("the blocks of an operand lie one after the other", text, "384 1536 1536");
    snprintf(text, sizeof text, "%" PRIu64, tile.shape->buffer_bytes);
    expect("each buffer of a tile is rounded up to 64 bytes", text, "192");
    command.ask.address[OPERAND_A] = (UINT64_C(5) << 56) | ((UINT64_C(1) << 36) - 64);
    snprintf(text, sizeof text, "%" PRIx64, tiling_address(&command, &tile, OPERAND_A));
    expect("the offset of an address wraps without a carry", text, "500000000000140");
}

int main(void)
{
    stage_lists();
    blocks();
    printf("1..%d\n", tests);
    return 0;
}
