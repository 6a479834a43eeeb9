/* deadlock.c: when nothing is due any more and something still waits: who waits for whom. */
#include <inttypes.h>
#include <stdio.h>

#include "emitted.h"
#include "launch.h"
#include "pe.h"
#include "ring.h"

/* What a PE's kernel waits for at last: the first of its commands that is not complete and does not wait for another.
 */
static const struct command *stuck(const struct tl *tl)
{
    const struct command *command = tl->first;
    while (command && command->complete)
        command = command->next;
    return command;
}

/* The PE that has to act for a command to go on; NULL: no other one. */
static const struct pe *waits_for(const struct command *command)
{
    bool rings = command && (command->ask.kind == COMMAND_send || command->ask.kind == COMMAND_recv);
    return rings ? &kb_pe[command->ask.peer] : NULL;
}

static void print_command(const struct command *command)
{
    char ring[128];
    const char *peer = pe_name(&kb_pe[command->ask.peer]);
    ring_describe(command, ring, sizeof ring);
    if (command->ask.kind == COMMAND_recv)
        fprintf(stderr, "recv %" PRIu32 ", for a message from %s", command->number, peer);
    else
        fprintf(stderr, "send %" PRIu32 ", for a free slot of the ring to %s", command->number, peer);
    fprintf(stderr, " since %" PRIu64 " ps (%s)", command->submitted_ps, ring);
    if (command->ask.file)
        fprintf(stderr, ", called at %s:%" PRIu32, command->ask.file, command->ask.line);
}

static void print_run(const struct kernel_run *run)
{
    const struct command *command = stuck(&run->tl);
    fprintf(stderr, "  %s, kernel %s: waits in ", pe_name(run->tl.pe), run->tl.name);
    if (waits_for(command))
        print_command(command);
    else if (command)
        fprintf(stderr, "command %" PRIu32 " since %" PRIu64 " ps", command->number, command->submitted_ps);
    else
        fputs("no command", stderr);
    fputc('\n', stderr);
}

/* Whether a PE runs a kernel that has not ended. */
static bool runs(const struct pe *pe)
{
    const struct tl *tl = pe->kernel;
    return tl && !container_of(tl, struct kernel_run, tl)->ended;
}

/* From one waiting PE to whom it waits for, until that is one met before or one that will never act. */
static void print_chain(const struct pe *pe)
{
    const struct pe *slow = pe;
    fprintf(stderr, "  %s", pe_name(pe));
    for (unsigned step = 1;; step++) {
        pe = waits_for(stuck(pe->kernel));
        if (!pe)
            break;
        fprintf(stderr, " -> %s", pe_name(pe));
        if (!runs(pe)) {
            fprintf(stderr, ", whose kernel %s",
                    !pe->kernel  ? "was never launched"
                    : pe->failed ? "has failed"
                                 : "has ended");
            break;
        }
        if (step % 2 == 0)
            slow = waits_for(stuck(slow->kernel));
        if (pe == slow) {
            fputs(": a cycle", stderr);
            break;
        }
    }
    fputc('\n', stderr);
}

static void report(const struct launch *launch)
{
    const struct pe *first = NULL;
    fprintf(stderr, "deadlock at %" PRIu64 " ps: nothing is due any more, and launch %s waits\n", now_ps,
            launch->program);
    for (const struct kernel_run *run = launch->runs; run < launch->runs + launch->count; run++) {
        if (run->ended)
            continue;
        print_run(run);
        first = first ? first : run->tl.pe;
    }
    if (first)
        print_chain(first);
}

void launches_deadlocked(void)
{
    for (struct launch *launch = launches; launch; launch = launch->next) {
        if (launch->status != LAUNCH_RUNNING)
            continue;
        report(launch);
        launch_ends(launch, LAUNCH_DEADLOCK);
        sim_wake(&launch->fanout.waiter);
    }
}
