/* trace.h: the trace events of a run, as JSON lines in the model's order (time, node, token, stage, kind). */
#ifndef KB_TRACE_H
#define KB_TRACE_H

#include "machine/command.h"
#include "machine/pe.h"

enum trace_kind {
#define TRACE(name) TRACE_##name,
#include "kb/trace.def"
#undef TRACE
    TRACE_KINDS
};

extern bool trace_on;

/* Begins a trace into a file ("-": standard output). */
void trace_open(const char *path);

/* Orders and writes the events of the instant that ends. */
void trace_instant_write(void);

static inline void trace_instant_end(void)
{
    if (__builtin_expect(trace_on, 0))
        trace_instant_write();
}

/* Ends the trace; only now the file appears under its name. */
void trace_close(void);

void trace_add(enum trace_kind kind, const struct command *command, enum node_kind part, uint64_t tile, int64_t stage);

/* An event of a token's stage, at a part of its PE. */
static inline void trace_tile(enum trace_kind kind, const struct token *token, enum node_kind part)
{
    if (__builtin_expect(trace_on, 0))
        trace_add(kind, token->command, part, token->tile.id + 1, token->stage.index);
}

/* The dispatch of a receive, which is no token yet. */
static inline void trace_receive(const struct command *command)
{
    if (__builtin_expect(trace_on, 0))
        trace_add(TRACE_sub_command_dispatched, command, NODE_pe_scheduler, 1, 0);
}

/* An event of a command. */
static inline void trace_command(enum trace_kind kind, const struct command *command)
{
    if (__builtin_expect(trace_on, 0))
        trace_add(kind, command, NODE_pe_scheduler, 0, -1);
}

#endif
