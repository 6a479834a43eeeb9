/* dma.c: DMA_READ and DMA_WRITE: translation, then one transfer for each physical run, over the fabric or within the
 * TCM.
 *
 *     read    request (control) -> memory_read -> response (data) -> TCM write
 *     write   TCM read of all bytes -> data -> memory_write -> acknowledgement (control)
 *
 * The stage ends with the last of its transfers. */
#include "dma.h"

#include <inttypes.h>

#include "common/arena.h"
#include "common/array.h"
#include "common/pool.h"
#include "deferred.h"
#include "emitted.h"
#include "engine.h"
#include "ipcq.h"
#include "kb/impl.h"
#include "memory.h"
#include "mmu.h"
#include "near_read.h"
#include "operand.h"
#include "dma_requests.h"
#include "sim/observer.h"
#include "stats.h"
#include "tile.h"

struct pool transfers;

/* Of the DMA that is being started: the runs that it asks for, if there are several, and their ranges of memories. */
static struct ARRAY(struct address_run) runs;
static struct ARRAY(struct range) ranges;

struct transfer *transfer_new(struct token *token, const struct range *range)
{
    struct transfer *transfer = pool_reuse(&transfers, sizeof *transfer);
    transfer->token = token;
    transfer->range = *range;
    transfer->data.message.cause = command_cause(token->command);
    token->transfer = transfer;
    return transfer;
}

static struct transfer *transfer_of(struct message *message)
{
    return container_of(message, struct transfer, data.message);
}

void dma_part_known(struct token *token, uint64_t end_ps, bool acknowledged)
{
    if (token->end_ps < end_ps)
        token->end_ps = end_ps;
    if (--token->parts) {
        observe_part_known(token, end_ps);
        return;
    }
    if (acknowledged && token->end_ps == now_ps)
        service_ended(token);
    else
        service_until(token, token->stage->kind, token->end_ps);
}

/* ---- reads */

static void read_delivered(struct message *message)
{
    struct transfer *transfer = transfer_of(message);
    const struct payload *payload = transfer->data.payload;
    struct token *token = transfer_end(transfer);
    dma_part_known(token, tcm_write(token->command->pe, now_ps, payload), false);
}

static void read_arrived(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    (void)head_ps;
    data_deliver(data, delivered_ps, read_delivered);
}

/* The TCM's write channel is reserved as of delivered_ps. Until then, nothing else reserves it, unless an engine of the PE
 * or a message that takes the last link to the PE settles this first. With one server of reads, there is no other read. A
 * channel of no limit of bandwidth would end the service in the round after the delivery, and not in the first. */
static bool read_take(struct data_message *data, uint64_t delivered_ps)
{
    struct transfer *transfer = container_of(data, struct transfer, data);
    struct token *token = transfer->token;
    struct channels *tcm = &token->command->pe->tcm;
    uint64_t length = data->payload->tcm_write_ps;
    if (kb_attrs.pe_dma_rd_engines > 1 || !length || tcm->write_free_ps > delivered_ps)
        return false;
    if (token->end_ps > time_after(delivered_ps, length))   /* a run within the TCM takes longer */
        return false;
    transfer->free_ps = tcm->write_free_ps;
    tcm->write_free_ps = time_after(delivered_ps, length);
    stats_tcm_write(data->payload->bytes, length, 1);
    service_until(token, STAGE_DMA_READ, tcm->write_free_ps);
    return true;
}

static void read_settle(struct data_message *data, const struct event *by)
{
    struct transfer *transfer = container_of(data, struct transfer, data);
    if (is_put_off(data)) {
        near_read_settle(transfer, by);
        return;
    }
    struct token *token = transfer->token;
    uint64_t length = data->payload->tcm_write_ps, delivered_ps = token->event.t_ps - length;
    if (delivered_ps <= now_ps) {                       /* its event would have been in the first round of its instant */
        transfer_end(transfer);
        return;
    }
    token->command->pe->tcm.write_free_ps = transfer->free_ps;
    stats_tcm_write(data->payload->bytes, length, -1);
    event_cancel(&token->event);
    event_count--;
    data_deliver(data, delivered_ps, read_delivered);
}

