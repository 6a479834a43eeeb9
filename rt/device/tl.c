/* tl.c: the device library's calls that submit nothing: where a kernel is, waiting, words. shard.c has shards,
 * buffer.c buffers, move.c what moves bytes, simple.c simple compute, composite.c composites. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "device.h"
#include "machine/emitted.h"
#include "flight.h"
#include "machine/tiling.h"
#include "races/race.h"
#include "sim/loop.h"
#include "common/arena.h"

/* Its last commands are complete, which its end waits for in any case. */
static void end_raced(struct tl *tl)
{
    while (tl->first)
        kernel_wait(tl, tl->first->number);
    race_kernel_ended(pe_number(tl->pe));
}

void device_run(struct tl *tl, const void *arg)
{
    const struct device_program *program = arg;
    tl->data = arena_alloc(1, sizeof(struct device_state));
    if (races_on)
        racers_kernel_begins(pe_number(tl->pe), program->known);
    program->kernel->body(tl, program->arg);
    buffers_end(tl);
    if (races_on)
        end_raced(tl);
}

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

uint64_t tl_now(const struct tl *tl)
{
    (void)tl;                                           /* one clock for all */
    return sim_now_ps();
}

/* ---- time */

void tl_delay(struct tl *tl, uint64_t ps)
{
    kernel_delay(tl, ps);
}

void tl_wait_at(struct tl *tl, tl_handle handle, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_wait", file, line};
    call_wait(&call, handle);
    flights_waited(tl, call_number(&call, handle));
}

void tl_after_at(struct tl *tl, tl_handle handle, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_after", file, line};
    call_after(&call, handle);
}

/* ---- words */

void tl_fail_at(struct tl *tl, int code, const char *file, uint32_t line, const char *format, ...)
{
    struct call call = {tl, "tl_fail", file, line};
    char message[600];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    call_error(&call, "code %d: %s", code, message);
}

void tl_log(struct tl *tl, const char *format, ...)
{
    char message[600];                                  /* whole before it is said: its arguments may be wrong */
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fprintf(stderr, "%" PRIu64 " ps %s kernel %s: %s\n", sim_now_ps(),
            place_name(place_pe(pe_number(tl->pe), NODE_pe_cpu)), tl->name, message);
}
