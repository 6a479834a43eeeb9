/* deadlock.c: when nothing is due any more and kernels still wait: who waits for whom.
 *
 * A kernel waits in one command, and the only commands that can wait for ever are sends, for a free slot, and receives,
 * for a message: for one other PE each. So from every waiting PE a way leads on from PE to PE, into a cycle or to a PE
 * that will never act. Every cycle and every such end is told once, with the first way that leads there. */
#include "deadlock.h"

#include <inttypes.h>
#include <stdio.h>

#include "machine/emitted.h"
#include "launch.h"
#include "machine/pe.h"
#include "machine/ipcq.h"
#include "common/arena.h"

enum { ENDS = 8, WAYS = 8 };                            /* PEs told of each end of a way; ways told */

static const struct kernel_run *run_on(const struct pe *pe)
{
    return pe->kernel ? container_of(pe->kernel, struct kernel_run, tl) : NULL;
}

static bool waits(const struct pe *pe)
{
    return pe->kernel && !run_on(pe)->ended;
}

/* What a waiting kernel waits in. */
static const struct command *stuck(const struct pe *pe)
{
    return pe->kernel->awaited;
}

/* The PE that has to act for a waiting one to go on; NULL: none that is known. */
static const struct pe *waits_for(const struct pe *pe)
{
    const struct command *command = stuck(pe);
    bool rings = command && (command->ask.kind == COMMAND_send || command->ask.kind == COMMAND_recv);
    return rings ? &kb_pe[command->ask.peer] : NULL;
}

/* ---- one PE */

/* The first tile of a command that an engine serves or that waits in a queue; NULL: none. */
static const struct token *tile_of(const struct pe *pe, const struct command *command)
{
    for (const struct server *server = pe->servers; server < pe->servers + kb_pe_servers; server++)
        if (server->token && server->token->command == command)
            return server->token;
    for (unsigned stage = 0; stage < STAGES; stage++) {
        const struct token *heads[] = {pe->direct[stage].head, pe->queue[stage].head};
        for (unsigned i = 0; i < COUNT_OF(heads); i++)
            for (const struct token *token = heads[i]; token; token = token->next)
                if (token->command == command)
                    return token;
    }
    return NULL;
}

static void print_resource(const struct pe *pe, const struct command *command)
{
    static const char *const stages[] = {
#define STAGE(name, engine) #name,
#include "kb/stages.def"
#undef STAGE
    };
    char ring[128];
    const struct token *token = tile_of(pe, command);
    if (token)
        fprintf(stderr, ", tile %" PRIu64 " at stage %s", token->tile.id, stages[token->stage.kind]);
    if (!waits_for(pe))
        return;
    ipcq_describe(command, ring, sizeof ring);
    fprintf(stderr, command->ask.kind == COMMAND_recv ? ", for a message of %s (%s)" : ", for a free slot at %s (%s)",
            pe_name(waits_for(pe)), ring);
}

static void print_waiting(const struct pe *pe)
{
    const struct command *command = stuck(pe);
    fprintf(stderr, "    %s: kernel %s", pe_name(pe), pe->kernel->name);
    if (command) {
        fprintf(stderr, " waits since %" PRIu64 " ps in %s %u", pe->kernel->awaited_since_ps,
                command_words[command->ask.kind], (unsigned)command->number);
        if (command->ask.file)
            fprintf(stderr, ", called at %s:%u", command->ask.file, (unsigned)command->ask.line);
        print_resource(pe, command);
    }
    fputc('\n', stderr);
}

/* A PE that will never act: why. */
static void print_end(const struct pe *pe)
{
    const struct kernel_run *run = run_on(pe);
    fprintf(stderr, "    %s: ", pe_name(pe));
    if (!run)
        fprintf(stderr, "was never given a kernel\n");
    else if (run->tl.failure.set)
        fprintf(stderr, "kernel %s failed with %s at %" PRIu64 " ps\n", run->tl.name,
                fault_names[run->tl.failure.code], run->end_ps);
    else
        fprintf(stderr, "kernel %s returned at %" PRIu64 " ps\n", run->tl.name, run->end_ps);
}

/* ---- all of them */

/* Per PE, the number of the way that came by first, from 1 on; 0: none has. */
static uint32_t *way_of;
static uint32_t ways;                                   /* that were told, or were too many to be */

/* Tells a way of some PEs, and at last the PE that ends it, if there is one. */
static void print_way(const struct pe *pe, uint32_t count, const char *what, const struct pe *end)
{
    if (ways++ >= WAYS)
        return;
    fprintf(stderr, "  %s\n", what);
    for (uint32_t i = 0; i < count; i++, pe = waits_for(pe)) {
        if (i < ENDS || i >= count - ENDS)
            print_waiting(pe);
        else if (i == ENDS)
            fprintf(stderr, "    %u more PEs, each waiting for the next\n", (unsigned)(count - 2 * ENDS));
    }
    if (end)
        print_end(end);
}

static uint32_t cycle_length(const struct pe *first)
{
    uint32_t count = 1;
    for (const struct pe *pe = waits_for(first); pe != first; pe = waits_for(pe))
        count++;
    return count;
}

/* Goes from a waiting PE to whom it waits for, as long as that is new; tells what is found at the end of a new way. */
static void follow(const struct pe *first, uint32_t way)
{
    const struct pe *pe = first, *next;
    uint32_t count = 1;
    for (way_of[pe_number(pe)] = way; (next = waits_for(pe)) && !way_of[pe_number(next)]; pe = next, count++) {
        way_of[pe_number(next)] = way;
        if (waits(next))
            continue;
        print_way(first, count, "a chain that ends in what never comes:", next);
        return;
    }
    if (!next)
        print_way(first, count, "a chain that ends in what is never done:", NULL);
    else if (way_of[pe_number(next)] == way)
        print_way(next, cycle_length(next), "a cycle:", NULL);
}

static void report(void)
{
    uint32_t pes = pe_count(), waiting = 0;
    for (const struct launch *launch = launches; launch; launch = launch->next) {
        if (launch->status != LAUNCH_RUNNING)
            continue;
        fprintf(stderr, "fault: DEADLOCK at host, %" PRIu64 " ps, request %" PRIu64 ", kernel %s: nothing is due any "
                "more\n", now_ps, launch->fanout.correlation, launch->program);
        if (launch->file)
            fprintf(stderr, "  launched at %s:%u\n", launch->file, (unsigned)launch->line);
    }
    way_of = arena_alloc(pes, sizeof *way_of);
    ways = 0;
    for (uint32_t i = 0; i < pes; i++) {
        if (!waits(&kb_pe[i]))
            continue;
        waiting++;
        if (!way_of[i])
            follow(&kb_pe[i], i + 1);
    }
    if (ways > WAYS)
        fprintf(stderr, "  %u more cycles or chains\n", (unsigned)(ways - WAYS));
    fprintf(stderr, "  %u waiting PE%s in all\n", (unsigned)waiting, waiting == 1 ? "" : "s");
}

void launches_deadlocked(void)
{
    bool reported = false;
    for (struct launch *launch = launches; launch; launch = launch->next) {
        if (launch->status != LAUNCH_RUNNING)
            continue;
        if (!reported)
            report();
        reported = true;
        launch_ends(launch, LAUNCH_DEADLOCK);
        sim_wake(&launch->fanout.waiter);
    }
}
