/* dma.c: DMA_READ and DMA_WRITE: translation, then one transfer per physical run, over the fabric or within the TCM.
 *
 *     read    request (control) -> memory_read -> response (data) -> TCM write; the stage ends with the last
 *     write   TCM read, once -> data per run -> memory_write -> acknowledgement (control); likewise */
#include <inttypes.h>
#include <stdlib.h>

#include "base/rates.h"
#include "dma.h"
#include "emitted.h"
#include "engine.h"
#include "memory.h"
#include "mmu.h"
#include "common/arena.h"
#include "common/diag.h"
#include "sim/observer.h"
#include "tile.h"

static struct transfer *free_transfers;

struct transfer *transfer_new(struct token *token, const struct range *range)
{
    struct transfer *transfer = free_transfers;
    if (transfer)
        free_transfers = transfer->next;
    else
        transfer = arena_alloc(1, sizeof *transfer);
    transfer->token = token;
    transfer->range = *range;
    token->transfer = transfer;
    return transfer;
}

void transfer_free(struct transfer *transfer)
{
    transfer->next = free_transfers;
    free_transfers = transfer;
}

static struct token *transfer_end(struct transfer *transfer)
{
    transfer_free(transfer);
    transfer->token->transfer = NULL;
    return transfer->token;
}

static struct transfer *transfer_of(struct message *message)
{
    return container_of(container_of(message, struct data_message, message), struct transfer, data);
}

/* The end of one part of the stage is known. Only an acknowledgement ends the stage in place. */
static void part_known(struct token *token, uint64_t end_ps, bool acknowledged)
{
    if (token->end_ps < end_ps)
        token->end_ps = end_ps;
    if (--token->parts)
        return;
    if (acknowledged && token->end_ps == now_ps)
        service_ended(token);
    else
        service_until(token, token->end_ps);
}

/* ---- reads */

static void read_delivered(struct message *message)
{
    struct transfer *transfer = transfer_of(message);
    uint64_t bytes = transfer->range.bytes;
    struct token *token = transfer_end(transfer);
    part_known(token, tcm_write(token->command->pe, now_ps, bytes, kb_attrs.pe_tcm_write_bw_bps), false);
}

static void read_arrived(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    (void)head_ps;
    data_deliver(data, delivered_ps, read_delivered);
}

static void read_requested(struct message *message)
{
    struct transfer *transfer = transfer_of(message);
    struct served served = memory_read(&transfer->range, now_ps);
    observe_memory_served(transfer);
    data_send(&transfer->data, way_back(message->way), transfer->range.bytes, served.first_ps,
              served.last_ps - served.first_ps, read_arrived);
}

/* ---- writes */

static void write_acknowledged(struct message *message)
{
    part_known(transfer_end(transfer_of(message)), now_ps, true);
}

static void write_arrived(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    struct transfer *transfer = container_of(data, struct transfer, data);
    uint64_t done_ps = memory_write_done_ps(&transfer->range, head_ps, delivered_ps);
    observe_memory_served(transfer);
    control_send(&data->message, way_back(data->message.way), done_ps, write_acknowledged);
}

/* ---- both */

/* What a stage moves. */
struct dma {
    struct token *token;
    struct pe *pe;
    bool reads;
    uint64_t bytes;
    struct translation translation;
};

/* The runs as ranges of memories; until the next DMA starts. */
static struct range *ranges;
static size_t ranges_room;

static bool is_own_tcm(const struct range *range, const struct pe *pe)
{
    return range->space == SPACE_TCM && range->pe == pe_number(pe);
}

/* What a stage asks for, as runs of addresses; until the next DMA starts. */
static size_t runs_asked(const struct token *token, uint64_t bytes, const struct address_run **asked)
{
    static struct address_run one, many[RUNS_MOST];
    const struct request *ask = &token->command->ask;
    uint64_t address = tiling_address(token->command, &token->tile, token->stage.operand);
    one = (struct address_run){address, bytes};
    *asked = &one;
    if (ask->runs.axes == 0)
        return 1;
    runs_list(&ask->runs, address, ask->virtual_address[OPERAND_A], many);
    *asked = many;
    return runs_number(&ask->runs);
}

static const char *ranges_decode(const struct translation *t, const struct address_run **bad)
{
    if (t->count > ranges_room) {
        ranges_room = 2 * t->count;
        ranges = realloc(ranges, ranges_room * sizeof *ranges);
        if (!ranges)
            die("no memory for the runs of a transfer");
    }
    for (size_t i = 0; i < t->count; i++) {
        const char *wrong = address_decode(t->runs[i].address, t->runs[i].bytes, &ranges[i]);
        *bad = &t->runs[i];
        if (wrong)
            return wrong;
    }
    return NULL;
}

