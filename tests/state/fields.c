/* fields.c: for tests/state.t, a run in which one field of one PE's state is changed at some time, and in which one row of
 * machine/state.def is not read.
 *
 * fastforward/state.c is compiled into this file, instead of being taken from the library, so that each row can be left
 * out. At the time `at` the PE `victim` is changed. Then, unless every event is simulated, all groups except the first go
 * to sleep if symmetry.c finds their states equal. They wake at the time `wake`. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_left_out(const char *operation, const char *structure, const char *field);
#define ROW_IS_READ(operation, structure, field) (!is_left_out(#operation, #structure, #field))
#include "fastforward/state.c"

#include "fastforward/fastforward.h"
#include "fastforward/period.h"
#include "fastforward/symmetry.h"
#include "kb/host.h"
#include "launch/launch.h"
#include "machine/mmu.h"
#include "sim/loop.h"
#include "sim/observer.h"

/* "COMPARE TOKEN tile": the row that is not read. */
static char left_out[96];

static bool is_left_out(const char *operation, const char *structure, const char *field)
{
    char row[96];
    if (!*left_out)
        return false;
    snprintf(row, sizeof row, "%s %s %s", operation, structure, field);
    return !strcmp(row, left_out);
}

/* ---- changes: each returns false if there is nothing to change on the PE now */

static struct token *any_queued(struct pe *pe, bool (*suits)(struct token *))
{
    for (unsigned stage = 0; stage < STAGES; stage++)
        for (struct token *token = pe->queue[stage].head; token; token = token->next)
            if (suits(token))
                return token;
    return NULL;
}

/* The token in service that suits, after `skip` others. */
static struct token *any_served(struct pe *pe, bool (*suits)(struct token *), unsigned skip)
{
    for (uint32_t i = 0; i < kb_pe_servers; i++)
        if (pe->servers[i].token && suits(pe->servers[i].token) && !skip--)
            return pe->servers[i].token;
    return NULL;
}

static bool takes_tile(struct token *token, uint64_t id)
{
    struct tile tile = tiling_tile(token->command, id);
    const struct stage *stage = &tile.shape->stages[token->stage->index];
    if (tile.shape->kind == token->tile.shape->kind || stage->kind != token->stage->kind
        || stage[1].kind == token->stage[1].kind)
        return false;
    token->tile = tile;
    token->stage = stage;
    return true;
}

/* A tile that does not store its output becomes one that does, or the reverse. */
static bool changes_kind(struct token *token)
{
    return takes_tile(token, token->tile.id + 1) || (token->tile.id && takes_tile(token, token->tile.id - 1));
}

static bool change_tile(struct pe *pe)
{
    return any_queued(pe, changes_kind);
}

static bool reads_a(struct token *token)
{
    return token->stage->kind == STAGE_DMA_READ && token->stage[1].kind == STAGE_DMA_READ;
}

static bool change_stage(struct pe *pe)
{
    struct token *token = any_queued(pe, reads_a);
    if (!token)
        return false;
    token->stage++;
    return true;
}

/* Of two tokens that one server chooses from, the later becomes the earlier. */
static bool swap_arrivals(struct pe *pe, enum stage_kind x, enum stage_kind y)
{
    struct token *a = pe->queue[x].head, *b = pe->queue[y].head;
    if (!a || !b || a->arrival_ps == b->arrival_ps)
        return false;
    *(a->arrival_ps < b->arrival_ps ? &b->arrival_ps : &a->arrival_ps) =
        (a->arrival_ps < b->arrival_ps ? a->arrival_ps : b->arrival_ps) - 1;
    return true;
}

static bool change_arrival(struct pe *pe)
{
    return swap_arrivals(pe, STAGE_MATH, STAGE_GEMM) || swap_arrivals(pe, STAGE_STORE, STAGE_FETCH);
}

static bool is_any(struct token *token)
{
    return token;
}

static bool change_start(struct pe *pe)
{
    struct token *token = any_served(pe, is_any, 0);
    if (token)
        token->started_ps -= 5;
    return token;
}

static bool change_block(struct pe *pe)
{
    struct buffer *highest = pe->lowest;
    while (highest && highest->higher)
        highest = highest->higher;
    if (!highest || highest->at + highest->bytes + 64 > kb_attrs.pe_tcm_reserved_bytes)
        return false;
    highest->at += 64;
    return true;
}

