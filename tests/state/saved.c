/* saved.c: two launches, the second one again from a saved state: for tests/state.t.
 *
 * machine/state.c is compiled into this file, in the place of the one in the library, so that each row of
 * machine/state.def can be left out. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_left_out(const char *structure, const char *field);
#define ROW_IS_READ(operation, structure, field) (!is_left_out(#structure, #field))
#include "machine/state.c"

#include "common/arena.h"
#include "kb/host.h"
#include "launch/kernel.h"
#include "launch/launch.h"

static char left_out[96];                               /* "PE tcm": the row that is not read */

static bool is_left_out(const char *structure, const char *field)
{
    char row[96];
    snprintf(row, sizeof row, "%s %s", structure, field);
    return !strcmp(row, left_out);
}

static uint64_t own(const struct pe *pe, enum space space, uint64_t offset)
{
    uint32_t number = pe_number(pe), cube = number / kb_shape.pes;
    return address_make(space, cube / kb_shape.cubes, cube % kb_shape.cubes,
                        space == SPACE_SRAM ? 0 : number % kb_shape.pes, offset);
}

/* Every PE sends to the next one, receives, reads the same bytes of the first slice as the others, and multiplies what
 * lies somewhere in sram and HBM, through the MMU. */
static uint64_t offset;

static void body(struct tl *tl, const void *arg)
{
    uint32_t number = pe_number(tl->pe), count = pe_count(), tcm = kb_attrs.pe_tcm_reserved_bytes;
    struct request sends = {.kind = COMMAND_send, .peer = (number + 1) % count, .tcm = tcm, .bytes = 512};
    struct request receives = {.kind = COMMAND_recv, .peer = (number + count - 1) % count, .tcm = tcm};
    struct request gemm = {
        .kind = COMMAND_gemm_tiles, .dtype = DTYPE_f16, .out_dtype = DTYPE_f16, .m = 64, .k = 64, .n = 64, .tile_m = 16,
        .tile_k = 16, .tile_n = 16, .virtual_address = {false, true, false},
        .address = {own(tl->pe, SPACE_SRAM, 0x20000), 0, own(tl->pe, SPACE_HBM, offset)}};
    (void)arg;
    struct request first = {.kind = COMMAND_load, .address = {own(tl->pe, SPACE_HBM, 0x10000)}, .tcm = tcm, .bytes = 64};
    struct request last = {.kind = COMMAND_load, .address = {own(tl->pe, SPACE_HBM, offset)}, .tcm = tcm, .bytes = 64};
    struct request common = {.kind = COMMAND_load, .address = {own(kb_pe, SPACE_HBM, 0)}, .tcm = tcm, .bytes = 4096};
    const struct request *asks[] = {&first, &sends, &receives, &common, &gemm, &gemm, &last};
    for (size_t i = 0; i < COUNT_OF(asks); i++)
        kernel_wait(tl, kernel_submit(tl, asks[i])->number);
}

/* The first two PEs, with one another. */
static void sends(struct tl *tl, const void *arg)
{
    (void)arg;
    kernel_wait(tl, kernel_submit(tl, &(struct request){.kind = COMMAND_send, .peer = 1 - pe_number(tl->pe),
                                                        .tcm = kb_attrs.pe_tcm_reserved_bytes, .bytes = 64})->number);
}

static void receives(struct tl *tl, const void *arg)
{
    (void)arg;
    kernel_wait(tl, kernel_submit(tl, &(struct request){.kind = COMMAND_recv, .peer = 1 - pe_number(tl->pe),
                                                        .tcm = kb_attrs.pe_tcm_reserved_bytes})->number);
}

static void delays(struct tl *tl, const void *arg)
{
    (void)arg;
    kernel_delay(tl, 10000000);
}

static struct launch *launch(kernel_fn *kernel, uint32_t first, uint32_t end)
{
    uint32_t *pes = arena_alloc(end - first, sizeof *pes);
    for (uint32_t i = first; i < end; i++)
        pes[i - first] = i;
    return launch_submit(&(struct launch_part){.program = "program", .body = kernel, .pes = pes, .count = end - first}, 1,
                         &(struct launch_options){0});
}

/* After a launch, and after a while, in which all credits come back. */
static void save_after(uint64_t at, struct state_image *image)
{
    offset = at;
    launch_wait(launch(body, 0, pe_count()));
    launch_wait(launch(delays, pe_count() - 1, pe_count()));
    const char *why = machine_state_save(image);
    if (why)
        printf("refused: %s\n", why);
}

static void refusals(struct state_image *image)
{
    struct launch *left = launch(receives, 0, 1);
    printf("launched: %s\n", machine_state_save(image));
    launch_wait(launch(delays, 2, 3));
    printf("receives: %s\n", machine_state_restore(image));
    launch_wait(launch(sends, 1, 2));
    launch_wait(left);
    launch_wait(launch(sends, 0, 1));
    launch_wait(launch(delays, 2, 3));
    printf("sent: %s\n", machine_state_save(image));
    launch_wait(launch(receives, 1, 2));
    launch_wait(launch(delays, 2, 3));
    printf("received: %s\n", machine_state_save(image) ? "refused" : "saved");
}

KB_BENCH(saved, "a launch, and another one, maybe again", KB_BOOL(again, false, "the second one from a saved state"),
         KB_TEXT(without, "", "the row"), KB_BOOL(refused, false, "what is under way when state is saved"))
{
    struct state_image image = {0}, first = {0}, second = {0};
    snprintf(left_out, sizeof left_out, "%s", kb_text(without));
    for (uint32_t i = 0; i < pe_count(); i++)
        mmu_map(&kb_pe[i], 0, 16, own(&kb_pe[i], SPACE_HBM, 0x40000));
    if (kb_bool(refused)) {
        refusals(&image);
        return;
    }
    save_after(0x10000, &image);
    save_after(0x80200, &first);
    if (kb_bool(again)) {
        machine_state_restore(&image);
        mmu_unmap(&kb_pe[0], 0, 16);
        machine_state_restore(&image);
        save_after(0x80200, &second);
        bool same = first.bytes.count == second.bytes.count &&
                    !memcmp(first.bytes.at, second.bytes.at, first.bytes.count);
        printf("%s\n", same ? "the same state" : "another state");
    }
    printf("engines of DMA were busy for %" PRIu64 " ps\n", kb_pe[0].dma.total_ps);
    state_image_free(&image);
    state_image_free(&first);
    state_image_free(&second);
}
