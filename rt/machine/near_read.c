/* near_read.c: reads of HBM next to the PE, computed as one sum.
 *
 *     request  ->  slice  ->  link, router  ->  link, pe_dma  ->  TCM
 *     asked_ps     leave_ps                                       end
 *
 * That is exact, because all that it is computed from stays as it is: before anything else uses a part of the way, which is
 * reserved (near_way_mark), the read is settled, and there is one server of reads. */
#include "near_read.h"

#include "base/rates.h"
#include "dma.h"
#include "emitted.h"
#include "hbm.h"
#include "operand.h"
#include "sim/observer.h"
#include "stats.h"
#include "tile.h"

enum { PAUSES_MOST = 1 << 10 };

void near_read_make(struct near_read *near, const struct operand *operand)
{
    const struct payload *payload = operand->payload;
    near->pause = NEAR_NEVER;
    if (operand->first.space != SPACE_HBM || kb_has_model[NODE_hbm_ctrl] || kb_attrs.pe_dma_rd_engines > 1
        || !payload->tcm_write_ps || !near_way_make(&near->way, operand->route, payload))
        return;
    near->slice = &kb_hbm[operand->first.number];
    near->channel = slice_first_channel(operand->first.number);
    near->route = operand->route;
    near->request_ps = route_latency_ps(operand->route);
    near->pause = near->pauses = 0;
}

/* Somebody watches what happens on the way, or takes part in it. */
static inline bool is_watched(void)
{
    return observed & (MOMENT_BIT(MODELS_WATCH) | MOMENT_BIT(MOMENT_event_fires) | MOMENT_BIT(MOMENT_event_set_due)
                       | MOMENT_BIT(MOMENT_control_sent) | MOMENT_BIT(MOMENT_data_sent) | MOMENT_BIT(MOMENT_memory_served)
                       | MOMENT_BIT(MOMENT_data_arrived) | MOMENT_BIT(MOMENT_reserved));
}

/* When the response leaves the slice, and when all of it is at pe_dma. */
static inline uint64_t leave_ps(const struct hbm_turn *turn)
{
    return sum(turn->start_ps, kb_attrs.hbm_ctrl_access_ps);
}

static inline uint64_t delivered_ps(const struct near_read *near, const struct hbm_turn *turn)
{
    uint64_t tail_ps = turn->length_ps > near->way.length_ps ? turn->length_ps : near->way.length_ps;
    return sum(sum(leave_ps(turn), near->way.hop[1].handled_ps), tail_ps);
}

static inline bool turn_find(struct near_read *near, const struct transfer *transfer, uint64_t asked_ps)
{
    return hbm_level_turn(near->slice, near->channel, transfer->range.offset, transfer->data.payload, asked_ps, &near->turn);
}

bool near_read_try(struct transfer *transfer, struct near_read *near)
{
    struct data_message *data = &transfer->data;
    struct token *token = transfer->token;
    struct hbm_turn *turn = &near->turn;
    if (is_watched() || !turn_find(near, transfer, sum(now_ps, near->request_ps)) || !turn->length_ps
        || !near_way_is_free(&near->way, leave_ps(turn)))
        return false;
    uint64_t written_ps = delivered_ps(near, turn), end_ps = sum(written_ps, data->payload->tcm_write_ps);
    if (token->command->pe->tcm.write_free_ps > written_ps || end_ps == UINT64_MAX)
        return false;
    control_number(&data->message, near->way.hop[1].node);
    data->kind = &reader;
    data->ahead_ps = UINT64_MAX;
    near_way_mark(&near->way, data);
    service_until(token, STAGE_DMA_READ, end_ps);
    return true;
}

static struct near_read *near_of(const struct transfer *transfer)
{
    return &transfer->token->stage->moves->near;
}

/* The response of a read has taken its way. */
static inline void near_way_take(const struct near_way *way, uint64_t leave_ps)
{
    way->memory->messages++;
    for (const struct near_hop *hop = way->hop; hop < way->hop + NEAR_HOPS; hop++) {
        hop->link->free_ps = leave_ps + hop->leaves_ps + way->length_ps;
        hop->link->busy_ps += way->length_ps;
        hop->node->free_ps = leave_ps + hop->handled_ps;
    }
    stats.link_bytes[way->class] += NEAR_HOPS * way->bytes;
    stats.link_busy_ps[way->class] += NEAR_HOPS * way->length_ps;
}

/* Its events: the request at the slice, the departure unless that is at once, the head at router and pe_dma, the delivery. */
void near_read_end(struct token *token)
{
    struct near_read *near = &token->stage->moves->near;
    const struct hbm_turn *turn = &near->turn;
    const struct payload *payload = token->transfer->data.payload;
    uint64_t left_ps = leave_ps(turn);
    event_count += 4 + (left_ps > turn->asked_ps);
    stats.read_bytes[SPACE_HBM] += payload->bytes;
    hbm_level_take(near->slice, near->channel, turn);
    near_way_take(&near->way, left_ps);
    token->command->pe->tcm.write_free_ps = now_ps;
    stats_tcm_write(payload->bytes, payload->tcm_write_ps, 1);
    near->pauses /= 2;
    near_way_mark(&near->way, NULL);
    token->transfer->data.ahead_ps = 0;
    transfer_end(token->transfer);
}

void near_read_settle(struct transfer *transfer, const struct event *by)
{
    struct near_read *near = near_of(transfer);
    struct event *end = &transfer->token->event;
    if (end->t_ps == now_ps) {                          /* its other events were due before, since the TCM takes time */
        near_read_end(transfer->token);
        return;
    }
    near_way_mark(&near->way, NULL);
    transfer->data.ahead_ps = 0;
    near->pauses = near->pauses < PAUSES_MOST ? 2 * near->pauses + 1 : PAUSES_MOST;
    near->pause = near->pauses;
    event_cancel(end);
    control_catch_up(&transfer->data.message, near->route, near->turn.asked_ps, read_requested, by);
}

uint64_t near_read_next_ps(const struct transfer *transfer)
{
    const struct near_read *near = near_of(transfer);
    const struct hbm_turn *turn = &near->turn;
    uint64_t left_ps = leave_ps(turn);
    const uint64_t steps_ps[] = {turn->asked_ps, left_ps, left_ps + near->way.hop[0].arrives_ps,
                                 left_ps + near->way.hop[1].arrives_ps, delivered_ps(near, turn)};
    for (unsigned i = 0; i < sizeof steps_ps / sizeof *steps_ps; i++)
        if (steps_ps[i] > now_ps)
            return steps_ps[i];
    return transfer->token->event.t_ps;
}