/* Whether tiles of the composite before are under way: nothing needs to be changed. */
static bool change_owner(struct pe *pe)
{
    for (struct buffer *buffer = pe->lowest; buffer; buffer = buffer->higher)
        if (container_of(buffer, struct token, buffer[0])->command != pe->feeding)
            return true;
    return false;
}

static bool reads(struct token *token)
{
    return token->stage->kind == STAGE_DMA_READ;
}

static bool change_service(struct pe *pe)
{
    struct token *a = any_served(pe, reads, 0), *b = any_served(pe, reads, 1);
    if (!a || !b)
        return false;
    uint64_t started = a->server->started;
    a->server->started = b->server->started;
    b->server->started = started;
    return true;
}

static bool is_transfer(struct token *token)
{
    return token->transfer;
}

/* Swaps the numbers of two messages from one node that arrive at another node at the same time. */
static bool change_number(struct pe *pe)
{
    struct token *a = any_served(pe, is_transfer, 0), *b = any_served(pe, is_transfer, 1);
    if (!a || !b)
        return false;
    struct event *x = &a->transfer->data.message.event, *y = &b->transfer->data.message.event;
    if (x->order != y->order || x->t_ps != y->t_ps)
        return false;
    uint64_t key = x->key;
    x->key = y->key;
    y->key = key;
    return true;
}

static bool has_event(struct token *token)
{
    return token_is_due(token, TOKEN_SERVED);
}

static uint32_t dropped_rank;

static bool is_dropped(uint32_t rank)
{
    return rank == dropped_rank;
}

static bool change_due(struct pe *pe)
{
    struct token *token = any_served(pe, has_event, 0);
    if (!token || stage_node(token->stage->kind) == NODE_pe_dma)     /* the only one with an event at its node */
        return false;
    dropped_rank = event_rank(&token->event);
    event_drop(is_dropped);
    event_at(&token->event, token->event.t_ps + 1000);
    return true;
}

static bool is_head(struct token *token)
{
    struct data_message *data = token->transfer ? &token->transfer->data : NULL;
    return data && data_under_way(data) && data_taken(data) < data->message.route->length;
}

static void (*handler(const struct handler *list, const char *name))(void)
{
    for (; list->name; list++)
        if (!strcmp(list->name, name))
            return list->function;
    abort();
}

/* Moves a head one node further. */
static bool change_step(struct pe *pe)
{
    struct token *token = any_served(pe, is_head, 0);
    if (!token)
        return false;
    struct data_message *data = &token->transfer->data;
    struct event *event = &data->message.event;
    data_count_event(data, -1);
    if (step_is_last(*data->step))
        event->fire = (void (*)(struct event *))handler(fabric_handlers, "data head at the end of its way");
    event->order = event_order(target_rank(step_target(data->step++)), CLASS_MESSAGE, (uint32_t)event->order);
    data_count_event(data, 1);
    return true;
}

static bool change_tail(struct pe *pe)
{
    struct token *token = any_served(pe, is_head, 0);
    if (token)
        token->transfer->data.tail_ps += 30000;
    return token;
}

static bool is_requested(struct token *token)
{
    void (*requested)(struct message *) = (void (*)(struct message *))handler(dma_handlers, "read request at its memory");
    return token->transfer && token->transfer->data.message.delivered == requested
        && event_is_message(&token->transfer->data.message.event);
}

/* A request counts as answered. */
static bool change_delivered(struct pe *pe)
{
    struct token *token = any_served(pe, is_requested, 0);
    if (token)
        token->transfer->data.message.delivered = (void (*)(struct message *))handler(dma_handlers, "read data at their PE");
    return token;
}

static bool change_fed(struct pe *pe)
{
    struct shift shift = {.visitor = {shift_token}, .tiles = pe->feeding->tiles_k};
    if (pe->fed + 2 * shift.tiles >= pe->feeding->tiles)
        return false;
    shift_pe(&shift, pe);
    return true;
}

static bool change_failed(struct pe *pe)
{
    return pe->failed = true;
}

static bool change_direct(struct pe *pe)
{
    return pe->direct[STAGE_DMA_READ].head;
}

static bool change_waiting(struct pe *pe)
{
    return pe->feeding->waiting;
}

static bool occupy(uint64_t *free_ps)
{
    *free_ps = (*free_ps > now_ps ? *free_ps : now_ps) + 50000;
    return true;
}

static bool change_tcm_read(struct pe *pe)
{
    return occupy(&pe->tcm.read_free_ps);
}

static bool change_tcm_write(struct pe *pe)
{
    return occupy(&pe->tcm.write_free_ps);
}

