/* flight.c: the transfers of a kernel that it has not waited for, in the order of their commands' numbers. */
#include "flight.h"

#include <inttypes.h>
#include <stdlib.h>

#include "device.h"
#include "machine/runs.h"
#include "common/diag.h"

static struct flights *receives_of(const struct tl *tl)
{
    return &((struct device_state *)tl->data)->receives;
}

static struct flights *moves_of(const struct tl *tl)
{
    return &((struct device_state *)tl->data)->moves;
}

static bool writes(const struct flight *flight)
{
    return flight->command->ask.kind == COMMAND_load || flight->command->ask.kind == COMMAND_recv;
}

static void drop(struct flight *flight)
{
    command_drop(flight->command);
    flight->command = NULL;
}

/* Closes the gaps. Of what only reads its buffer, the end alone matters. */
static void sweep(struct flights *flights)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < flights->count; i++) {
        struct flight *flight = &flights->all[i];
        if (flight->command && !writes(flight) && flight->command->complete)
            drop(flight);
        if (flight->command)
            flights->all[kept++] = *flight;
    }
    flights->count = kept;
}

/* Makes room for one; so much that sweeps are rare. */
static void make_room(struct flights *flights)
{
    sweep(flights);
    if (2 * flights->count < flights->room)
        return;
    flights->room = flights->room ? 2 * flights->room : 8;
    flights->all = realloc(flights->all, flights->room * sizeof *flights->all);
    if (!flights->all)
        die("no memory for the records of %" PRIu32 " transfers:", flights->room);
}

void flights_add(struct tl *tl, struct command *command, const struct view *buffer)
{
    struct flights *flights = command->ask.kind == COMMAND_recv ? receives_of(tl) : moves_of(tl);
    if (flights->count == flights->room)
        make_room(flights);
    flights->all[flights->count++] = (struct flight){command, command->number, *buffer};
    command_hold(command);
}

static void waited(struct flights *flights, uint32_t number)
{
    uint32_t low = 0, high = flights->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (flights->all[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < flights->count && flights->all[low].number == number && flights->all[low].command)
        drop(&flights->all[low]);
    while (flights->count && !flights->all[flights->count - 1].command)
        flights->count--;
}

void flights_waited(struct tl *tl, uint32_t number)
{
    waited(receives_of(tl), number);
    waited(moves_of(tl), number);
}

static void end(struct flights *flights)
{
    for (uint32_t i = 0; i < flights->count; i++)
        if (flights->all[i].command)
            drop(&flights->all[i]);
    free(flights->all);
    *flights = (struct flights){0};
}

void flights_end(struct tl *tl)
{
    end(receives_of(tl));
    end(moves_of(tl));
}

/* ---- faults */

static bool overlaps(const struct flight *flight, const struct view *view, uint64_t *first)
{
    uint64_t end;
    return flight->command && views_meet(&flight->buffer, view, first, &end);
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
    const struct flights *receives = receives_of(call->tl);
    uint64_t first;
    for (uint32_t i = 0; i < receives->count; i++)
        if (overlaps(&receives->all[i], view, &first))
            flight_fault(call, FAULT_KERNEL_ERROR, &receives->all[i], first, "cannot be used before tl_wait for");
}

static void check_look(const struct call *call, const struct flights *flights, const struct view *view)
{
    uint64_t first;
    for (uint32_t i = 0; i < flights->count; i++)
        if (overlaps(&flights->all[i], view, &first) && writes(&flights->all[i]))
            flight_fault(call, FAULT_PENDING_RESULT, &flights->all[i], first, "are not known before tl_wait for");
}

void flights_check_look(const struct call *call, const struct view *view)
{
    check_look(call, receives_of(call->tl), view);
    check_look(call, moves_of(call->tl), view);
}

static void check_free(const struct call *call, const struct flights *flights, const struct view *view)
{
    uint64_t first;
    for (uint32_t i = 0; i < flights->count; i++) {
        struct flight *flight = &flights->all[i];
        if (!overlaps(flight, view, &first))
            continue;
        if (!flight->command->complete)
            flight_fault(call, FAULT_KERNEL_ERROR, flight, first, "are in use by");
        drop(flight);
    }
}

void flights_check_free(const struct call *call, const struct view *view)
{
    check_free(call, receives_of(call->tl), view);
    check_free(call, moves_of(call->tl), view);
}
