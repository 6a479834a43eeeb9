/* device_call.c: what the calls of the device library share. */
#include "device_call.h"

#include <stdarg.h>
#include <stdio.h>

#include "pe.h"

void call_fault(const struct call *call, enum fault code, const char *format, ...)
{
    char message[400];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    kernel_fault(call->tl, code, call->file, call->line, "%s: %s", call->name, message);
}

struct range call_range(const struct call *call, const char *what, uint64_t address, uint64_t bytes)
{
    struct range range;
    const char *wrong = address_decode(address, bytes, &range);
    if (wrong)
        call_fault(call, FAULT_BAD_ADDRESS, "%s, %llu bytes at %s: %s", what, (unsigned long long)bytes,
                   address_name(address), wrong);
    return range;
}

bool call_owns(const struct call *call, const struct range *range)
{
    return range->space == SPACE_TCM && range->pe == pe_number(call->tl->pe);
}

struct command *call_submit(const struct call *call, struct request *ask, struct op *op)
{
    op->pe = pe_number(call->tl->pe);
    op->kernel = call->tl->name;
    op->file = ask->file = call->file;
    op->line = ask->line = call->line;
    struct op *logged = oplog_add(op);
    struct command *command = kernel_submit(call->tl, ask);
    if (oplog_on)
        command->op = logged;                           /* the first service starts after this event */
    return command;
}