static bool change_sram_read(struct pe *pe)
{
    return occupy(&kb_sram[pe_number(pe) / kb_shape.pes].read_free_ps);
}

static bool change_sram_write(struct pe *pe)
{
    return occupy(&kb_sram[pe_number(pe) / kb_shape.pes].write_free_ps);
}

static bool change_channel(struct pe *pe)
{
    return occupy(&slice_channels(pe_number(pe))->free_ps);
}

static bool change_row(struct pe *pe)
{
    struct pseudo_channel *channels = slice_channels(pe_number(pe));
    if (!channels->open_row)
        return false;
    for (uint64_t i = 0; i < kb_attrs.hbm_ctrl_pcs; i++)
        channels[i].open_row = 0;
    return true;
}

static bool change_node(struct pe *pe)
{
    return occupy(&kb_nodes[pe_rank(pe, NODE_pe_dma)].free_ps);
}

/* The link from the PE's HBM. */
static bool change_link(struct pe *pe)
{
    struct place dma = place_pe(pe_number(pe), NODE_pe_dma);
    struct range range;
    address_decode(pe->feeding->ask.address[OPERAND_B], 1, &range);
    struct traversal along = traversal_of(way_answer(way_of(dma, range_place(&range), 0), 0));
    return traversal_next(&along) && occupy(&kb_links[along.hop.link].free_ps);
}

static bool change_nothing(struct pe *pe)
{
    (void)pe;
    return true;
}

static const struct change {
    const char *row;
    bool (*act)(struct pe *pe);
} changes[] = {
    {"TOKEN tile", change_tile}, {"TOKEN stage", change_stage}, {"TOKEN arrival_ps", change_arrival},
    {"TOKEN started_ps", change_start}, {"BUFFER at", change_block}, {"TOKEN command", change_owner},
    {"SERVER started", change_service}, {"EVENT key", change_number}, {"EVENT t_ps", change_due},
    {"DATA step", change_step}, {"DATA tail_ps", change_tail}, {"MESSAGE delivered", change_delivered},
    {"PE fed", change_fed}, {"PE failed", change_failed}, {"PE direct", change_direct},
    {"COMMAND waiting", change_waiting}, {"CHANNELS read_free_ps", change_tcm_read},
    {"CHANNELS write_free_ps", change_tcm_write}, {"CHANNELS read_free_ps sram", change_sram_read},
    {"CHANNELS write_free_ps sram", change_sram_write}, {"PSEUDO_CHANNEL free_ps", change_channel},
    {"PSEUDO_CHANNEL open_row", change_row}, {"FABRIC_NODE free_ps", change_node},
    {"FABRIC_LINK free_ps", change_link}, {"", change_nothing},
};

/* ---- what the PEs do */

enum { M = 320, K = 64, N = 96, TILE = 16 };
static const char *program, *changed;

static uint64_t own(const struct pe *pe, enum space space, uint64_t offset)
{
    uint32_t number = pe_number(pe), cube = number / kb_shape.pes;
    return address_make(space, cube / kb_shape.cubes, cube % kb_shape.cubes, space == SPACE_SRAM ? 0 : number % kb_shape.pes,
                        offset);
}

static bool program_is(const char *name)
{
    return !strcmp(program, name);
}

static struct request composite(const struct pe *pe)
{
    static const struct epilogue relu[] = {{OP_relu, SCOPE_OUTPUT_TILE}, {OP_relu, SCOPE_OUTPUT_TILE}};
    uint32_t cube = pe_number(pe) / kb_shape.pes;
    enum space space = program_is("sram") ? SPACE_SRAM : SPACE_HBM;
    struct request ask = {.kind = COMMAND_gemm_tiles, .dtype = DTYPE_f16, .out_dtype = DTYPE_f16,
                          .m = M, .k = K, .n = N, .tile_m = TILE, .tile_k = TILE, .tile_n = TILE};
    ask.address[OPERAND_A] = own(pe, space, 0x20000);
    ask.address[OPERAND_B] = own(pe, SPACE_HBM, 0x40000);
    ask.address[OPERAND_C] = own(pe, space, 0x60000);
    if (program_is("far"))                              /* in the next cube, which does likewise */
        ask.address[OPERAND_A] = address_make(SPACE_HBM, 0, cube ^ 1, pe_number(pe) % kb_shape.pes, 0x20000);
    if (program_is("epilogue")) {
        ask.epilogue = relu;
        ask.epilogues = COUNT_OF(relu);
    }
    if (program_is("pinned")) {
        ask.pinned[0] = true;
        ask.address[OPERAND_A] = own(pe, SPACE_TCM, kb_attrs.pe_tcm_reserved_bytes);
        ask.address[OPERAND_B] = own(pe, SPACE_HBM, kb_attrs.pe_tcm_reserved_bytes);
    }
    if (program_is("pinned b"))
        ask.pinned[1] = true;
    if (program_is("math")) {
        ask.kind = COMMAND_math_tiles;
        ask.op = OP_relu;
    }
    return ask;
}

