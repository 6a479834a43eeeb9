/* state.c: what each operation does with a field of the state, by the kind of the field.
 *
 * Each operation (compare, copy, shift, list) has one function with a case for each kind that it does not leave alone,
 * and one function for each struct, which is made from the struct's rows in machine/state.def. */
#include "state.h"

#include <string.h>

#include "common/arena.h"
#include "machine/dma.h"
#include "machine/emitted.h"
#include "machine/state_fields.h"
#include "machine/stats.h"
#include "machine/tile.h"
#include "machine/tile_buffers.h"

#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t word_of(const void *field, size_t bytes)
{
    uint64_t word = 0;
    memcpy(&word, field, bytes < sizeof word ? bytes : sizeof word);
    return word;
}

enum token_site { TOKEN_QUEUED, TOKEN_SERVED, TOKEN_MOVING };

/* Whether the token's own event waits, and not that of its transfer, or none. */
static bool token_is_due(const struct token *token, enum token_site site)
{
    return site == TOKEN_MOVING || (site == TOKEN_SERVED && !token->transfer && !token->server->held);
}

/* ---- tokens of a PE's composite */

struct visitor {
    void (*token)(struct visitor *visitor, struct token *token);    /* may free it */
};

static void visit_list(struct visitor *visitor, struct token *token)
{
    for (struct token *next; token; token = next) {
        next = token->next;
        visitor->token(visitor, token);
    }
}

static void visit_tokens(struct visitor *visitor, const struct pe *pe)
{
    for (unsigned stage = 0; stage < STAGES; stage++)
        visit_list(visitor, pe->queue[stage].head);
    for (uint32_t i = 0; i < kb_pe_servers; i++)
        if (pe->servers[i].token)
            visitor->token(visitor, pe->servers[i].token);
    visit_list(visitor, pe->travelling);
    if (pe->feed)
        visitor->token(visitor, pe->feed);
}

/* Forgets the tiles that the feeder has made or worked out and not fed. */
static void forget_next(struct pe *pe)
{
    if (pe->next_feed)
        token_free(pe->next_feed);
    pe->next_feed = NULL;
    pe->next_tile.id = 0;
    pe->lacks_room = false;
}

/* ---- fingerprints */

void fingerprint_write(struct fingerprint *print)
{
    print->words.count = print->events = 0;
    print->compares = print->differs = false;
}

void fingerprint_compare(struct fingerprint *print)
{
    print->at = print->events = 0;
    print->compares = true;
    print->differs = false;
}

INLINE void add(struct fingerprint *print, uint64_t word)
{
    if (!print->compares)
        *array_add(&print->words) = word;
    else if (print->at == print->words.count || print->words.at[print->at++] != word)
        print->differs = true;
}

void fingerprint_add(struct fingerprint *print, uint64_t word)
{
    add(print, word);
}

INLINE void compare_field(struct fingerprint *print, enum state_kind kind, const void *field, size_t bytes)
{
    uint64_t word = word_of(field, bytes);
    switch (kind) {
    case STATE_VALUE:
    case STATE_FED:
        add(print, word);
        break;
    case STATE_FREE:
        add(print, word > now_ps ? word - now_ps : 0);
        break;
    case STATE_TIME:
    case STATE_DUE:
        add(print, word - now_ps);
        break;
    case STATE_NUMBER:
        add(print, print->newest - word);
        break;
    case STATE_TILE:                                    /* a tile begins with its number */
        add(print, print->pe->fed - word);
        break;
    case STATE_STAGE:
        add(print, (*(const struct stage *const *)field)->index);
        break;
    case STATE_STEP:
        add(print, data_taken(container_of(field, struct data_message, step)));
        break;
    case STATE_SERVICE:
        add(print, print->pe->services - word);
        break;
    case STATE_OFFSET:
        add(print, word & OFFSET_MASK);
        break;
    case STATE_OWNER:
        print->differs |= word != word_of(&print->pe->feeding, sizeof print->pe->feeding);
        break;
    case STATE_ZERO:
    case STATE_EMPTY:                                   /* a queue begins with its head */
        print->differs |= word != 0;
        break;
    default:
        break;
    }
}

