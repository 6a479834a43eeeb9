/* hazards.c: bytes that a kernel must not use now. */
#include "hazards.h"

#include <inttypes.h>

#include "common/pool.h"
#include "device.h"
#include "kb/arith.h"
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
    for (size_t i = 0; i < list->all.count; i++)
        drop(&list->all.at[i]);
    array_free(&list->all);
    array_free(&list->areas);
    list->first = list->first_area = 0;
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

/* Makes a transfer of a list part of the last area, or the first of a new one. */
static void add_to_area(struct outstanding_list *list, size_t i)
{
    uint64_t begin = list->all.at[i].begin, end = list->all.at[i].end;
    struct area *last = list->areas.count ? &list->areas.at[list->areas.count - 1] : NULL;
    if (last && begin <= last->end && last->begin <= end) {
        last->begin = kb_min(last->begin, begin);
        last->end = kb_max(last->end, end);
    } else {
        *array_add(&list->areas) = (struct area){begin, end, i};
    }
}

/* Removes transfers that were waited for, and complete ones that only read their buffer: nothing conflicts with
 * them. */
static void compact(const struct tl *tl, struct outstanding_list *list)
{
    const struct command *pending = tl->first;          /* not complete, sorted by number as the list is */
    size_t count = list->all.count;
    list->all.count = list->areas.count = list->first = list->first_area = 0;
    for (size_t i = 0; i < count; i++) {
        struct outstanding *transfer = &list->all.at[i];
        while (pending && pending->number < transfer->number)
            pending = pending->next;
        bool is_complete = !pending || pending->number != transfer->number;
        if (!transfer->waited && !writes_buffer(transfer) && is_complete)
            drop(transfer);
        if (transfer->waited)
            continue;
        list->all.at[list->all.count] = *transfer;
        add_to_area(list, list->all.count++);
    }
}

void hazards_submitted(const struct call *call, uint32_t number, enum command_kind kind, const struct runs *buffer,
                       uint64_t offset)
{
    struct hazards *hazards = hazards_of(call->tl);
    struct outstanding_list *list = kind == COMMAND_recv ? &hazards->receives : &hazards->moves;
    if (list->all.count == list->all.room) {
        compact(call->tl, list);
        if (4 * list->all.count >= 3 * list->all.room)  /* or it would soon compact again */
            array_reserve(&list->all, list->all.room + 1);
    }
    struct placed_runs *runs = buffer->axes ? pool_reuse(&strided, sizeof *runs) : NULL;
    if (runs)
        *runs = runs_placed(buffer, offset);
    *array_add(&list->all) = (struct outstanding){offset, offset + runs_span(buffer), runs, call->site.file,
                                                  call->site.line, number, (uint8_t)kind, false};
    add_to_area(list, list->all.count - 1);
}

/* Removes what is waited for from both ends of a list. */
static void trim(struct outstanding_list *list)
{
    while (list->first < list->all.count && list->all.at[list->first].waited)
        list->first++;
    while (list->all.count && list->all.at[list->all.count - 1].waited)
        list->all.count--;
    list->first = kb_min(list->first, list->all.count);
    while (list->areas.count && list->areas.at[list->areas.count - 1].first >= list->all.count)
        list->areas.count--;
    if (list->areas.count == 0)
        list->first_area = 0;
    while (list->first_area + 1 < list->areas.count && list->areas.at[list->first_area + 1].first <= list->first)
        list->first_area++;
}

/* Returns whether the list has the command. */
static bool waited(struct outstanding_list *list, uint32_t number)
{
    struct outstanding *all = list->all.at;
    size_t low = list->first, high = list->all.count;
    if (low == high || all[low].number > number || all[high - 1].number < number)
        return false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (all[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < list->all.count && all[low].number == number;
    if (found)
        drop(&all[low]);
    trim(list);
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

/* Finds the next transfer of a list, from the *next-th on, with bytes that are used, and the first of these bytes. */
static struct outstanding *next_conflict(const struct outstanding_list *list, struct used *used, size_t *next,
                                         uint64_t *first)
{
    *next = kb_max(*next, list->first);
    for (size_t a = list->first_area; a < list->areas.count; a++) {
        const struct area *area = &list->areas.at[a];
        size_t end = a + 1 < list->areas.count ? area[1].first : list->all.count;
        if (end <= *next || area->begin >= used->end || used->begin >= area->end)
            continue;
        for (*next = kb_max(*next, area->first); *next < end;) {
            struct outstanding *transfer = &list->all.at[(*next)++];
            if (conflicts(transfer, used, first))
                return transfer;
        }
    }
    return NULL;
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
    size_t next = 0;
    uint64_t first;
    if (view->memory != own_tcm(call) || (!hazards->freed.root && hazards->receives.all.count == 0))
        return;
    struct used used = used_of(view);
    if (hazards->freed.root)
        check_freed(call, &used);
    const struct outstanding *transfer = next_conflict(&hazards->receives, &used, &next, &first);
    if (transfer)
        conflict_fault(call, FAULT_KERNEL_ERROR, transfer, first, "cannot be used before tl_wait for");
}

void hazards_check_read(const struct call *call, const struct view *view)
{
    const struct hazards *hazards = hazards_of(call->tl);
    const struct outstanding_list *lists[] = {&hazards->receives, &hazards->moves};
    struct used used = used_of(view);
    uint64_t first;
    check_freed(call, &used);
    for (unsigned l = 0; l < 2; l++) {
        const struct outstanding *transfer;
        for (size_t next = 0; (transfer = next_conflict(lists[l], &used, &next, &first));)
            if (writes_buffer(transfer))
                conflict_fault(call, FAULT_PENDING_RESULT, transfer, first, "are not known before tl_wait for");
    }
}

void hazards_check_free(const struct call *call, const struct view *view)
{
    struct hazards *hazards = hazards_of(call->tl);
    struct outstanding_list *lists[] = {&hazards->receives, &hazards->moves};
    if (view->memory != own_tcm(call))
        return;
    struct used used = used_of(view);
    check_freed(call, &used);
    for (unsigned l = 0; l < 2; l++) {
        struct outstanding *transfer;
        uint64_t first;
        for (size_t next = 0; (transfer = next_conflict(lists[l], &used, &next, &first));) {
            if (kernel_command(call->tl, transfer->number))
                conflict_fault(call, FAULT_KERNEL_ERROR, transfer, first, "are in use by");
            drop(transfer);
        }
        trim(lists[l]);
    }
}
