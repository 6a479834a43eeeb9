/* command.c: commands: a run has very many, but few at a time. */
#include "command.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/pool.h"
#include "kb/arith.h"
#include "operand.h"
#include "sim/observer.h"
#include "tiling.h"

const char *const command_words[COMMANDS] = {
#define COMMAND(name, word, ...) word,
#include "kb/commands.def"
#undef COMMAND
};

const char *const scope_words[SCOPES] = {
#define SCOPE(name, word) [SCOPE_##name] = word,
#include "kb/scopes.def"
#undef SCOPE
};

const char *const fault_names[FAULTS] = {
#define FAULT(code) #code,
#include "kb/faults.def"
#undef FAULT
};

/* Simple commands, and those with lists and composites, whose plans are large: one that is reused keeps the memory of its plan. */
static struct pool simple, listed, composites;

static struct pool operands;                            /* of composites under way */
static struct pool strided;                             /* struct runs of simple commands under way */

/* Copies the list of a request to where the plan of a simple command will end. */
static const struct address_run *list_copy(struct command *command, const struct request *ask)
{
    uint64_t bytes = ask->listed * sizeof *ask->list;
    assert(!command_is_composite(ask->kind));
    char *plan = command_plan(command, SIMPLE_PLAN_BYTES + bytes);
    return memcpy(plan + SIMPLE_PLAN_BYTES, ask->list, bytes);
}

static struct pool *pool_of(const struct request *ask)
{
    return command_is_composite(ask->kind) ? &composites : ask->listed ? &listed : &simple;
}

struct command *command_new(const struct request *ask)
{
    bool is_composite = command_is_composite(ask->kind);
    struct command *command = pool_reuse(pool_of(ask), is_composite ? sizeof *command : SIMPLE_COMMAND_BYTES);
    if (is_composite)
        memset(&command->planned, 0, sizeof *command - SIMPLE_COMMAND_BYTES);
    memset(command, 0, offsetof(struct command, plan));
    command->ask = *ask;
    command->holders = 1;
    if (ask->listed)
        command->ask.list = list_copy(command, ask);
    else if (ask->runs)
        command->ask.runs = memcpy(pool_reuse(&strided, sizeof *ask->runs), ask->runs, sizeof *ask->runs);
    return command;
}

void *command_plan(struct command *command, uint64_t bytes)
{
    if (bytes > command->plan_bytes) {
        command->plan_bytes = kb_max(2 * command->plan_bytes, bytes);
        command->plan = arena_alloc(command->plan_bytes, 1);
    }
    return command->plan;
}

struct operand *command_operands(struct command *command)
{
    return command->operands = pool_reuse(&operands, OPERANDS * sizeof *command->operands);
}

void command_hold(struct command *command)
{
    command->holders++;
}

void command_drop(struct command *command)
{
    if (--command->holders > 0)
        return;
    observe_command_dropped(command);
    if (!command->ask.listed && command->ask.runs)
        pool_give_back(&strided, (struct runs *)command->ask.runs);
    if (command_is_composite(command->ask.kind) && command->operands)
        pool_give_back(&operands, command->operands);
    pool_give_back(pool_of(&command->ask), command);
}

void command_fault(const struct command *command, enum fault code, enum node_kind part, const char *format, ...)
{
    char message[1024];
    int used =
        snprintf(message, sizeof message, "%s %u: ", command_words[command->ask.kind], (unsigned)command->number);
    va_list args;
    va_start(args, format);
    vsnprintf(message + used, sizeof message - (size_t)used, format, args);
    va_end(args);
    command->submitter->faulted(command, code, part, message);
}

void commands_reset(void)
{
    pool_release(&simple);
    pool_release(&listed);
    pool_release(&composites);
    pool_release(&operands);
    pool_release(&strided);
}