const struct data_kind reader = {.delivered = read_delivered, .take = read_take, .settle = read_settle};
static const struct data_kind eventual_reader = {.arrived = read_arrived};      /* no delivery ahead of time */

/* Of a DMA of several runs, only the last one left may be answered ahead of time: its token knows no other. */
void read_requested(struct message *message)
{
    struct transfer *transfer = transfer_of(message);
    struct data_message *data = &transfer->data;
    struct route *route = route_answer(message->route);
    delivery_settle(route->from, &message->event);
    struct served served = memory_read(&transfer->range, data->payload, now_ps);
    observe_memory_served(transfer);
    if (transfer->token->transfer == transfer && transfer->token->parts == 1)
        data_answer(data, route, data->payload, &served, &reader);
    else
        data_send(data, route, data->payload, served.first_ps, served.last_ps - served.first_ps, &eventual_reader);
}

/* ---- writes */

static void write_acknowledged(struct message *message)
{
    dma_part_known(transfer_end(transfer_of(message)), now_ps, true);
}

static void write_arrived(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    struct transfer *transfer = container_of(data, struct transfer, data);
    uint64_t done_ps = memory_write_done_ps(&transfer->range, data->payload, head_ps, delivered_ps);
    observe_memory_served(transfer);
    control_send(&data->message, route_back(data->message.route), done_ps, write_acknowledged);
}

/* The write of a block to an sram is served ahead of time. The channel serves writes in the order in which their heads come,
 * which is that in which they take the only link to the node. With the channel free it is known at once when that is, and the
 * acknowledgement. This gets its number earlier than an event would give it, and so perhaps a smaller one than data which the
 * sram sends in between. That matters only if both are due at the same PE at the same time, and in that case the order of what
 * they do there does not: one ends a write, the other one reserves the channel by which the TCM is written. */
static bool sram_write_arrives(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    const struct transfer *transfer = container_of(data, struct transfer, data);
    if (kb_sram[transfer->range.cube].write_free_ps > head_ps)
        return false;
    write_arrived(data, head_ps, delivered_ps);
    return true;
}

static const struct data_kind writer = {.arrived = write_arrived};
static const struct data_kind sram_writer = {.arrived = write_arrived, .arrives = sram_write_arrives};

/* Takes away what such a write is counted for beyond now (count: -1), or adds it again (1). */
static void write_count_ahead(const struct data_message *data, int count)
{
    if (data->ahead_ps <= now_ps || !data->kind->arrives || !step_is_last(data->step[-1]))
        return;
    stats.write_bytes[SPACE_SRAM] += count * data->payload->bytes;
    stats.write_busy_ps[SPACE_SRAM] += count * data->payload->sram_write_ps;
}

/* ---- the start of either */

struct dma {
    struct token *token;
    struct pe *pe;
    bool reads;
    uint64_t bytes;
    struct translation translation;
};

/* Translates the addresses of an operand, from from_ps on. Physical ones take no time. */
static struct translation translate(const struct token *token, unsigned operand, uint64_t bytes, uint64_t from_ps)
{
    const struct command *command = token->command;
    const struct request *ask = &command->ask;
    uint64_t address = tiling_address(command, &token->tile, operand);
    bool is_virtual = ask->virtual_address[operand];
    static struct address_run one;                      /* most DMAs ask for one run */
    const struct address_run *asked = &one;
    size_t count = 1;
    one = (struct address_run){address, bytes};
    if (ask->listed) {
        asked = ask->list;
        count = ask->listed;
    } else if (ask->runs) {
        count = runs_number(ask->runs);
        array_reserve(&runs, count);
        runs_list(ask->runs, address, is_virtual, runs.at);
        asked = runs.at;
    }
    if (is_virtual)
        return mmu_translate(command->pe, asked, count, from_ps);
    return (struct translation){.runs = asked, .count = count};
}

