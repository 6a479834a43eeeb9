/* hazards.c: bytes that a kernel must not use now. */
#include "hazards.h"

#include <inttypes.h>

#include "common/pool.h"
#include "device.h"
#include "machine/pe.h"

/* Bytes that a tl_free freed, and its place. */
struct freed {
    struct interval bytes;
    const char *file;
    uint32_t line;
};

static struct interval_kind freed_kind = {.size = sizeof(struct freed)};

static struct hazards *hazards_of(const struct tl *tl)
{
    return &device_state(tl)->hazards;
}

static struct pool strided;                             /* runs of buffers that are not one run */

static bool writes_buffer(const struct outstanding *transfer)
{
    return transfer->kind == COMMAND_load || transfer->kind == COMMAND_recv;
}

static void drop(struct outstanding *transfer)
{
    transfer->waited = true;
    if (transfer->runs)
        pool_give_back(&strided, transfer->runs);
    transfer->runs = NULL;
}

static void drop_all(struct outstanding_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        drop(&list->at[i]);
    array_free(list);
}

void hazards_begin(struct tl *tl)
{
    hazards_of(tl)->freed.kind = &freed_kind;
}

void hazards_reset(void)
{
    pool_release(&strided);
}

void hazards_end(struct tl *tl)
{
    struct hazards *hazards = hazards_of(tl);
    drop_all(&hazards->receives);
    drop_all(&hazards->moves);
    interval_clear(&hazards->freed);
}

/* ---- what the kernel does */

/* Removes transfers that were waited for, and complete ones that only read their buffer: nothing conflicts with
 * them. */
static void compact(const struct tl *tl, struct outstanding_list *list)
{
    const struct command *pending = tl->first;          /* not complete, sorted by number as the list is */
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct outstanding *transfer = &list->at[i];
        while (pending && pending->number < transfer->number)
            pending = pending->next;
        bool is_complete = !pending || pending->number != transfer->number;
        if (!transfer->waited && !writes_buffer(transfer) && is_complete)
            drop(transfer);
        if (!transfer->waited)
            list->at[kept++] = *transfer;
    }
    list->count = kept;
}

void hazards_submitted(const struct call *call, uint32_t number, enum command_kind kind, const struct runs *buffer,
                       uint64_t offset)
{
    struct hazards *hazards = hazards_of(call->tl);
    struct outstanding_list *list = kind == COMMAND_recv ? &hazards->receives : &hazards->moves;
    if (list->count == list->room) {
        compact(call->tl, list);
        if (2 * list->count >= list->room)              /* or it would compact again at once */
            array_reserve(list, list->room + 1);
    }
    struct placed_runs *runs = buffer->axes ? pool_reuse(&strided, sizeof *runs) : NULL;
    if (runs)
        *runs = runs_placed(buffer, offset);
    *array_add(list) = (struct outstanding){offset, offset + runs_span(buffer), runs, call->site.file, call->site.line,
                                            number, (uint8_t)kind, false};
}

