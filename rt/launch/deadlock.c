/* deadlock.c: who waits for whom when nothing is due any more and kernels still wait.
 *
 * A kernel waits for one command, and only sends and receives can wait for ever: for a free slot, or for a message, of
 * one other PE. So the PEs form a graph with at most one edge from each: a chain from a waiting PE ends in a cycle, or
 * at a PE that will never act. Each cycle and each such end is printed once, with the first chain that leads there. */
#include "deadlock.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/arena.h"
#include "common/fail.h"
#include "launch.h"
#include "machine/emitted.h"
#include "machine/ipcq.h"
#include "machine/pe.h"

enum { ENDS = 8, CHAINS = 8 };                          /* PEs printed of each end of a chain; chains printed */

static const struct kernel_run *run_on(const struct pe *pe)
{
    return pe->kernel ? container_of(pe->kernel, struct kernel_run, tl) : NULL;
}

static bool waits(const struct pe *pe)
{
    return pe->kernel && !run_on(pe)->ended;
}

/* The PE that has to act before a waiting one can continue; NULL if none is known. */
static const struct pe *waits_for(const struct pe *pe)
{
    const struct command *command = pe->kernel->awaited;
    bool rings = command && (command->ask.kind == COMMAND_send || command->ask.kind == COMMAND_recv);
    return rings ? &kb_pe[ipcq_awaits(command)] : NULL;
}

/* ---- one PE */

/* The first tile of a command that is in a server or in a queue; NULL if no tile is. */
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

static bool in_service(const struct pe *pe, const struct token *token)
{
    const struct server *server = pe->servers, *end = server + kb_pe_servers;
    while (server < end && server->token != token)
        server++;
    return server < end;
}

static void print_resource(const struct pe *pe, const struct command *command)
{
    static const char *const stages[] = {
#define STAGE(name, part, engine, busy) #name,
#include "kb/stages.def"
#undef STAGE
    };
    char ring[128];
    const struct token *token = tile_of(pe, command);
    if (token)
        message(", tile %" PRIu64 " at stage %s", token->tile.id, stages[token->stage->kind]);
    if (token && kb_has_model[NODE_pe_dma] && stage_node(token->stage->kind) == NODE_pe_dma && !in_service(pe, token))
        message(", which the model of pe_dma does not choose");
    if (!waits_for(pe))
        return;
    ipcq_describe(command, ring, sizeof ring);
    message(command->ask.kind == COMMAND_recv ? ", for a message of %s (%s)" : ", for a free slot at %s (%s)",
            pe_name(waits_for(pe)), ring);
}

static void print_waiting(const struct pe *pe)
{
    const struct command *command = pe->kernel->awaited;
    message("    %s: kernel %s", pe_name(pe), pe->kernel->name);
    if (command) {
        message(" waits since %" PRIu64 " ps in %s %u", pe->kernel->awaited_since_ps,
                command_words[command->ask.kind], (unsigned)command->number);
        if (command->ask.file)
            message(", called at %s:%u", command->ask.file, (unsigned)command->ask.line);
        print_resource(pe, command);
    }
    message("\n");
}

/* Prints why a PE will never act. */
static void print_end(const struct pe *pe)
{
    const struct kernel_run *run = run_on(pe);
    message("    %s: ", pe_name(pe));
    if (!run)
        message("was never given a kernel\n");
    else if (run->tl.failure.set)
        message("kernel %s failed with %s at %" PRIu64 " ps\n", run->tl.name,
                fault_names[run->tl.failure.code], run->end_ps);
    else
        message("kernel %s returned at %" PRIu64 " ps\n", run->tl.name, run->end_ps);
}

/* ---- chains and cycles */

/* The number of the first chain that has reached a PE, from 1 on; 0: none has. */
static uint32_t *chain_of;
static uint32_t chains;                                 /* that end in a cycle or at a PE that will never act */

/* Prints a chain of some PEs, and the PE that ends it, if there is one. */
static void print_chain(const struct pe *pe, uint32_t count, const char *what, const struct pe *end)
{
    if (chains++ >= CHAINS)
        return;
    message("  %s\n", what);
    for (uint32_t i = 0; i < count; i++, pe = waits_for(pe)) {
        if (i < ENDS || i >= count - ENDS)
            print_waiting(pe);
        else if (i == ENDS)
            message("    %u more PEs, each waiting for the next\n", (unsigned)(count - 2 * ENDS));
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

/* Follows a new chain from a waiting PE to an end, a cycle, or a PE of an earlier chain; prints the first two. */
static void follow(const struct pe *first, uint32_t chain)
{
    const struct pe *pe = first, *next;
    uint32_t count = 1;
    for (chain_of[pe_number(pe)] = chain; (next = waits_for(pe)) && !chain_of[pe_number(next)]; pe = next, count++) {
        chain_of[pe_number(next)] = chain;
        if (waits(next))
            continue;
        print_chain(first, count, "a chain to a PE that will never act:", next);
        return;
    }
    if (!next)
        print_chain(first, count, "a chain to a command that will never complete:", NULL);
    else if (chain_of[pe_number(next)] == chain)
        print_chain(next, cycle_length(next), "a cycle:", NULL);
}

static void report(void)
{
    uint32_t pes = pe_count(), waiting = 0;
    for (const struct launch *launch = launches; launch; launch = launch->next) {
        if (launch->status != LAUNCH_RUNNING)
            continue;
        message("fault: DEADLOCK at host, %" PRIu64 " ps, request %" PRIu64 ", kernel %s: nothing is due any "
                "more\n", now_ps, launch->fanout.correlation, launch->program);
        if (launch->file)
            message("  launched at %s:%u\n", launch->file, (unsigned)launch->line);
    }
    chain_of = arena_alloc(pes, sizeof *chain_of);
    chains = 0;
    for (uint32_t i = 0; i < pes; i++) {
        if (!waits(&kb_pe[i]))
            continue;
        waiting++;
        if (!chain_of[i])
            follow(&kb_pe[i], i + 1);
    }
    if (chains > CHAINS)
        message("  %u more cycles or chains\n", (unsigned)(chains - CHAINS));
    message("  %u waiting PE%s in all\n", (unsigned)waiting, waiting == 1 ? "" : "s");
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
        launch_give_up(launch, LAUNCH_DEADLOCK);
    }
}