/* Fills in `ranges`. Returns NULL, or what is wrong with the run *bad. */
static const char *ranges_decode(const struct translation *t, const struct address_run **bad)
{
    array_reserve(&ranges, t->count);
    ranges.count = t->count;
    for (size_t i = 0; i < t->count; i++) {
        const char *wrong = address_decode(t->runs[i].address, t->runs[i].bytes, &ranges.at[i]);
        *bad = &t->runs[i];
        if (wrong)
            return wrong;
    }
    return NULL;
}

/* Reserves both channels of the PE's own TCM for bytes that stay within it. */
static uint64_t move_inside(struct pe *pe, uint64_t at_ps, const struct payload *payload)
{
    uint64_t read_ps = tcm_read(pe, at_ps, payload);
    uint64_t write_ps = tcm_write(pe, at_ps, payload);
    return read_ps > write_ps ? read_ps : write_ps;
}

static void run_start(const struct dma *dma, const struct range *range, uint64_t translated_ps, uint64_t leave_ps)
{
    const struct payload *payload = payload_of(range->bytes);
    if (range_is_own_tcm(range, dma->pe)) {
        dma_part_known(dma->token, move_inside(dma->pe, translated_ps, payload), false);
        return;
    }
    struct transfer *transfer = transfer_new(dma->token, range);
    struct route *route = memory_route(dma->pe, range, dma->reads);
    transfer->data.payload = payload;
    if (dma->reads)
        control_send(&transfer->data.message, route, leave_ps, read_requested);
    else
        data_send(&transfer->data, route, payload, leave_ps, 0, &writer);
}

/* When the runs may leave: what is written, when the TCM has supplied all of it and the addresses are translated. */
static uint64_t runs_leave_ps(const struct dma *dma, uint64_t translated_ps)
{
    uint64_t leaving = 0;
    for (size_t i = 0; i < ranges.count; i++)
        if (!range_is_own_tcm(&ranges.at[i], dma->pe))
            leaving += ranges.at[i].bytes;
    if (!dma->reads && leaving)
        return time_after(tcm_read(dma->pe, now_ps, payload_of(leaving)), dma->translation.ps);
    return translated_ps;
}

static void runs_start(const struct dma *dma)
{
    uint64_t translated_ps = time_after(now_ps, dma->translation.ps), leave_ps = runs_leave_ps(dma, translated_ps);
    dma->token->parts = ranges.count;
    dma->token->end_ps = 0;
    for (size_t i = 0; i < ranges.count; i++)
        run_start(dma, &ranges.at[i], translated_ps, leave_ps);
}

/* Starts to move a block of an operand that is worked out: one run in another memory, without translation. */
static void block_start(struct token *token, struct operand *operand)
{
    struct transfer *transfer = transfer_new(token, &operand->first);
    transfer->range.offset = operand_offset(operand, &token->tile);
    transfer->data.payload = operand->payload;
    token->parts = 1;
    token->end_ps = 0;
    if (token->stage->kind == STAGE_DMA_WRITE)
        data_write(&transfer->data, operand->route, operand->payload,
                   tcm_read(token->command->pe, now_ps, operand->payload),
                   transfer->range.space == SPACE_SRAM && !kb_has_model[NODE_sram] ? &sram_writer : &writer);
    else if (!near_read_start(transfer, &operand->near))
        control_send(&transfer->data.message, operand->route, now_ps, read_requested);
}

/* ---- faults: at the end of the translation, which a write begins when the TCM has supplied all its bytes */

struct dma_fault {
    const char *why;                                    /* what is wrong with the address; NULL: it is unmapped */
    uint64_t address;
};

