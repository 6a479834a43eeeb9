/* program.c: kernels that submit and await what a stream, or somebody outside, tells them. */
#include "program.h"

#include "common/arena.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "machine/peers.h"

uint64_t program_address(const struct stream_address *address, const struct pe *pe)
{
    if (address->is_va)
        return address->va;
    uint32_t number = pe_number(pe), cube = number / kb_shape.pes;
    uint32_t own_pe = address->space == SPACE_SRAM ? 0 : number % kb_shape.pes;
    if (address->space == SPACE_HBM && kb_shape.slices)
        own_pe = own_slice(number) % kb_shape.slices;
    return address_make(address->space, address->sip == OWN ? cube / kb_shape.cubes : (uint32_t)address->sip,
                        address->cube == OWN ? cube % kb_shape.cubes : (uint32_t)address->cube,
                        address->pe == OWN ? own_pe : (uint32_t)address->pe, address->offset);
}

static void issue(struct tl *tl, const struct stream_step *step)
{
    struct request ask = step->ask;
    ask.line = step->line;
    if (step->peer_count)
        peers_set(&ask, step->peers, step->peer_count);
    for (unsigned i = 0; i < OPERANDS; i++) {
        ask.address[i] = program_address(&step->address[i], tl->pe);
        ask.virtual_address[i] = step->address[i].is_va && kb_attrs.pe_mmu_enabled;
    }
    kernel_issue(tl, &ask);
}

static void submit(struct tl *tl, const struct stream_step *step)
{
    const struct command *command = kernel_submit_issued(tl);
    if (step->blocks)
        kernel_wait(tl, command->number);
}

/* Goes on with a step: a part of it ends with a wait. Returns whether it is over; if not, the kernel waits. */
static bool take(struct tl *tl, const struct stream_step *step)
{
    tl->call.line = step->line;                         /* without a file: it is the stream's */
    switch (step->kind) {
    case STEP_DELAY:
        if (tl->part++ == 0)
            kernel_delay(tl, step->delay_ps);
        break;
    case STEP_WAIT:
        while (tl->part < step->awaited_count && !tl->waits)
            kernel_wait(tl, step->awaited[tl->part++]);
        break;
    case STEP_COMMAND:
        if (tl->part == 0)
            issue(tl, step);
        else if (tl->part == 1)
            submit(tl, step);
        tl->part++;
        break;
    }
    if (tl->waits)
        return false;
    tl->part = 0;
    return true;
}

void program_run(struct tl *tl, const void *arg)
{
    const struct stream_program *program = arg;
    while (tl->step < program->count && take(tl, &program->steps[tl->step]))
        tl->step++;
}

uint64_t program_commands(const struct tl *tl)
{
    const struct stream_program *program = tl->arg;
    return program->commands;
}

/* ---- steps from outside */

/* A step that is not over. */
struct fed_step {
    const struct stream_step *step;
    struct fed_step *next;
};

struct fed_program {
    struct fed_pe {
        struct ids *ids;
        struct fed_step *first, *last;                      /* first: the one under way, too */
        struct tl *waits;                               /* its kernel, which has no step; NULL: it does not wait */
    } *pes;                                             /* in rank order */
    uint32_t count;
    bool ended;
};

struct fed_program *fed_program_new(uint32_t pes)
{
    struct fed_program *program = arena_alloc(1, sizeof *program);
    *program = (struct fed_program){.pes = arena_alloc(pes, sizeof *program->pes), .count = pes};
    for (uint32_t i = 0; i < pes; i++)
        program->pes[i].ids = stream_ids();
    return program;
}

void fed_program_run(struct tl *tl, const void *arg)
{
    const struct fed_program *program = arg;
    struct fed_pe *pe = &program->pes[tl->index];
    while (pe->first && take(tl, pe->first->step))
        pe->first = pe->first->next;
    if (tl->waits || program->ended)
        return;
    pe->waits = tl;
    kernel_sleep(tl);
}

struct ids *fed_program_ids(struct fed_program *program, uint32_t i)
{
    return program->pes[i].ids;
}

static void go_on(struct fed_pe *pe)
{
    if (pe->waits)
        kernel_go_on(pe->waits);
    pe->waits = NULL;
}

void fed_program_add(struct fed_program *program, uint32_t i, const struct stream_step *step)
{
    struct fed_pe *pe = &program->pes[i];
    struct fed_step *fed = arena_alloc(1, sizeof *fed);
    fed->step = step;
    *(pe->first ? &pe->last->next : &pe->first) = fed;
    pe->last = fed;
    go_on(pe);
}

void fed_program_end(struct fed_program *program)
{
    program->ended = true;
    for (uint32_t i = 0; i < program->count; i++)
        go_on(&program->pes[i]);
}

bool fed_program_ended(const struct fed_program *program)
{
    return program->ended;
}

bool fed_program_waits(const struct fed_program *program)
{
    for (uint32_t i = 0; i < program->count; i++)
        if (program->pes[i].waits && !program->pes[i].waits->failure.set)
            return true;
    return false;
}
