/* flight.c: the transfers of a kernel that it has not waited for. */
#include "flight.h"

#include <inttypes.h>
#include <stdlib.h>

#include "device.h"
#include "runs.h"
#include "text/diag.h"

static struct flight **flights_of(const struct tl *tl)
{
    return &((struct device_state *)tl->data)->flights;
}

static bool writes(const struct flight *flight)
{
    return flight->command->ask.kind == COMMAND_load || flight->command->ask.kind == COMMAND_recv;
}

static void drop(struct flight **link)
{
    struct flight *flight = *link;
    *link = flight->next;
    command_drop(flight->command);
    free(flight);
}

void flights_add(struct tl *tl, struct command *command, const struct view *buffer)
{
    struct flight **link = flights_of(tl);
    while (*link)                                       /* of what only reads its buffer, the end alone matters */
        if (!writes(*link) && (*link)->command->complete)
            drop(link);
        else
            link = &(*link)->next;
    struct flight *flight = malloc(sizeof *flight);
    if (!flight)
        die("no memory for a transfer's record:");
    *flight = (struct flight){NULL, command, *buffer};
    command_hold(command);
    *link = flight;
}

void flights_waited(struct tl *tl, uint32_t number)
{
    struct flight **link = flights_of(tl);
    while (*link && (*link)->command->number != number)
        link = &(*link)->next;
    if (*link)
        drop(link);
}

void flights_end(struct tl *tl)
{
    while (*flights_of(tl))
        drop(flights_of(tl));
}

/* ---- faults */

static bool overlaps(const struct flight *flight, const struct view *view, uint64_t *first)
{
    uint64_t end;
    return views_meet(&flight->buffer, view, first, &end);
}

static _Noreturn void flight_fault(const struct call *call, enum fault code, const struct flight *flight,
                                   uint64_t first, const char *what)
{
    const struct origin *op = flight->command->data;
    call_fault(call, code, "the bytes at %s %s %s, command %" PRIu32 " of kernel %s, called at %s:%" PRIu32,
               address_name(memory_address(flight->buffer.memory, first)), what, op->name, op->command, op->kernel,
               op->file, op->line);
}

void flights_check_use(const struct call *call, const struct view *view)
{
    uint64_t first;
    for (const struct flight *flight = *flights_of(call->tl); flight; flight = flight->next)
        if (flight->command->ask.kind == COMMAND_recv && overlaps(flight, view, &first))
            flight_fault(call, FAULT_KERNEL_ERROR, flight, first, "cannot be used before tl_wait for");
}

void flights_check_look(const struct call *call, const struct view *view)
{
    uint64_t first;
    for (const struct flight *flight = *flights_of(call->tl); flight; flight = flight->next)
        if (writes(flight) && overlaps(flight, view, &first))
            flight_fault(call, FAULT_PENDING_RESULT, flight, first, "are not known before tl_wait for");
}

void flights_check_free(const struct call *call, const struct view *view)
{
    struct flight **link = flights_of(call->tl);
    uint64_t first;
    while (*link) {
        bool used = overlaps(*link, view, &first);
        if (used && !(*link)->command->complete)
            flight_fault(call, FAULT_KERNEL_ERROR, *link, first, "are in use by");
        if (used)
            drop(link);
        else
            link = &(*link)->next;
    }
}
