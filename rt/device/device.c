/* device.c: a kernel's life, and the calls of the device library that submit nothing: place, time, waits, log.
 *
 * The other calls: shard.c (shards and views), buffer.c (allocation), move.c (loads, stores, messages), compute.c (ops
 * on tensors in the TCM), composite.c (tiled gemm and math). */
#include "device.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "buffer.h"
#include "common/arena.h"
#include "common/diag.h"
#include "common/fail.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "races/race.h"
#include "sim/loop.h"

struct kept_out kept_out;
struct untimed untimed;

static void state_free(struct tl *tl)
{
    struct device_state *state = device_state(tl);
    buffer_free_all(tl);
    hazards_end(tl);
    array_free(&state->after);
}

void device_run(struct tl *tl, const void *arg)
{
    const struct kernel_start *start = arg;
    struct device_state *state = tl->data = arena_alloc(1, sizeof *state);
    state->pe = pe_number(tl->pe);
    state->tcm = memory_tcm(state->pe);
    state->tcm_address = memory_address(state->tcm, 0);
    hazards_begin(tl);
    if (races_on)
        hb_kernel_begins(state->pe, start->known);
    start->kernel->body(tl, start->arg);
    state_free(tl);
    if (!races_on)
        return;
    while (tl->first)                                   /* costs no time: the end of a kernel waits for them anyway */
        kernel_wait(tl, tl->first->number);
    race_kernel_ended(device_state(tl)->pe);
}

void device_reset(void)
{
    for (struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++)
        if (pe->kernel && pe->kernel->data)
            state_free(pe->kernel);
    hazards_reset();
    kept_out = (struct kept_out){0};
    untimed = (struct untimed){0};
}

/* ---- place and time */

uint32_t tl_pe(const struct tl *tl)
{
    return tl->index;
}

uint32_t tl_num_pes(const struct tl *tl)
{
    return tl->count;
}

uint32_t tl_sip(const struct tl *tl)
{
    return pe_number(tl->pe) / kb_shape.pes / kb_shape.cubes;
}

uint32_t tl_cube(const struct tl *tl)
{
    return pe_number(tl->pe) / kb_shape.pes % kb_shape.cubes;
}

struct tl_place tl_place_at(struct tl *tl, uint32_t peer, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_place", file, line);
    uint32_t number = call_peer(&call, peer), cube = number / kb_shape.pes % kb_shape.cubes;
    return (struct tl_place){.number = number, .sip = number / kb_shape.pes / kb_shape.cubes, .cube = cube,
                             .pe = number % kb_shape.pes, .cube_row = cube / kb_shape.cube_cols,
                             .cube_col = cube % kb_shape.cube_cols};
}

uint64_t tl_now(const struct tl *tl)
{
    (void)tl;                                           /* all PEs share one clock */
    return sim_now_ps();
}

void tl_delay_at(struct tl *tl, uint64_t ps, const char *file, uint32_t line)
{
    call_of(tl, "tl_delay", file, line);
    kernel_delay(tl, ps);
}

/* ---- commands that were submitted */

void tl_wait_at(struct tl *tl, tl_handle handle, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_wait", file, line);
    call_wait(&call, handle);
    hazards_waited(tl, call_number(&call, handle));
}

void tl_after_at(struct tl *tl, tl_handle handle, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_after", file, line);
    call_after(&call, handle);
    untimed.after++;
}

void tl_data_op(struct tl *tl, bool is_data_op)
{
    device_state(tl)->keeps_next_out = !is_data_op;
}

void tl_data_op_default(struct tl *tl, bool is_data_op)
{
    struct device_state *state = device_state(tl);
    state->keeps_out = state->keeps_next_out = !is_data_op;
}

/* ---- messages to people */

void tl_fail_at(struct tl *tl, int code, const char *file, uint32_t line, const char *format, ...)
{
    struct call call = call_of(tl, "tl_fail", file, line);
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    call_error(&call, "code %d: %s", code, printable(text));
}

void tl_log(struct tl *tl, const char *format, ...)
{
    char text[600];                                     /* complete before any of it is printed: arguments may be bad */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct arena_mark mark = arena_mark();
    message("%" PRIu64 " ps %s kernel %s: %s\n", sim_now_ps(),
            place_name(place_pe(pe_number(tl->pe), NODE_pe_cpu)), tl->name, printable(text));
    arena_release(mark);
}
