/* command.c: commands, out of a pool: a run may have very many, but only some at a time. */
#include "command.h"

#include "store/origin.h"
#include "common/arena.h"

enum { CHUNK = 64 };

static struct command *unused;

struct command *command_new(const struct request *ask)
{
    if (!unused) {
        struct command *chunk = arena_alloc(CHUNK, sizeof *chunk);
        for (int i = 0; i < CHUNK; i++) {
            chunk[i].next = unused;
            unused = &chunk[i];
        }
    }
    struct command *command = unused;
    unused = command->next;
    *command = (struct command){.ask = *ask, .data = ask->data, .op = ask->counted ? ask->data : NULL, .holders = 1,
                                .plan = command->plan, .plan_bytes = command->plan_bytes};
    return command;
}

void *command_plan(struct command *command, uint64_t bytes)
{
    if (bytes > command->plan_bytes) {
        command->plan = arena_alloc(bytes, 1);
        command->plan_bytes = bytes;
    }
    return command->plan;
}

void command_hold(struct command *command)
{
    command->holders++;
}

void command_drop(struct command *command)
{
    if (--command->holders > 0)
        return;
    origin_drop(command->data);
    command->next = unused;
    unused = command;
}

void commands_reset(void)
{
    unused = NULL;                                      /* their room is the arena's, which goes back as well */
}