/* Returns whether the list has the command. */
static bool waited(struct outstanding_list *list, uint32_t number)
{
    size_t low = 0, high = list->count;
    if (high == 0 || list->at[0].number > number || list->at[high - 1].number < number)
        return false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->at[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < list->count && list->at[low].number == number;
    if (found)
        drop(&list->at[low]);
    while (list->count && list->at[list->count - 1].waited)
        list->count--;
    return found;
}

void hazards_waited(struct tl *tl, uint32_t number)
{
    struct hazards *hazards = hazards_of(tl);
    if (!waited(&hazards->receives, number))
        waited(&hazards->moves, number);
}

void hazards_freed(const struct call *call, uint64_t offset, uint64_t bytes)
{
    struct freed freed = {.bytes = {.begin = offset, .end = offset + bytes}, .file = call->site.file,
                          .line = call->site.line};
    interval_set(&hazards_of(call->tl)->freed, &freed.bytes);
}

void hazards_allocated(struct tl *tl, uint64_t offset, uint64_t bytes)
{
    interval_erase(&hazards_of(tl)->freed, offset, offset + bytes);
}

/* ---- checks */

static uint32_t own_tcm(const struct call *call)
{
    return device_state(call->tl)->tcm;
}

/* The bytes that a call uses. Their runs are worked out once they are needed. */
struct used {
    const struct view *view;
    uint64_t begin, end;
    bool has_runs;
};

static struct used used_of(const struct view *view)
{
    return (struct used){view, view->offset, view->offset + view_span(view), false};
}

/* Whether bytes of the TCM, in one run unless `runs` says otherwise, meet those that are used. */
static bool meets(struct used *used, uint64_t begin, uint64_t end, const struct placed_runs *runs, uint64_t *first)
{
    static struct placed_runs bytes, one;               /* of what is used; of one run */
    if (begin >= used->end || used->begin >= end)
        return false;
    if (!used->has_runs)
        bytes = view_placed(used->view);
    used->has_runs = true;
    if (!runs)
        one = (struct placed_runs){.runs.bytes = end - begin, .begin = begin, .end = end};
    return runs_meet(runs ? runs : &one, &bytes, first, &end);
}

static bool conflicts(const struct outstanding *transfer, struct used *used, uint64_t *first)
{
    return !transfer->waited && meets(used, transfer->begin, transfer->end, transfer->runs, first);
}

static _Noreturn void conflict_fault(const struct call *call, enum fault code, const struct outstanding *transfer,
                                     uint64_t first, const char *how)
{
    call_fault(call, code, "the bytes at %s %s %s, command %" PRIu32 " of kernel %s, called at %s:%" PRIu32,
               address_name(memory_address(own_tcm(call), first)), how, move_names[transfer->kind], transfer->number,
               call->tl->name, transfer->file, transfer->line);
}

static void check_freed(const struct call *call, struct used *used)
{
    interval_for(&hazards_of(call->tl)->freed, i, used->begin, used->end) {
        const struct freed *freed = (const struct freed *)i;
        uint64_t first;
        if (meets(used, i->begin, i->end, NULL, &first))
            call_error(call, "the bytes at %s were freed by tl_free at %s:%" PRIu32,
                       address_name(memory_address(own_tcm(call), first)), freed->file, freed->line);
    }
}

void hazards_check_freed(const struct call *call, const struct view *view)
{
    if (view->memory != own_tcm(call))
        return;
    struct used used = used_of(view);
    check_freed(call, &used);
}

void hazards_check_use(const struct call *call, const struct view *view)
{
    const struct hazards *hazards = hazards_of(call->tl);
    const struct outstanding_list *receives = &hazards->receives;
    uint64_t first;
    if (view->memory != own_tcm(call) || (!hazards->freed.root && receives->count == 0))
        return;
    struct used used = used_of(view);
    check_freed(call, &used);
    for (size_t i = 0; i < receives->count; i++)
        if (conflicts(&receives->at[i], &used, &first))
            conflict_fault(call, FAULT_KERNEL_ERROR, &receives->at[i], first, "cannot be used before tl_wait for");
}

void hazards_check_read(const struct call *call, const struct view *view)
{
    const struct hazards *hazards = hazards_of(call->tl);
    const struct outstanding_list *lists[] = {&hazards->receives, &hazards->moves};
    struct used used = used_of(view);
    uint64_t first;
    check_freed(call, &used);
    for (unsigned l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->count; i++)
            if (conflicts(&lists[l]->at[i], &used, &first) && writes_buffer(&lists[l]->at[i]))
                conflict_fault(call, FAULT_PENDING_RESULT, &lists[l]->at[i], first,
                               "are not known before tl_wait for");
}

void hazards_check_free(const struct call *call, const struct view *view)
{
    struct hazards *hazards = hazards_of(call->tl);
    struct outstanding_list *lists[] = {&hazards->receives, &hazards->moves};
    if (view->memory != own_tcm(call))
        return;
    struct used used = used_of(view);
    check_freed(call, &used);
    for (unsigned l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->count; i++) {
            struct outstanding *transfer = &lists[l]->at[i];
            uint64_t first;
            if (!conflicts(transfer, &used, &first))
                continue;
            if (kernel_command(call->tl, transfer->number))
                conflict_fault(call, FAULT_KERNEL_ERROR, transfer, first, "are in use by");
            drop(transfer);
        }
}