/* Within the PE's own TCM: both channels at once. */
static uint64_t move_inside(struct pe *pe, uint64_t at_ps, uint64_t bytes)
{
    uint64_t read_ps = tcm_read(pe, at_ps, bytes, kb_attrs.pe_tcm_read_bw_bps);
    uint64_t write_ps = tcm_write(pe, at_ps, bytes, kb_attrs.pe_tcm_write_bw_bps);
    return read_ps > write_ps ? read_ps : write_ps;
}

/* An operand is mostly in one memory. */
static const struct path *path_to(struct pe *pe, const struct range *range, unsigned operand)
{
    struct path *path = &pe->path[operand];
    if (pe->path_memory[operand] != range->memory + 1) {
        pe->path_memory[operand] = range->memory + 1;
        *path = path_of((struct way){place_pe(pe_number(pe), NODE_pe_dma), range_place(range), REQUEST});
    }
    return path;
}

static void run_start(const struct dma *dma, const struct range *range, uint64_t translated_ps, uint64_t leave_ps)
{
    if (is_own_tcm(range, dma->pe)) {
        part_known(dma->token, move_inside(dma->pe, translated_ps, range->bytes), false);
        return;
    }
    struct transfer *transfer = transfer_new(dma->token, range);
    const struct path *path = path_to(dma->pe, range, dma->token->stage.operand);
    if (dma->reads)
        control_send_over(&transfer->data.message, path, leave_ps, read_requested);
    else
        data_send(&transfer->data, path->way, range->bytes, leave_ps, 0, write_arrived);
}

static void runs_start(const struct dma *dma)
{
    uint64_t translated_ps = time_after(now_ps, dma->translation.ps), leave_ps = translated_ps, leaving = 0;
    size_t count = dma->translation.count;
    for (size_t i = 0; i < count; i++)
        if (!is_own_tcm(&ranges[i], dma->pe))
            leaving += ranges[i].bytes;
    if (!dma->reads && leaving)
        leave_ps = time_after(tcm_read(dma->pe, now_ps, leaving, kb_attrs.pe_tcm_read_bw_bps), dma->translation.ps);
    dma->token->parts = count;
    dma->token->end_ps = 0;
    for (size_t i = 0; i < count; i++)
        run_start(dma, &ranges[i], translated_ps, leave_ps);
}

/* ---- faults: at the end of the translation, of a write behind a TCM read of all its bytes */

static struct translation translate(const struct token *token, uint64_t bytes)
{
    const struct command *command = token->command;
    const struct address_run *asked;
    size_t count = runs_asked(token, bytes, &asked);
    if (command->ask.virtual_address[token->stage.operand])
        return mmu_translate(command->pe, asked, count);
    return (struct translation){.runs = asked, .count = count};     /* physical addresses take no time */
}

static void fault_due(struct event *event)
{
    const struct token *token = container_of(event, struct token, event);
    if (token->fault_why)
        command_fault(token->command, FAULT_BAD_ADDRESS, NODE_pe_dma, "tile %" PRIu64 ": %s: %s", token->tile.id,
                      address_name(token->fault_address), token->fault_why);
    else
        command_fault(token->command, FAULT_PAGE_FAULT, NODE_pe_mmu,
                      "tile %" PRIu64 ": the page at 0x%" PRIx64 " is unmapped", token->tile.id, token->fault_address);
}

static void fault_start(const struct dma *dma)
{
    uint64_t at_ps = now_ps;
    if (!dma->reads)
        at_ps = tcm_read(dma->pe, now_ps, dma->bytes, kb_attrs.pe_tcm_read_bw_bps);
    at_ps = time_after(at_ps, dma->translation.ps);
    if (at_ps == now_ps)
        fault_due(&dma->token->event);
    else
        token_at(dma->token, NODE_pe_dma, at_ps, fault_due);
}

void dma_start(struct token *token)
{
    uint64_t bytes = tiling_bytes(token->command, &token->tile, token->stage.operand);
    struct dma dma = {.token = token,
                      .pe = token->command->pe,
                      .reads = token->stage.kind == STAGE_DMA_READ,
                      .bytes = bytes,
                      .translation = translate(token, bytes)};
    const struct address_run *bad;
    if (dma.translation.unmapped) {
        token->fault_why = NULL;
        token->fault_address = dma.translation.page;
        fault_start(&dma);
    } else if ((token->fault_why = ranges_decode(&dma.translation, &bad))) {
        token->fault_address = bad->address;
        fault_start(&dma);
    } else {
        runs_start(&dma);
    }
}

void transfer_move(struct transfer *transfer)
{
    const struct token *token = transfer->token;
    uint64_t address = tiling_address(token->command, &token->tile, token->stage.operand);
    address_decode(address, transfer->range.bytes, &transfer->range);
}

void transfers_reset(void)
{
    free_transfers = NULL;
}

const struct handler dma_handlers[] = {
    HANDLER(read_requested, "read request at its memory"),
    HANDLER(read_delivered, "read data at their PE"),
    HANDLER(write_acknowledged, "write acknowledgement"),
    HANDLER(fault_due, "fault of a DMA"),
    {0}};
