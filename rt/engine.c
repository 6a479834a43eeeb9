/* engine.c: services of the engines: DMA over the fabric, fetch and store, GEMM, MATH. */
#include "engine.h"

#include <stdlib.h>

#include "channel.h"
#include "emitted.h"
#include "kernel.h"
#include "memory.h"
#include "text/diag.h"

enum engine engine_of(enum stage_kind stage)
{
    static const enum engine engines[STAGES] = {
        [STAGE_DMA_READ] = ENGINE_DMA_READ, [STAGE_FETCH] = ENGINE_FETCH_STORE, [STAGE_GEMM] = ENGINE_GEMM,
        [STAGE_MATH] = ENGINE_MATH,         [STAGE_STORE] = ENGINE_FETCH_STORE, [STAGE_DMA_WRITE] = ENGINE_DMA_WRITE,
    };
    return engines[stage];
}

uint64_t engine_link_ps(enum stage_kind from, enum stage_kind to)
{
    const struct attrs *a = &kb_attrs;
    switch (from) {
    case STAGE_NONE:
        return to == STAGE_FETCH || to == STAGE_STORE ? a->links_scheduler_to_fetch_store_ps
               : to == STAGE_GEMM                     ? a->links_scheduler_to_gemm_ps
               : to == STAGE_MATH                     ? a->links_scheduler_to_math_ps
                                                      : a->links_scheduler_to_dma_ps;
    case STAGE_DMA_READ:
        return to == STAGE_FETCH ? a->links_dma_to_fetch_store_ps : 0;
    case STAGE_FETCH:
        return to == STAGE_GEMM ? a->links_fetch_store_to_gemm_ps : a->links_fetch_store_to_math_ps;
    case STAGE_GEMM:
        return to == STAGE_MATH ? a->links_gemm_to_math_ps : a->links_gemm_to_fetch_store_ps;
    case STAGE_MATH:
        return to == STAGE_STORE ? a->links_math_to_fetch_store_ps : 0;
    default:
        return a->links_fetch_store_to_dma_ps;
    }
}

uint64_t gemm_ps(uint64_t m, uint64_t k, uint64_t n, enum dtype dtype)
{
    uint64_t tiles = product(ceil_div(m, kb_attrs.pe_gemm_rows), ceil_div(n, kb_attrs.pe_gemm_cols));
    uint64_t cycles = sum(kb_attrs.pe_gemm_fill_cycles, product(tiles, ceil_div(k, kb_gemm_k_per_cycle[dtype])));
    return sum(kb_attrs.pe_gemm_overhead_ps, cycles_ps(cycles, kb_attrs.pe_gemm_clock_khz));
}

uint64_t math_ps(unsigned op, uint64_t elements, enum dtype dtype)
{
    uint64_t steps = ceil_div(elements, kb_math_lanes[dtype]);
    uint64_t cycles = sum(kb_attrs.pe_math_fill_cycles, product(steps, kb_ops[op].cost));
    return sum(kb_attrs.pe_math_overhead_ps, cycles_ps(cycles, kb_attrs.pe_math_clock_khz));
}

/* ---- the PE's own TCM: one read and one write channel; each of these gives the end of its reservation */

static uint64_t tcm_read(struct pe *pe, uint64_t bytes, uint64_t bw_bps)
{
    uint64_t length = move_ps(bytes, bw_bps), start = reserve(&pe->tcm_read_free_ps, now_ps, length);
    stats.read_bytes[SPACE_TCM] += bytes;
    stats.read_busy_ps[SPACE_TCM] += length;
    stats.memory_wait_ps[SPACE_TCM] += start - now_ps;
    return pe->tcm_read_free_ps;
}

static uint64_t tcm_write(struct pe *pe, uint64_t bytes, uint64_t bw_bps)
{
    uint64_t length = move_ps(bytes, bw_bps), start = reserve(&pe->tcm_write_free_ps, now_ps, length);
    stats.write_bytes[SPACE_TCM] += bytes;
    stats.write_busy_ps[SPACE_TCM] += length;
    stats.memory_wait_ps[SPACE_TCM] += start - now_ps;
    return pe->tcm_write_free_ps;
}

/* Between TCM and register file the narrower of the channel and the link to it counts. */
static uint64_t fetch_store_bw(uint64_t tcm_bps)
{
    uint64_t link_bps = kb_attrs.links_fetch_store_to_tcm_bw_bps;
    return !tcm_bps || (link_bps && link_bps < tcm_bps) ? link_bps : tcm_bps;
}

/* ---- DMA */

/* One run of bytes between a PE's TCM and a memory. */
struct transfer {
    struct data_message data;                           /* first its request, of a read; last its acknowledgement, of a write */
    struct token *token;
    struct range range;
    struct transfer *next;                              /* among the free ones */
};

static struct transfer *free_transfers;

static struct transfer *transfer_new(struct token *token, const struct range *range)
{
    struct transfer *transfer = free_transfers;
    if (transfer)
        free_transfers = transfer->next;
    else if (!(transfer = malloc(sizeof *transfer)))
        die("no memory for transfers");
    transfer->token = token;
    transfer->range = *range;
    return transfer;
}

