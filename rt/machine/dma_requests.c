/* dma_requests.c: the requests of a DMA service that pe_dma limits, or that reads two operands.
 *
 *     dma_requests_begin      the time that the service takes at least, by its rate
 *     dma_requests_add        a run of an operand: it is cut at multiples of the largest request
 *     dma_requests_leave      the first requests: each when its operand is translated, and some time after the one before
 *     request_answered        a delivery or an acknowledgement makes room: the next one
 *
 * A request that leaves later than it is sent has its number from the time at which it is sent. Reads reserve the TCM's
 * write channel as their data come. */
#include "dma_requests.h"

#include "base/rates.h"
#include "common/array.h"
#include "common/pool.h"
#include "dma.h"
#include "emitted.h"
#include "engine.h"
#include "operand.h"
#include "sim/observer.h"
#include "tile.h"

/* A run in another memory; nothing of it leaves before ready_ps. */
struct leaving {
    struct range range;
    uint64_t ready_ps;
};

/* Each server has one, for the service that it is at. */
struct dma_requests {
    struct token *token;
    struct ARRAY(struct leaving) runs;
    size_t run;                                         /* that the next request is of, */
    uint64_t asked;                                     /* and how many of its bytes requests have been sent for */
    uint64_t sent;                                      /* requests, */
    uint64_t left_ps;                                   /* and when the last of them leaves */
};

static struct dma_requests *of_servers;                 /* of all servers of the machine; NULL: none is in use yet */

struct dma_request {
    struct transfer transfer;
    struct dma_requests *of;
};

static struct pool pool;

static struct dma_request *request_of(struct message *message)
{
    return container_of(message, struct dma_request, transfer.data.message);
}

/* ---- one request */

static bool reads(const struct dma_requests *requests)
{
    return requests->token->stage->kind == STAGE_DMA_READ;
}

/* Those that are held back are one part of the token together. */
static bool are_held_back(const struct dma_requests *requests)
{
    return requests->run < requests->runs.count;
}

static void read_reaches(struct message *message);
static void write_arrives(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps);

static const struct data_kind written = {.arrived = write_arrives};

static void request_send(struct dma_requests *requests, const struct range *range, uint64_t leave_ps)
{
    struct dma_request *request = pool_reuse(&pool, sizeof *request);
    struct transfer *transfer = &request->transfer;
    const struct command *command = requests->token->command;
    struct route *route = memory_route(command->pe, range, reads(requests));
    request->of = requests;
    transfer->token = requests->token;
    transfer->range = *range;
    transfer->data.message.cause = command_cause(command);
    transfer->data.payload = payload_of(range->bytes);
    requests->token->parts++;
    if (reads(requests))
        control_send(&transfer->data.message, route, leave_ps, read_reaches);
    else
        data_send(&transfer->data, route, transfer->data.payload, leave_ps, 0, &written);
}

/* The next request, of the run whose turn it is. */
static struct range next_range(struct dma_requests *requests)
{
    const struct range *run = &requests->runs.at[requests->run].range;
    uint64_t most = kb_attrs.pe_dma_max_request_bytes;
    struct range range = *run;
    range.offset += requests->asked;
    range.bytes -= requests->asked;
    if (most && range.bytes > most - range.offset % most)
        range.bytes = most - range.offset % most;
    requests->asked += range.bytes;
    if (requests->asked == run->bytes) {
        requests->run++;
        requests->asked = 0;
    }
    return range;
}

static void next_leaves(struct dma_requests *requests)
{
    uint64_t leave_ps = requests->runs.at[requests->run].ready_ps, after_ps = 0;
    if (requests->sent++)
        after_ps = time_after(requests->left_ps, kb_attrs.pe_dma_request_ps);
    if (leave_ps < now_ps)
        leave_ps = now_ps;
    bool spaced = after_ps > now_ps && after_ps >= leave_ps;
    if (spaced)
        leave_ps = after_ps;
    struct range range = next_range(requests);
    observe_request_leaves(requests->token, leave_ps, spaced);
    requests->left_ps = leave_ps;
    request_send(requests, &range, leave_ps);
    if (!are_held_back(requests))
        requests->token->parts--;
}