/* What the victim asks for instead. */
static void change_request(struct request *ask, const struct pe *pe)
{
    static const struct epilogue op[] = {{OP_exp, SCOPE_OUTPUT_TILE}, {OP_relu, SCOPE_OUTPUT_TILE}};
    static const struct epilogue scope[] = {{OP_relu, SCOPE_K_TILE}, {OP_relu, SCOPE_OUTPUT_TILE}};
    const struct { const char *row; uint64_t *field, value; } numbers[] = {
        {"REQUEST m", &ask->m, M + TILE}, {"REQUEST k", &ask->k, K + TILE}, {"REQUEST n", &ask->n, N + TILE},
        {"REQUEST tile_m", &ask->tile_m, 2 * TILE}, {"REQUEST tile_k", &ask->tile_k, 2 * TILE},
        {"REQUEST tile_n", &ask->tile_n, 2 * TILE},
        {"REQUEST address 0", &ask->address[0], ask->address[0] + 64},
        {"REQUEST address 1", &ask->address[1], ask->address[1] + 64},
        {"REQUEST address 2", &ask->address[2], ask->address[2] + 64},
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        if (!strcmp(changed, numbers[i].row))
            *numbers[i].field = numbers[i].value;
    if (!strcmp(changed, "REQUEST kind"))
        ask->kind = COMMAND_math_tiles;
    if (!strcmp(changed, "REQUEST dtype"))
        ask->dtype = DTYPE_f32;
    if (!strcmp(changed, "REQUEST out_dtype"))
        ask->out_dtype = DTYPE_f32;
    if (!strcmp(changed, "REQUEST op"))
        ask->op = OP_exp;
    if (!strcmp(changed, "REQUEST pinned")) {
        ask->pinned[0] = false;
        ask->pinned[1] = true;
        ask->address[OPERAND_A] = own(pe, SPACE_HBM, kb_attrs.pe_tcm_reserved_bytes);
        ask->address[OPERAND_B] = own(pe, SPACE_TCM, kb_attrs.pe_tcm_reserved_bytes);
    }
    if (!strcmp(changed, "REQUEST epilogues"))
        ask->epilogues--;
    if (!strcmp(changed, "EPILOGUE op"))
        ask->epilogue = op;
    if (!strcmp(changed, "EPILOGUE scope"))
        ask->epilogue = scope;
    for (unsigned i = 0; i < OPERANDS; i++)
        ask->virtual_address[i] |= !strncmp(changed, "REQUEST virtual_address", 23) && changed[24] - '0' == (int)i;
}

static uint32_t victim;

static uint32_t pes_of_run(void)
{
    return kb_int(pes) ? kb_int(pes) : pe_count();
}

static void body(struct tl *tl, const void *arg)
{
    struct request ask = composite(tl->pe);
    bool is_victim = pe_number(tl->pe) == victim;
    uint32_t last;
    (void)arg;
    if (is_victim)
        change_request(&ask, tl->pe);
    last = kernel_submit(tl, &ask)->number;
    if (is_victim && !strcmp(changed, "PE direct"))
        kernel_submit(tl, &(struct request){.kind = COMMAND_load, .address = {own(tl->pe, SPACE_HBM, 0)}, .bytes = 4096,
                                            .tcm = kb_attrs.pe_tcm_reserved_bytes});
    if (program_is("two") || (is_victim && !strcmp(changed, "COMMAND waiting")))
        last = kernel_submit(tl, &ask)->number;
    kernel_wait(tl, last);
}

/* ---- what happens at the two times */

static struct event at, wake, again, stop;
static struct fingerprint before;

static void nothing_happens(struct event *event)
{
    (void)event;
}

static uint32_t feeding(struct pe **pes)
{
    uint32_t count = 0;
    for (struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++)
        if (pe->feeding)
            pes[count++] = pe;
    return count;
}

/* Overwrites the free tokens and transfers that copies will be made of. */
static void scribble(struct command *command)
{
    enum { MANY = 256 };
    struct token *tokens[MANY];
    struct transfer *transfers[MANY];
    struct tile tile = tiling_tile(command, 0);
    for (int i = 0; i < MANY; i++) {
        tokens[i] = token_new(command, &tile);
        transfers[i] = transfer_new(tokens[i], &(struct range){0});
    }
    for (int i = 0; i < MANY; i++) {
        memset(tokens[i], 0x11, sizeof *tokens[i]);
        memset(transfers[i], 0x11, sizeof *transfers[i]);
        token_free(tokens[i]);
        transfer_free(transfers[i]);
    }
}

static void sleep_now(struct pe *const *pes, uint32_t count)
{
    if (!kb_bool(sleep) || !fastforward_on || count != pes_of_run())
        return;
    printf("%s\n", symmetry_sleep(pes, count) ? "sleeps" : "awake");
    scribble(pes[0]->feeding);
}

static void sleeps_again(struct event *event)
{
    struct pe **pes = arena_alloc(pe_count(), sizeof *pes);
    (void)event;
    sleep_now(pes, feeding(pes));
}

static void stops(struct event *event)
{
    (void)event;
    sim_stop();
}

static void change_happens(struct event *event)
{
    struct pe **pes = arena_alloc(pe_count(), sizeof *pes);
    uint32_t count = feeding(pes);
    size_t i = 0;
    (void)event;
    while (strcmp(changes[i].row, changed) && *changes[i].row)
        i++;
    fingerprint_write(&before);
    fingerprint_machine(&before, pes, count);
    bool comparable = fingerprint_holds(&before), acted = kb_pe[victim].feeding && changes[i].act(&kb_pe[victim]);
    fingerprint_compare(&before);
    fingerprint_machine(&before, pes, count);
    printf("%s, %s\n", acted ? "changed" : "not there",
           !comparable ? "not comparable" : fingerprint_holds(&before) ? "machine is the same" : "machine differs");
    sleep_now(pes, count);
}

static void set(struct event *event, uint64_t t_ps, void (*fire)(struct event *))
{
    event_set(event, event_order(0, CLASS_KERNEL, 0), 0, fire);
    if (t_ps)
        event_at(event, t_ps);
}

KB_BENCH(fields, "a run with one change",
         KB_TEXT(program, "gemm", "what PEs do"), KB_TEXT(change, "", "the field"), KB_TEXT(without, "", "the row"),
         KB_INT(at, 0, 0, 1 << 30, "ps"), KB_INT(wake, 0, 0, 1 << 30, "ps; 0: never"),
         KB_INT(again, 0, 0, 1 << 30, "when they sleep again"),
         KB_INT(stop, 0, 0, 1 << 30, "when the run is stopped; 0: never"), KB_BOOL(sleep, true, "at `at`"),
         KB_INT(pes, 0, 0, 1 << 20, "how many run; 0: all"))
{
    uint32_t count = pe_count(), *pes = arena_alloc(count, sizeof *pes);
    for (uint32_t i = 0; i < count; i++)
        pes[i] = i;
    program = kb_text(program);
    changed = kb_text(change);
    snprintf(left_out, sizeof left_out, "%s", kb_text(without));
    count = pes_of_run();
    victim = count - 1;
    if (kb_attrs.pe_mmu_enabled)                        /* virtual addresses are equal to the physical ones */
        for (uint32_t i = 0; i < count; i++)
            mmu_map(&kb_pe[i], own(&kb_pe[i], SPACE_HBM, 0), (1 << 20) / kb_attrs.pe_mmu_page_bytes,
                    own(&kb_pe[i], SPACE_HBM, 0));
    if (kb_bool(sleep))
        observer_watch(&fastforward_observer, false);
    set(&at, kb_int(at), change_happens);
    set(&wake, kb_int(wake), nothing_happens);
    set(&again, kb_int(again), sleeps_again);
    set(&stop, kb_int(stop), stops);
    if (program_is("unlike"))                           /* the victim has done more than others */
        launch_wait(launch_submit(&(struct launch_part){.program = "before", .body = body, .pes = &victim, .count = 1}, 1,
                                  &(struct launch_options){0}));
    launch_wait(launch_submit(&(struct launch_part){.program = "program", .body = body, .pes = pes, .count = count}, 1, &(struct launch_options){0}));
    printf("%" PRIu64 " services were skipped\n", period_services());
}