static void fault_due(struct event *event)
{
    const struct token *token = container_of(event, struct token, event);
    const struct dma_fault *fault = token->fault;
    if (fault->why)
        command_fault(token->command, FAULT_BAD_ADDRESS, NODE_pe_dma, "tile %" PRIu64 ": %s: %s", token->tile.id,
                      address_name(fault->address), fault->why);
    else
        command_fault(token->command, FAULT_PAGE_FAULT, NODE_pe_mmu,
                      "tile %" PRIu64 ": the page at 0x%" PRIx64 " is unmapped", token->tile.id, fault->address);
}

/* Returns whether it is due now, which the caller sees to. */
static bool fault_start(const struct dma *dma, const struct dma_fault *found, uint64_t from_ps)
{
    struct dma_fault *fault = arena_alloc(1, sizeof *fault);
    *fault = *found;
    dma->token->fault = fault;
    uint64_t at_ps = from_ps;
    if (!dma->reads)
        at_ps = tcm_read(dma->pe, now_ps, payload_of(dma->bytes));
    at_ps = time_after(at_ps, dma->translation.ps);
    if (at_ps != now_ps)
        token_at(dma->token, at_ps, fault_due);
    return at_ps == now_ps;
}

/* Finds the runs of an operand: fills in dma->translation and `ranges`. Returns whether it is at fault, and how. */
static bool runs_find(struct dma *dma, unsigned operand, uint64_t from_ps, struct dma_fault *fault)
{
    const struct address_run *bad;
    dma->translation = translate(dma->token, operand, dma->bytes, from_ps);
    *fault = (struct dma_fault){NULL, dma->translation.page};
    if (dma->translation.unmapped)
        return true;
    fault->why = ranges_decode(&dma->translation, &bad);
    if (fault->why)
        fault->address = bad->address;
    return fault->why;
}

/* ---- limited requests, or two operands */

static void runs_add(const struct dma *dma, struct dma_requests *requests, uint64_t translated_ps)
{
    uint64_t leave_ps = runs_leave_ps(dma, translated_ps);
    for (const struct range *range = ranges.at; range < ranges.at + ranges.count; range++) {
        if (!range_is_own_tcm(range, dma->pe)) {
            dma_requests_add(requests, range, leave_ps);
            continue;
        }
        dma->token->parts++;
        dma_part_known(dma->token, move_inside(dma->pe, translated_ps, payload_of(range->bytes)), false);
    }
}

/* Of two operands, the second is translated after the first: its requests leave after both. The requests of the first leave
 * even if the second is at fault, but the stage does not end then. A later fault is put off before the requests leave: one
 * of them may do so when the translation ends that has found it, and is not what makes it due. They leave before a fault
 * that is due now, which ends the kernel that they are for. */
static void limited_start(struct dma *dma)
{
    const struct stage *stage = dma->token->stage;
    bool two = stage->operand == OPERANDS_A_B;
    struct dma_requests *requests = dma_requests_begin(dma->token);
    struct dma_fault fault;
    uint64_t from_ps = now_ps;
    for (unsigned i = 0; i < 1u + two; i++) {
        unsigned operand = two ? OPERAND_A + i : stage->operand;
        if (two)
            dma->bytes = tiling_block_bytes(dma->token->command, dma->token->tile.shape, operand);
        if (runs_find(dma, operand, from_ps, &fault)) {
            dma->token->parts++;
            bool now = fault_start(dma, &fault, from_ps);
            dma_requests_leave(requests);
            if (now)
                fault_due(&dma->token->event);
            return;
        }
        from_ps = time_after(from_ps, dma->translation.ps);
        runs_add(dma, requests, from_ps);
    }
    dma_requests_leave(requests);
}

static __attribute__((noinline)) void runs_resolve(struct token *token)
{
    const struct stage *stage = token->stage;
    struct dma dma = {.token = token,
                      .pe = token->command->pe,
                      .reads = stage->kind == STAGE_DMA_READ,
                      .bytes = stage->amount};
    struct dma_fault fault;
    if (dma_stage_has_requests(stage))
        limited_start(&dma);
    else if (!runs_find(&dma, stage->operand, now_ps, &fault))
        runs_start(&dma);
    else if (fault_start(&dma, &fault, now_ps))
        fault_due(&token->event);
}