/* A row. WHEN_<compared> is the condition under which it is compared. */
#define COMPARE(STRUCT, from, field, kind, when)                                                                       \
    if (WHEN_##when && ROW_IS_READ(COMPARE, STRUCT, field))                                                            \
        compare_field(print, STATE_##kind, &(from)->field, sizeof (from)->field);
#define COMPARE_EACH(STRUCT, from, field, kind, when)                                                                  \
    if (WHEN_##when && ROW_IS_READ(COMPARE, STRUCT, field))                                                            \
        for (size_t i = 0; i < COUNT_OF((from)->field); i++)                                                           \
            compare_field(print, STATE_##kind, &(from)->field[i], sizeof (from)->field[i]);
#define WHEN_YES true
#define WHEN_NO false
#define WHEN_SYMMETRY print->labels

/* Marks the end of a list, so that lists of different lengths differ. */
static void compare_end(struct fingerprint *print)
{
    add(print, UINT64_MAX);
}

static void compare_event(struct fingerprint *print, const struct event *event, uint64_t newest)
{
    print->newest = newest;
    print->events++;
#define EVENT(field, kind, when) COMPARE(EVENT, event, field, kind, when)
#include "machine/state.def"
}

static void compare_message(struct fingerprint *print, const struct message *message, bool under_way)
{
    compare_event(print, &message->event, kb_nodes[route_from_rank(message->route)].messages);
#define WHEN_DELIVERED !under_way
#define MESSAGE(field, kind, when) COMPARE(MESSAGE, message, field, kind, when)
#include "machine/state.def"
}

static void compare_data(struct fingerprint *print, const struct data_message *data)
{
    bool under_way = data_under_way(data);
    add(print, under_way);
    compare_message(print, &data->message, under_way);
#define WHEN_UNDER_WAY under_way
#define DATA(field, kind, when) COMPARE(DATA, data, field, kind, when)
#include "machine/state.def"
}

static void compare_buffer(struct fingerprint *print, const struct buffer *buffer)
{
#define BUFFER(field, kind, when) COMPARE(BUFFER, buffer, field, kind, when)
#include "machine/state.def"
}

static void compare_token(struct fingerprint *print, const struct token *token, enum token_site site)
{
#define WHEN_ARRIVED site != TOKEN_MOVING
#define WHEN_SERVED site == TOKEN_SERVED
#define TOKEN(field, kind, when) COMPARE(TOKEN, token, field, kind, when)
#include "machine/state.def"
    const struct buffer *buffer;
    tile_buffers_for(buffer, token)
        compare_buffer(print, buffer);
    if (site == TOKEN_SERVED && token->transfer)
        compare_data(print, &token->transfer->data);
    if (token_is_due(token, site))
        compare_event(print, &token->event, print->pe->fed);
}

static void compare_list(struct fingerprint *print, const struct token *token, enum token_site site)
{
    for (; token; token = token->next)
        compare_token(print, token, site);
    compare_end(print);
}

static void compare_server(struct fingerprint *print, const struct server *server)
{
    if (server->token)
        compare_token(print, server->token, TOKEN_SERVED);
#define WHEN_SERVES server->token
#define SERVER(field, kind, when) COMPARE(SERVER, server, field, kind, when)
#include "machine/state.def"
    compare_end(print);
}

static void compare_composite(struct fingerprint *print, const struct command *command)
{
    const struct request *ask = &command->ask;
#define COMMAND(field, kind, when) COMPARE(COMMAND, command, field, kind, when)
#define COMMAND_EACH(field, kind, when) COMPARE_EACH(COMMAND, command, field, kind, when)
#define REQUEST(field, kind, when) COMPARE(REQUEST, ask, field, kind, when)
#define REQUEST_EACH(field, kind, when) COMPARE_EACH(REQUEST, ask, field, kind, when)
#include "machine/state.def"
    for (const struct epilogue *e = ask->epilogue; e < ask->epilogue + ask->epilogues; e++) {
#define EPILOGUE(field, kind, when) COMPARE(EPILOGUE, e, field, kind, when)
#include "machine/state.def"
    }
    compare_end(print);
}

static void compare_channels(struct fingerprint *print, const struct channels *channels)
{
#define CHANNELS(field, kind, when) COMPARE(CHANNELS, channels, field, kind, when)
#include "machine/state.def"
}

static void compare_pe(struct fingerprint *print, const struct pe *pe)
{
    print->pe = pe;
    if (!pe->feeding) {
        print->differs = true;
        return;
    }
#define PE(field, kind, when) COMPARE(PE, pe, field, kind, when)
#define PE_EACH(field, kind, when) COMPARE_EACH(PE, pe, field, kind, when)
#include "machine/state.def"
    compare_composite(print, pe->feeding);
    for (unsigned stage = 0; stage < STAGES; stage++)
        compare_list(print, pe->queue[stage].head, TOKEN_QUEUED);
    for (uint32_t i = 0; i < kb_pe_servers; i++)
        compare_server(print, &pe->servers[i]);
    compare_list(print, pe->travelling, TOKEN_MOVING);
    if (pe->feed)
        compare_token(print, pe->feed, TOKEN_MOVING);
    compare_end(print);
}

static void compare_slice(struct fingerprint *print, uint32_t slice)
{
    const struct pseudo_channel *channels = slice_channels(slice);
    for (const struct pseudo_channel *pc = channels; pc < channels + kb_attrs.hbm_ctrl_pcs; pc++) {
#define PSEUDO_CHANNEL(field, kind, when) COMPARE(PSEUDO_CHANNEL, pc, field, kind, when)
#include "machine/state.def"
    }
}

static void compare_node(struct fingerprint *print, const struct fabric_node *node)
{
#define FABRIC_NODE(field, kind, when) COMPARE(FABRIC_NODE, node, field, kind, when)
#include "machine/state.def"
}

static void compare_link(struct fingerprint *print, const struct fabric_link *link)
{
#define FABRIC_LINK(field, kind, when) COMPARE(FABRIC_LINK, link, field, kind, when)
#include "machine/state.def"
}

void fingerprint_group(struct fingerprint *print, const struct group *group)
{
    for (uint32_t i = 0; i < group->pes && !print->differs; i++) {
        compare_pe(print, group->pe[i]);
        compare_channels(print, &group->pe[i]->tcm);
    }
    for (uint32_t i = 0; i < group->nodes && !print->differs; i++) {
        struct place place = rank_place(group->node[i]);
        compare_node(print, &kb_nodes[group->node[i]]);
        if (place_is_kind(place, NODE_hbm_ctrl))
            compare_slice(print, place_slice(place));
        if (place_is_kind(place, NODE_sram))
            compare_channels(print, &kb_sram[place_cube(place)]);
    }
    for (uint32_t i = 0; i < group->links && !print->differs; i++)
        compare_link(print, &kb_links[group->link[i]]);
}

void fingerprint_machine(struct fingerprint *print, struct pe *const *pes, uint32_t count)
{
    uint64_t kernel_ps;
    machine_settle();
    for (uint32_t i = 0; i < count && !print->differs; i++)
        compare_pe(print, pes[i]);
    if (!print->differs && print->events != event_waiting(&kernel_ps))
        print->differs = true;
    for (uint32_t i = 0; i < node_count() && !print->differs; i++)
        compare_node(print, &kb_nodes[i]);
    for (uint64_t i = 0; i < link_count() && !print->differs; i++)
        compare_link(print, &kb_links[i]);
    for (uint32_t i = 0; i < slice_count() && !print->differs; i++)
        compare_slice(print, i);
    for (uint32_t i = 0; i < cube_count() && !print->differs; i++)
        compare_channels(print, &kb_sram[i]);
    for (uint32_t i = 0; i < pe_count() && !print->differs; i++)
        compare_channels(print, &kb_pe[i].tcm);
}

/* ---- copies */

static void token_drop(struct visitor *visitor, struct token *token)
{
    (void)visitor;
    if (token->transfer) {
        data_count_event(&token->transfer->data, -1);
        transfer_free(token->transfer);
    }
    token_free(token);
}

void state_drop_tiles(struct pe *pe)
{
    visit_tokens(&(struct visitor){token_drop}, pe);
    forget_next(pe);
    memset(pe->queue, 0, sizeof pe->queue);
    for (uint32_t i = 0; i < kb_pe_servers; i++)
        pe->servers[i].token = NULL;
    pe->travelling = pe->feed = NULL;
    pe->lowest = NULL;
    pe->dma.servers = pe->compute.servers = 0;
}

struct copy {
    const struct group_pair *pair;
    struct command *composite;                          /* of the PE copied to */
    struct event *event;                                /* that is copied to */
    uint32_t number;                                    /* last part of its order: the command, or the creator's rank */
    const struct stage *stages;                         /* of the token that is copied to */
};

/* The counterpart of a node. A rank that is left over from an earlier use, and is not read any more, may have none. */
static uint32_t copy_rank(const struct copy *copy, uint32_t rank)
{
    uint32_t label = copy->pair->labels[rank];
    return label < copy->pair->to->nodes ? copy->pair->to->node[label] : rank;
}

static struct route *copy_route(const struct copy *copy, const struct route *route)
{
    struct way way = route_way(route);
    way.from = rank_place(copy_rank(copy, route_from_rank(route)));
    way.to = rank_place(copy_rank(copy, route_to_rank(route)));
    return route_of(way);
}

INLINE void copy_field(const struct copy *c, enum state_kind kind, void *to, const void *from, size_t bytes)
{
    uint64_t word = word_of(from, bytes);
    switch (kind) {
    case STATE_VALUE:
    case STATE_NUMBER:
    case STATE_SERVICE:
    case STATE_FREE:
    case STATE_TIME:
    case STATE_FED:
    case STATE_LEFT:
    case STATE_SINCE:
        memcpy(to, from, bytes);
        break;
    case STATE_ORDER:
        *(uint64_t *)to = event_order(copy_rank(c, order_rank(word)), order_class(word), c->number);
        break;
    case STATE_DUE:
        event_at(c->event, word);
        break;
    case STATE_ROUTE:
        *(struct route **)to = copy_route(c, *(struct route *const *)from);
        break;
    case STATE_STAGE:
        *(const struct stage **)to = &c->stages[(*(const struct stage *const *)from)->index];
        break;
    default:
        break;
    }
}

#define COPY(STRUCT, field, kind)                                                                                      \
    if (ROW_IS_READ(COPY, STRUCT, field))                                                                              \
        copy_field(c, STATE_##kind, &to->field, &from->field, sizeof to->field);

static void copy_event(struct copy *c, struct event *to, const struct event *from, uint32_t number)
{
    c->event = to;
    c->number = number;
#define EVENT(field, kind, when) COPY(EVENT, field, kind)
#include "machine/state.def"
}

static void copy_message(struct copy *c, struct message *to, const struct message *from)
{
#define MESSAGE(field, kind, when) COPY(MESSAGE, field, kind)
#include "machine/state.def"
    copy_event(c, &to->event, &from->event, route_from_rank(to->route));
}

static void copy_transfer(struct copy *c, struct token *token, const struct transfer *original)
{
    struct transfer *transfer = transfer_new(token, &original->range);
    struct data_message *to = &transfer->data;
    const struct data_message *from = &original->data;
    transfer_move(transfer);
#define DATA(field, kind, when) COPY(DATA, field, kind)
#include "machine/state.def"
    copy_message(c, &to->message, &from->message);
    struct route *route = to->message.route;
    if (from->message.route->length && !route->length)
        route_list_steps(route);
    if (data_under_way(from) || from->ahead_ps > now_ps)
        to->step = route->steps + data_taken(from);
    data_count_event(to, 1);
}

static void copy_buffer(const struct copy *c, struct buffer *to, const struct buffer *from)
{
#define BUFFER(field, kind, when) COPY(BUFFER, field, kind)
#include "machine/state.def"
}

static struct token *copy_token(struct copy *c, const struct token *from, enum token_site site)
{
    struct tile tile = tiling_tile(c->composite, from->tile.id);
    struct token *to = token_new(c->composite, &tile);
    c->stages = tile.shape->stages;
#define TOKEN(field, kind, when) COPY(TOKEN, field, kind)
#include "machine/state.def"
    for (unsigned i = 0; i < OPERANDS; i++)
        copy_buffer(c, &to->buffer[i], &from->buffer[i]);
    if (token_is_due(from, site))
        copy_event(c, &to->event, &from->event, c->composite->number);
    return to;
}

/* Copies a list in order. Returns its last token, or NULL. */
static struct token *copy_list(struct copy *c, struct token **to, const struct token *from, enum token_site site)
{
    struct token *last = NULL;
    for (; from; from = from->next) {
        *to = last = copy_token(c, from, site);
        to = &last->next;
    }
    *to = NULL;
    return last;
}

static void copy_server(struct copy *c, struct server *to, const struct server *from)
{
    to->token = NULL;
#define SERVER(field, kind, when) COPY(SERVER, field, kind)
#include "machine/state.def"
    if (!from->token)
        return;
    to->token = copy_token(c, from->token, TOKEN_SERVED);
    to->token->server = to;
    if (from->token->transfer)
        copy_transfer(c, to->token, from->token->transfer);
}

static void copy_busy(const struct copy *c, struct busy *to, const struct busy *from)
{
#define BUSY(field, kind, when) COPY(BUSY, field, kind)
#include "machine/state.def"
}

static void copy_channels(const struct copy *c, struct channels *to, const struct channels *from)
{
#define CHANNELS(field, kind, when) COPY(CHANNELS, field, kind)
#include "machine/state.def"
}

/* Links a token with buffers into its PE's list by address. */
static void link_buffers(struct visitor *visitor, struct token *token)
{
    struct buffer *buffer;
    (void)visitor;
    tile_buffers_for(buffer, token)
        tile_buffer_link(token->command->pe, buffer);
}

static void copy_tokens(struct copy *c, struct pe *to, const struct pe *from)
{
    for (unsigned stage = 0; stage < STAGES; stage++)
        to->queue[stage].tail = copy_list(c, &to->queue[stage].head, from->queue[stage].head, TOKEN_QUEUED);
    for (uint32_t i = 0; i < kb_pe_servers; i++)
        copy_server(c, &to->servers[i], &from->servers[i]);
    copy_list(c, &to->travelling, from->travelling, TOKEN_MOVING);
    to->feed = from->feed ? copy_token(c, from->feed, TOKEN_MOVING) : NULL;
    to->lowest = NULL;
    visit_tokens(&(struct visitor){link_buffers}, to);
}

static void copy_composite(const struct copy *c, struct command *to, const struct command *from)
{
#define COMMAND(field, kind, when) COPY(COMMAND, field, kind)
#define COMMAND_EACH(field, kind, when) COPY(COMMAND, field, kind)
#include "machine/state.def"
}

void state_copy_pe(const struct group_pair *pair, uint32_t position, const struct command *composite)
{
    struct pe *to = pair->to->pe[position];
    const struct pe *from = pair->from->pe[position];
    struct copy copy = {.pair = pair, .composite = to->feeding}, *c = &copy;
#define PE(field, kind, when) COPY(PE, field, kind)
#define PE_EACH(field, kind, when) COPY(PE, field, kind)
#include "machine/state.def"
    copy_busy(c, &to->dma, &from->dma);
    copy_busy(c, &to->compute, &from->compute);
    copy_channels(c, &to->tcm, &from->tcm);
    copy_tokens(c, to, from);
    if (composite)
        copy_composite(c, to->feeding, composite);
    if (!from->feeding)
        to->feeding = NULL;
}

void state_copy_node(const struct group_pair *pair, uint32_t position)
{
    uint32_t to_rank = pair->to->node[position], from_rank = pair->from->node[position];
    struct place to_place = rank_place(to_rank), from_place = rank_place(from_rank);
    struct copy copy = {.pair = pair}, *c = &copy;
    {
        struct fabric_node *to = &kb_nodes[to_rank];
        const struct fabric_node *from = &kb_nodes[from_rank];
#define FABRIC_NODE(field, kind, when) COPY(FABRIC_NODE, field, kind)
#include "machine/state.def"
    }
    if (place_is_kind(to_place, NODE_sram))
        copy_channels(c, &kb_sram[place_cube(to_place)], &kb_sram[place_cube(from_place)]);
    for (uint64_t i = 0; place_is_kind(to_place, NODE_hbm_ctrl) && i < kb_attrs.hbm_ctrl_pcs; i++) {
        struct pseudo_channel *to = &slice_channels(place_slice(to_place))[i];
        const struct pseudo_channel *from = &slice_channels(place_slice(from_place))[i];
#define PSEUDO_CHANNEL(field, kind, when) COPY(PSEUDO_CHANNEL, field, kind)
#include "machine/state.def"
    }
}

void state_copy_link(const struct group_pair *pair, uint32_t position)
{
    struct fabric_link *to = &kb_links[pair->to->link[position]];
    const struct fabric_link *from = &kb_links[pair->from->link[position]];
    struct copy copy = {.pair = pair}, *c = &copy;
#define FABRIC_LINK(field, kind, when) COPY(FABRIC_LINK, field, kind)
#include "machine/state.def"
}

/* ---- shifts */

struct oldest_tile {
    struct visitor visitor;
    uint64_t id;
};

static void take_older(struct visitor *visitor, struct token *token)
{
    struct oldest_tile *oldest = container_of(visitor, struct oldest_tile, visitor);
    if (token->tile.id < oldest->id)
        oldest->id = token->tile.id;
}

uint64_t state_oldest_tile(const struct pe *pe)
{
    struct oldest_tile oldest = {{take_older}, pe->fed};
    visit_tokens(&oldest.visitor, pe);
    return oldest.id;
}

struct shift {
    struct visitor visitor;
    uint64_t tiles, ps;
    const struct command *composite;
};

INLINE void shift_field(const struct shift *s, enum state_kind kind, void *field)
{
    uint64_t *word = field;
    switch (kind) {
    case STATE_FREE:
        if (*word > now_ps)
            *word = time_after(*word, s->ps);
        break;
    case STATE_TIME:
    case STATE_SINCE:
        *word += s->ps;
        break;
    case STATE_NUMBER:                                  /* of a tile; a message's stays */
    case STATE_FED:
        *word += s->tiles;
        break;
    case STATE_LEFT:
        *word -= s->tiles;
        break;
    case STATE_TILE:
        *(struct tile *)field = tiling_tile(s->composite, *word + s->tiles);
        break;
    default:
        break;
    }
}

#define SHIFT(STRUCT, field, kind)                                                                                     \
    if (ROW_IS_READ(SHIFT, STRUCT, field))                                                                             \
        shift_field(s, STATE_##kind, &to->field);

static void shift_event(const struct shift *s, struct event *to)
{
#define EVENT(field, kind, when) SHIFT(EVENT, field, kind)
#include "machine/state.def"
}

static void shift_transfer(const struct shift *s, struct transfer *transfer)
{
    struct data_message *to = &transfer->data;
#define DATA(field, kind, when) SHIFT(DATA, field, kind)
#include "machine/state.def"
    transfer_move(transfer);
}

static void shift_token(struct visitor *visitor, struct token *to)
{
    const struct shift *s = container_of(visitor, struct shift, visitor);
#define TOKEN(field, kind, when) SHIFT(TOKEN, field, kind)
#include "machine/state.def"
    shift_event(s, &to->event);
    if (to->transfer)
        shift_transfer(s, to->transfer);
}

static void shift_busy(const struct shift *s, struct busy *to)
{
#define BUSY(field, kind, when) SHIFT(BUSY, field, kind)
#include "machine/state.def"
}

static void shift_pe(struct shift *s, struct pe *pe)
{
    s->composite = pe->feeding;
    forget_next(pe);
    visit_tokens(&s->visitor, pe);
    {
        struct pe *to = pe;
#define PE(field, kind, when) SHIFT(PE, field, kind)
#include "machine/state.def"
    }
    {
        struct command *to = pe->feeding;
#define COMMAND(field, kind, when) SHIFT(COMMAND, field, kind)
#include "machine/state.def"
    }
    shift_busy(s, &pe->dma);
    shift_busy(s, &pe->compute);
}

static void shift_channels(const struct shift *s, struct channels *to)
{
#define CHANNELS(field, kind, when) SHIFT(CHANNELS, field, kind)
#include "machine/state.def"
}

static void shift_shared(const struct shift *s)
{
    for (struct fabric_node *to = kb_nodes; to < kb_nodes + node_count(); to++) {
#define FABRIC_NODE(field, kind, when) SHIFT(FABRIC_NODE, field, kind)
#include "machine/state.def"
    }
    for (struct fabric_link *to = kb_links; to < kb_links + link_count(); to++) {
#define FABRIC_LINK(field, kind, when) SHIFT(FABRIC_LINK, field, kind)
#include "machine/state.def"
    }
    for (uint32_t i = 0; i < slice_count(); i++) {
        struct pseudo_channel *channels = slice_channels(i);
        for (struct pseudo_channel *to = channels; to < channels + kb_attrs.hbm_ctrl_pcs; to++) {
#define PSEUDO_CHANNEL(field, kind, when) SHIFT(PSEUDO_CHANNEL, field, kind)
#include "machine/state.def"
        }
    }
    for (uint32_t i = 0; i < cube_count(); i++)
        shift_channels(s, &kb_sram[i]);
    for (uint32_t i = 0; i < pe_count(); i++)
        shift_channels(s, &kb_pe[i].tcm);
}

void state_shift(struct pe *const *pes, const uint64_t *tiles, uint32_t count, uint64_t d_ps)
{
    struct shift shift = {.visitor = {shift_token}, .ps = d_ps};
    for (uint32_t i = 0; i < count; i++) {
        shift.tiles = tiles[i];
        shift_pe(&shift, pes[i]);
    }
    shift_shared(&shift);
    event_skip(d_ps);
}

/* ---- counters */

struct counter_list {
    uint64_t **at;                                      /* NULL: counters are not listed, only their number */
    size_t count;
};

INLINE void list_field(struct counter_list *list, enum state_kind kind, void *field)
{
    if (kind != STATE_COUNTED)
        return;
    if (list->at)
        list->at[list->count] = field;
    list->count++;
}

#define LIST(STRUCT, from, field, kind)                                                                                \
    if (ROW_IS_READ(LIST, STRUCT, field))                                                                              \
        list_field(list, STATE_##kind, &(from)->field);

static void list_busy(struct counter_list *list, struct busy *busy)
{
#define BUSY(field, kind, when) LIST(BUSY, busy, field, kind)
#include "machine/state.def"
}

static void list_pe(struct counter_list *list, struct pe *pe)
{
    list_busy(list, &pe->dma);
    list_busy(list, &pe->compute);
}

static void list_slice(struct counter_list *list, struct hbm_slice *slice)
{
#define SLICE(field, kind, when) LIST(SLICE, slice, field, kind)
#include "machine/state.def"
}

static void list_link(struct counter_list *list, struct fabric_link *link)
{
#define FABRIC_LINK(field, kind, when) LIST(FABRIC_LINK, link, field, kind)
#include "machine/state.def"
}

static void count_busy(struct busy *busy)
{
    busy->total_ps = busy_total_ps(busy, now_ps);
    busy->since_ps = now_ps;
}

void state_count_busy(struct pe *pe)
{
    count_busy(&pe->dma);
    count_busy(&pe->compute);
}

size_t state_group_counters(const struct group *group, uint64_t **counters)
{
    struct counter_list list = {.at = counters};
    for (uint32_t i = 0; i < group->pes; i++)
        list_pe(&list, group->pe[i]);
    for (uint32_t i = 0; i < group->nodes; i++) {
        struct place place = rank_place(group->node[i]);
        if (place_is_kind(place, NODE_hbm_ctrl))
            list_slice(&list, &kb_hbm[place_slice(place)]);
    }
    for (uint32_t i = 0; i < group->links; i++)
        list_link(&list, &kb_links[group->link[i]]);
    return list.count;
}

size_t state_machine_counters(uint64_t **counters)
{
    struct counter_list list = {.at = counters};
    for (uint32_t i = 0; i < pe_count(); i++)
        list_pe(&list, &kb_pe[i]);
    for (uint32_t i = 0; i < slice_count(); i++)
        list_slice(&list, &kb_hbm[i]);
    for (uint64_t i = 0; i < link_count(); i++)
        list_link(&list, &kb_links[i]);
    return list.count;
}
