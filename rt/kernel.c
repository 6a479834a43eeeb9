/* kernel.c: kernels as coroutines: submission with its checks, waiting, faults. */
#include "kernel.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "channel.h"
#include "emitted.h"
#include "ops.h"
#include "pe.h"
#include "text/base.h"

static const char *const fault_names[FAULTS] = {
#define FAULT(code) #code,
#include "kb/faults.def"
#undef FAULT
};

static const char *const command_names[COMMANDS] = {
#define COMMAND(name, word) word,
#include "kb/commands.def"
#undef COMMAND
};

/* ---- the coroutine */

static void kernel_body(void *arg)
{
    struct tl *tl = arg;
    tl->body(tl, tl->arg);
    for (struct command *command = tl->first; command; command = command->next)
        kernel_wait(tl, command);
}

static void kernel_resume(struct event *event)
{
    struct tl *tl = container_of(event, struct tl, event);
    if (coro_resume(tl->coro))
        return;
    coro_free(tl->coro);
    tl->ended(tl);
}

static void kernel_resume_at(struct tl *tl, uint64_t t_ps)
{
    uint32_t rank = pe_rank(tl->pe, NODE_pe_cpu);
    tl->event = (struct event){event_order(rank, CLASS_KERNEL, 0), 0, kernel_resume};
    event_at(&tl->event, t_ps);
}

void kernel_start(struct tl *tl, uint64_t t_ps, void (*ended)(struct tl *))
{
    tl->ended = ended;
    tl->pe->kernel = tl;
    tl->coro = coro_new(kernel_body, tl, kb_attrs.pe_cpu_stack_bytes);
    kernel_resume_at(tl, t_ps);
}

void kernel_command_complete(struct command *command)
{
    struct tl *tl = command->pe->kernel;
    if (tl->awaited != command)
        return;
    tl->awaited = NULL;
    kernel_resume_at(tl, now_ps);
}

void kernel_wait(struct tl *tl, struct command *command)
{
    if (command->complete)
        return;
    tl->awaited = command;
    coro_suspend(tl->coro);
}

void kernel_delay(struct tl *tl, uint64_t ps)
{
    kernel_resume_at(tl, time_after(now_ps, ps));
    coro_suspend(tl->coro);
}

/* ---- submission: checked in the order KERNEL_ERROR, BAD_ADDRESS, TILE_TOO_LARGE */

static void check_gemm(const struct command *command)
{
    if (!kb_gemm_k_per_cycle[command->ask.dtype])
        command_fault(command, FAULT_KERNEL_ERROR, NODE_pe_cpu, "pe_gemm has no k_per_cycle for %s",
                      dtype_names[command->ask.dtype]);
}

static void check_math(const struct command *command, enum dtype dtype, uint16_t op)
{
    if (!op_known(op))
        command_fault(command, FAULT_KERNEL_ERROR, NODE_pe_cpu, "pe_math has no op '%s'", op_name(op));
    if (!kb_math_lanes[dtype])
        command_fault(command, FAULT_KERNEL_ERROR, NODE_pe_cpu, "pe_math has no lanes for %s", dtype_names[dtype]);
}

static void check_engines(const struct command *command)
{
    const struct request *ask = &command->ask;
    if (ask->kind == COMMAND_gemm || ask->kind == COMMAND_gemm_tiles)
        check_gemm(command);
    if (ask->kind == COMMAND_math || ask->kind == COMMAND_math_tiles)
        check_math(command, ask->dtype, ask->op);
    for (uint32_t i = 0; i < ask->epilogues; i++)
        check_math(command, ask->out_dtype, ask->epilogue[i].op);
}

static void check_tcm(const struct command *command)
{
    const struct request *ask = &command->ask;
    uint64_t size = kb_attrs.pe_tcm_size_bytes, reserved = kb_attrs.pe_tcm_reserved_bytes;
    if (ask->kind != COMMAND_load && ask->kind != COMMAND_store)
        return;
    if (ask->tcm < reserved || ask->tcm > size || ask->bytes > size - ask->tcm)
        command_fault(command, FAULT_BAD_ADDRESS, NODE_pe_dma,
                      "bytes 0x%" PRIx64 " to 0x%" PRIx64 " lie outside the TCM's Allocatable region, 0x%" PRIx64
                      " to 0x%" PRIx64,
                      ask->tcm, sum(ask->tcm, ask->bytes), reserved, size);
}

/* The largest tile is the first, or the first that stores. */
static void check_tiles(const struct command *command)
{
    if (command->ask.kind != COMMAND_gemm_tiles && command->ask.kind != COMMAND_math_tiles)
        return;
    uint64_t ids[] = {0, command->tiles_k - 1};
    for (unsigned i = 0; i < COUNT_OF(ids); i++) {
        struct tile tile = plan_tile(command, ids[i]);
        uint64_t bytes = plan_buffer_bytes(command, &tile);
        if (bytes > kb_attrs.pe_tcm_reserved_bytes)
            command_fault(command, FAULT_TILE_TOO_LARGE, NODE_pe_scheduler,
                          "tile %" PRIu64 " needs buffers of %" PRIu64 " bytes, the scheduler's region of the TCM has %" PRIu64,
                          tile.id, bytes, kb_attrs.pe_tcm_reserved_bytes);
    }
}

struct command *kernel_submit(struct tl *tl, const struct request *ask)
{
    kernel_delay(tl, kb_attrs.pe_cpu_overhead_ps);
    struct command *command = arena_alloc(1, sizeof *command);
    command->ask = *ask;
    command->pe = tl->pe;
    command->number = tl->commands;
    command->submitted_ps = now_ps;
    plan_command(command);
    check_engines(command);
    check_tcm(command);
    check_tiles(command);
    tl->commands++;
    *(tl->last ? &tl->last->next : &tl->first) = command;
    tl->last = command;
    pe_submit(tl->pe, command);
    return command;
}

/* ---- faults */

static _Noreturn void fault_stop(const struct tl *tl, enum fault code, struct place node, const char *file, uint32_t line,
                                 const char *message)
{
    fflush(stdout);
    fprintf(stderr, "fault: %s at %s, %" PRIu64 " ps, kernel %s: %s\n", fault_names[code], place_name(node), now_ps, tl->name,
            message);
    if (file)
        fprintf(stderr, "  called at %s:%u\n", file, (unsigned)line);
    exit(1);
}

void kernel_fault(struct tl *tl, enum fault code, const char *file, uint32_t line, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fault_stop(tl, code, place_pe(pe_number(tl->pe), NODE_pe_cpu), file, line, message);
}

void command_fault(const struct command *command, enum fault code, enum node_kind part, const char *format, ...)
{
    char message[512];
    int used = snprintf(message, sizeof message, "%s %u: ", command_names[command->ask.kind], (unsigned)command->number);
    va_list args;
    va_start(args, format);
    vsnprintf(message + used, sizeof message - (size_t)used, format, args);
    va_end(args);
    fault_stop(command->pe->kernel, code, place_pe(pe_number(command->pe), part), command->ask.file, command->ask.line, message);
}