void dma_start(struct token *token)
{
    struct operand *operand = token->stage->moves;
    if (operand)
        block_start(token, operand);
    else
        runs_resolve(token);
}

/* ---- with models of users */

static void dma_begin(struct token *token)
{
    if (token->stage->kind == STAGE_COMM)
        ipcq_send(token);
    else
        dma_start(token);
}

static void dma_prepared(struct event *event)
{
    dma_begin(container_of(event, struct token, event));
}

void dma_start_modelled(struct token *token)
{
    uint64_t ps = 0;
    if (kb_has_model[NODE_pe_dma])
        ps = pe_dma_prepare_ps(&(struct kb_dma_request){
            pe_number(token->command->pe), token_channel(token), token->command->number, token->tile.id,
            token_bytes(token), now_ps});
    if (token->stage->kind == STAGE_COMM && kb_has_model[NODE_pe_ipcq])
        ps = sum(ps, ipcq_send_delay_ps(token->command));
    if (ps)
        token_at(token, time_after(now_ps, ps), dma_prepared);
    else
        dma_begin(token);
}

void transfer_move(struct transfer *transfer)
{
    const struct token *token = transfer->token;
    uint64_t address = tiling_address(token->command, &token->tile, token->stage->operand);
    address_decode(address, transfer->range.bytes, &transfer->range);
}

void read_end(struct token *token)
{
    if (is_put_off(&token->transfer->data)) {
        near_read_end(token);
        return;
    }
    kb_nodes[pe_rank(token->command->pe, NODE_pe_dma)].taken = NULL;
    transfer_free(token->transfer);
    token->transfer = NULL;
}

void machine_settle(void)
{
    deferred_settle();
    for (struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++)
        delivery_settle(&kb_nodes[pe_rank(pe, NODE_pe_dma)], NULL);
}

void transfers_count_ahead(int count)
{
    machine_settle();
    for (struct server *server = kb_servers; server < kb_servers + pe_count() * kb_pe_servers; server++)
        if (server->token && server->token->transfer) {
            data_count_ahead(&server->token->transfer->data, count);
            write_count_ahead(&server->token->transfer->data, count);
        }
}

/* The same of one transfer. */
static uint64_t transfer_next_ps(const struct transfer *transfer)
{
    const struct token *token = transfer->token;
    const struct data_message *data = &transfer->data;
    if (is_put_off(data))
        return near_read_next_ps(transfer);
    if (data->ahead_ps > now_ps)
        return data->ahead_ps;
    if (kb_nodes[pe_rank(token->command->pe, NODE_pe_dma)].taken != data)
        return UINT64_MAX;
    uint64_t delivered_ps = token->event.t_ps - data->payload->tcm_write_ps;
    return delivered_ps > now_ps ? delivered_ps : UINT64_MAX;
}

uint64_t transfers_next_ps(void)
{
    uint64_t first_ps = deferred_next_ps();
    for (const struct server *server = kb_servers; server < kb_servers + pe_count() * kb_pe_servers; server++) {
        const struct transfer *transfer = server->token ? server->token->transfer : NULL;
        uint64_t next_ps = transfer ? transfer_next_ps(transfer) : UINT64_MAX;
        first_ps = next_ps < first_ps ? next_ps : first_ps;
    }
    return first_ps;
}

void transfers_reset(void)
{
    pool_release(&transfers);
}

const struct handler dma_handlers[] = {
    HANDLER(read_requested, "read request at its memory"),
    HANDLER(read_delivered, "read data at their PE"),
    HANDLER(write_acknowledged, "write acknowledgement"),
    HANDLER(fault_due, "fault of a DMA"),
    HANDLER(dma_prepared, "a DMA that a model of a user has prepared"),
    {0}};