static struct dma_requests *request_answered(struct dma_request *request)
{
    struct dma_requests *requests = request->of;
    pool_give_back(&pool, request);
    if (are_held_back(requests))
        next_leaves(requests);
    return requests;
}

/* ---- its answer */

static void read_delivered(struct message *message)
{
    struct dma_request *request = request_of(message);
    struct token *token = request->of->token;
    uint64_t end_ps = tcm_write(token->command->pe, now_ps, request->transfer.data.payload);
    request_answered(request);
    dma_part_known(token, end_ps, false);
}

static void read_arrives(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    (void)head_ps;
    data_deliver(data, delivered_ps, read_delivered);
}

static const struct data_kind read = {.arrived = read_arrives};

static void read_reaches(struct message *message)
{
    struct transfer *transfer = &request_of(message)->transfer;
    struct data_message *data = &transfer->data;
    struct route *route = route_answer(message->route);
    delivery_settle(route->from, &message->event);
    struct served served = memory_read(&transfer->range, data->payload, now_ps);
    observe_memory_served(transfer);
    data_send(data, route, data->payload, served.first_ps, served.last_ps - served.first_ps, &read);
}

static void write_acknowledged(struct message *message)
{
    struct dma_requests *requests = request_answered(request_of(message));
    dma_part_known(requests->token, now_ps, true);
}

static void write_arrives(struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    struct transfer *transfer = container_of(data, struct transfer, data);
    uint64_t done_ps = memory_write_done_ps(&transfer->range, data->payload, head_ps, delivered_ps);
    observe_memory_served(transfer);
    control_send(&data->message, route_back(data->message.route), done_ps, write_acknowledged);
}

/* ---- all requests of a service */

struct dma_requests *dma_requests_begin(struct token *token)
{
    if (!of_servers)
        of_servers = array_zeros(pe_count() * kb_pe_servers, sizeof *of_servers);
    struct dma_requests *requests = &of_servers[token->server - kb_servers];
    requests->token = token;
    requests->runs.count = requests->run = 0;
    requests->asked = requests->sent = 0;
    token->parts = 1;
    token->end_ps = 0;
    uint64_t bw_bps = reads(requests) ? kb_attrs.pe_dma_rd_bw_bps : kb_attrs.pe_dma_wr_bw_bps;
    if (!bw_bps)
        return requests;
    token->end_ps = time_after(token->started_ps, move_ps(token->stage->amount, bw_bps));
    if (token->end_ps > now_ps)
        observe_part_known(token, token->end_ps);
    return requests;
}

void dma_requests_add(struct dma_requests *requests, const struct range *range, uint64_t ready_ps)
{
    *array_add(&requests->runs) = (struct leaving){*range, ready_ps};
}

void dma_requests_leave(struct dma_requests *requests)
{
    struct token *token = requests->token;
    uint64_t most = kb_attrs.pe_dma_requests_in_flight ? kb_attrs.pe_dma_requests_in_flight : UINT64_MAX;
    if (are_held_back(requests))
        token->parts++;
    while (are_held_back(requests) && requests->sent < most)
        next_leaves(requests);
    if (--token->parts == 0)
        service_until(token, token->stage->kind, token->end_ps);
}

void dma_requests_reset(void)
{
    for (size_t i = 0; of_servers && i < pe_count() * kb_pe_servers; i++)
        array_free(&of_servers[i].runs);
    of_servers = array_freed(of_servers);
    pool_release(&pool);
}

const struct handler dma_requests_handlers[] = {
    HANDLER(read_reaches, "limited read request at its memory"),
    HANDLER(read_delivered, "limited read data at their PE"),
    HANDLER(write_acknowledged, "limited write acknowledgement"),
    {0}};