static struct token *transfer_end(struct transfer *transfer)
{
    transfer->next = free_transfers;
    free_transfers = transfer;
    return transfer->token;
}

static struct transfer *transfer_of(struct message *message)
{
    return container_of(container_of(message, struct data_message, message), struct transfer, data);
}

static void read_delivered(struct message *message)
{
    struct transfer *transfer = transfer_of(message);
    struct pe *pe = transfer->token->command->pe;
    uint64_t end_ps = tcm_write(pe, transfer->range.bytes, kb_attrs.pe_tcm_write_bw_bps);
    service_until(transfer_end(transfer), end_ps);
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
    data_send(&transfer->data, way_back(message->way), transfer->range.bytes, served.first_ps,
              served.last_ps - served.first_ps, read_arrived);
}

static void write_acknowledged(struct message *message)
{
    service_ended(transfer_end(transfer_of(message)));
}

static void write_arrived(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    struct transfer *transfer = container_of(data, struct transfer, data);
    struct served served = memory_write(&transfer->range, head_ps);
    uint64_t done_ps = served.last_ps > delivered_ps ? served.last_ps : delivered_ps;
    control_send(&data->message, way_back(data->message.way), done_ps, write_acknowledged);
}

/* Within the PE's own TCM: no fabric, both channels at once. */
static void move_inside(struct token *token, uint64_t bytes)
{
    struct pe *pe = token->command->pe;
    uint64_t read_ps = tcm_read(pe, bytes, kb_attrs.pe_tcm_read_bw_bps);
    uint64_t write_ps = tcm_write(pe, bytes, kb_attrs.pe_tcm_write_bw_bps);
    service_until(token, read_ps > write_ps ? read_ps : write_ps);
}

static void dma_start(struct token *token)
{
    struct command *command = token->command;
    struct pe *pe = command->pe;
    uint64_t address = plan_address(command, &token->tile, token->stage.operand);
    uint64_t bytes = plan_bytes(command, &token->tile, token->stage.operand);
    struct range range;
    const char *wrong = address_decode(address, bytes, &range);
    if (wrong)
        command_fault(command, FAULT_BAD_ADDRESS, NODE_pe_dma, "tile %llu: %llu bytes at %s: %s", (unsigned long long)token->tile.id,
                      (unsigned long long)bytes, address_name(address), wrong);
    if (range.space == SPACE_TCM && range.pe == pe_number(pe)) {
        move_inside(token, bytes);
        return;
    }
    struct transfer *transfer = transfer_new(token, &range);
    struct way way = {place_pe(pe_number(pe), NODE_pe_dma), range_place(&range), REQUEST};
    if (token->stage.kind == STAGE_DMA_READ) {
        control_send(&transfer->data.message, way, now_ps, read_requested);
        return;
    }
    data_send(&transfer->data, way, bytes, tcm_read(pe, bytes, kb_attrs.pe_tcm_read_bw_bps), 0, write_arrived);
}

/* ---- fetch, store, compute */

static uint64_t fetch_ps(const struct token *token)
{
    uint64_t bytes = plan_fetch_bytes(token->command, &token->tile);
    uint64_t end_ps = tcm_read(token->command->pe, bytes, fetch_store_bw(kb_attrs.pe_tcm_read_bw_bps));
    return time_after(end_ps, kb_attrs.pe_fetch_store_overhead_ps);
}

static uint64_t store_ps(const struct token *token)
{
    uint64_t bytes = plan_bytes(token->command, &token->tile, OPERAND_C);
    uint64_t end_ps = tcm_write(token->command->pe, bytes, fetch_store_bw(kb_attrs.pe_tcm_write_bw_bps));
    return time_after(end_ps, kb_attrs.pe_fetch_store_overhead_ps);
}

static uint64_t gemm_end_ps(const struct token *token)
{
    const struct tile *tile = &token->tile;
    stats.gemm_flops += 2 * tile->m * tile->k * tile->n;
    return time_after(now_ps, gemm_ps(tile->m, tile->k, tile->n, token->command->ask.dtype));
}

/* An epilogue of a gemm works with the lanes of what comes out. */
static uint64_t math_end_ps(const struct token *token)
{
    const struct request *ask = &token->command->ask;
    enum dtype dtype = ask->kind == COMMAND_gemm_tiles ? ask->out_dtype : ask->dtype;
    return time_after(now_ps, math_ps(token->stage.op, plan_elements(token->command, &token->tile), dtype));
}

void service_start(struct token *token)
{
    switch (token->stage.kind) {
    case STAGE_DMA_READ:
    case STAGE_DMA_WRITE:
        dma_start(token);
        break;
    case STAGE_FETCH:
        service_until(token, fetch_ps(token));
        break;
    case STAGE_STORE:
        service_until(token, store_ps(token));
        break;
    case STAGE_GEMM:
        service_until(token, gemm_end_ps(token));
        break;
    default:
        service_until(token, math_end_ps(token));
    }
}
