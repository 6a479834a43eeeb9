/* account.c: the steps of transfers, from the moments of the machine. */
#include "account.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/fail.h"
#include "launch/host_request.h"
#include "launch/kernel.h"
#include "machine/command.h"
#include "machine/emitted.h"
#include "machine/fabric.h"
#include "machine/tile.h"
#include "sim/event.h"
#include "sim/observer.h"

struct account account;

const char *const step_words[STEP_WHATS] = {
#define STEP(name, what) [STEP_##name] = #name,
#include "step.def"
}, *const step_phrases[STEP_WHATS] = {
#define STEP(name, what) [STEP_##name] = what,
#include "step.def"
};

/* What the transfer does while no step is open; it names the time up to the next thing that is observed. */
enum phase { AT_WORK, CONTROL_CAME, DATA_CAME };

/* A transfer that is under way. */
struct follow {
    enum phase phase;
    bool on_its_way;                                    /* the last step is a data message */
    bool served;                                        /* by the memory that the last message went to */
    bool over;
    uint64_t begin_ps;
    uint64_t at_ps, translation_ps;                     /* the end of the last step; of a translation in a step to come */
    uint32_t rank;                                      /* where the transfer is */
    struct ARRAY(struct account_step) steps;
    struct ARRAY(struct account_hop) hops;
};

static struct {
    uint32_t pe;                                        /* that acts, or UINT32_MAX */
    uint64_t count;
    struct follow *transfers;                           /* by number */
    struct follow *of;                                  /* whose moment it is */
    struct ARRAY(struct account_row) rows;              /* of several transfers */
} watch;

/* Of several commands of the kernel, or requests of the host, the one that a moment belongs to. Returns false if that is
 * another request, such as the launch of the kernel, or is over. */
static bool is_followed(struct cause cause)
{
    bool by_kernel = watch.pe != UINT32_MAX;
    uint32_t number = by_kernel ? cause.number : cause.number - 1;
    if (by_kernel != (cause.kernel != 0) || number >= watch.count)
        return false;
    watch.of = &watch.transfers[number];
    return !watch.of->over;
}

static bool is_followed_command(const struct command *command)
{
    return is_followed((struct cause){command->ask.serial, command->number});
}

static struct account_step *last_step(void)
{
    return watch.of->steps.count ? &watch.of->steps.at[watch.of->steps.count - 1] : NULL;
}

static void start_at(uint64_t number, uint64_t t_ps, uint32_t rank)
{
    if (number < watch.count)
        watch.transfers[number] = (struct follow){.begin_ps = t_ps, .at_ps = t_ps, .rank = rank};
}

/* Adds a step at a node, from the end of the last one on, unless it takes no time. */
static void step_until(enum step_what what, uint32_t rank, uint64_t end_ps)
{
    struct follow *of = watch.of;
    account.broken |= end_ps < of->at_ps;
    if (end_ps > of->at_ps)
        *array_add(&of->steps) = (struct account_step){.what = what, .from = rank, .to = rank, .begin_ps = of->at_ps,
                                                       .end_ps = end_ps};
    of->at_ps = end_ps;
}

static uint32_t part_rank(enum node_kind part)
{
    return pe_rank(&kb_pe[watch.pe], part);
}

/* Accounts for the time up to now_ps or to a time that the machine knows already. */
static void fill_until(uint64_t t_ps)
{
    struct follow *of = watch.of;
    struct account_step *last = last_step();
    if (of->phase == DATA_CAME) {
        step_until(of->served ? STEP_write : STEP_drain, of->rank, t_ps);
    } else if (of->phase == CONTROL_CAME) {
        step_until(STEP_access, of->rank, t_ps);
    } else if (of->translation_ps && t_ps - of->at_ps == of->translation_ps) {
        step_until(STEP_translate, part_rank(NODE_pe_mmu), t_ps);
        of->translation_ps = 0;
    } else if (last && last->what == STEP_tcm) {        /* the other channel is later, or a model of a user says so */
        last->end_ps = of->at_ps = t_ps;
    } else if (watch.pe != UINT32_MAX) {
        step_until(STEP_prepare, part_rank(NODE_pe_dma), t_ps);
    }
}

/* ---- several transfers: what each step of them took */

static void spread_add(struct spread *spread, uint64_t ps)
{
    spread->least_ps = spread->times && spread->least_ps < ps ? spread->least_ps : ps;
    spread->most_ps = spread->most_ps > ps ? spread->most_ps : ps;
    spread->sum_ps += ps;
    spread->times++;
}

/* The row of a step, from a row on; a new one there if there is none. */
static size_t row_of(const struct account_step *step, size_t from)
{
    for (size_t i = from; i < watch.rows.count; i++) {
        const struct account_row *row = &watch.rows.at[i];
        if (row->what == step->what && row->from == step->from && row->to == step->to)
            return i;
    }
    array_add(&watch.rows);
    struct account_row *row = &watch.rows.at[from];
    memmove(row + 1, row, (watch.rows.count - 1 - from) * sizeof *row);
    *row = (struct account_row){.what = step->what, .from = step->from, .to = step->to, .bytes = step->bytes,
                                .hops = step->hops, .hop = calloc(step->hops, sizeof *row->hop)};
    if (step->hops && !row->hop)
        die("out of memory");
    return from;
}

/* Adds the transfer, which is over, to the rows. */
static void add_to_rows(void)
{
    struct follow *of = watch.of;
    size_t next = 0;
    for (const struct account_step *step = of->steps.at; step < of->steps.at + of->steps.count; step++) {
        next = row_of(step, next);
        struct account_row *row = &watch.rows.at[next++];
        uint64_t ready_ps = step->begin_ps;
        spread_add(&row->took, step->end_ps - step->begin_ps);
        account.broken |= row->hops != step->hops;
        for (uint32_t i = 0; i < step->hops && i < row->hops; i++) {
            const struct account_hop *hop = &of->hops.at[step->first_hop + i];
            row->hop[i].rank = hop->rank;
            row->hop[i].speed = hop->speed;
            spread_add(&row->hop[i].took, hop->ready_ps - ready_ps);
            ready_ps = hop->ready_ps;
        }
    }
    account.sum_ps += of->at_ps - of->begin_ps;
    array_free(&of->steps);
    array_free(&of->hops);
}

static void is_over(void)
{
    fill_until(now_ps);
    watch.of->over = true;
    if (watch.count > 1)
        add_to_rows();
}

/* ---- commands */

static void kernel_begins(const struct tl *tl)
{
    if (watch.pe != UINT32_MAX)
        start_at(0, now_ps, pe_rank(tl->pe, NODE_pe_cpu));
}

/* The kernel goes on with the next one in this instant. */
static void command_submitted(const struct command *command)
{
    uint32_t rank = pe_rank(command->pe, NODE_pe_cpu);
    if (!is_followed_command(command))
        return;
    step_until(STEP_call, rank, now_ps);
    start_at(command->number + UINT64_C(1), now_ps, rank);
}

static void command_scheduled(const struct command *command)
{
    if (is_followed_command(command))
        step_until(STEP_schedule, pe_rank(command->pe, NODE_pe_scheduler), now_ps);
}

static void service_starts(const struct token *token)
{
    if (is_followed_command(token->command))
        step_until(STEP_dispatch, pe_rank(token->command->pe, NODE_pe_dma), now_ps);
}

static void translated(const struct pe *pe, uint64_t from_ps, uint64_t length_ps)
{
    (void)pe, (void)from_ps;
    if (!is_followed(observed_cause))
        return;
    fill_until(now_ps);
    watch.of->translation_ps = length_ps;
}

/* What follows is the kernel's answer to the launch. */
static void command_completed(const struct command *command)
{
    if (is_followed_command(command))
        is_over();
}

static void host_request_ends(const struct memory_request *request)
{
    if (is_followed((struct cause){0, (uint32_t)request->fanout.correlation}))
        is_over();
}

/* ---- messages and reservations */

static void control_sent(const struct message *message, uint64_t leave_ps, uint64_t delivered_ps)
{
    if (!is_followed(message->cause))
        return;
    struct follow *of = watch.of;
    fill_until(leave_ps);
    struct account_step step = {.what = STEP_control, .from = route_from_rank(message->route), .to = route_to_rank(message->route),
                                .begin_ps = leave_ps, .end_ps = delivered_ps, .first_hop = of->hops.count};
    uint64_t t_ps = leave_ps;
    for (struct traversal along = traversal_of(route_way(message->route)); traversal_next(&along); step.hops++) {
        struct control_hop hop = control_hop(&along.way, along.hop);
        uint64_t arrives_ps = t_ps + hop.link_ps;
        t_ps = arrives_ps + hop.node_ps;
        *array_add(&of->hops) = (struct account_hop){along.rank, along.hop.speed, arrives_ps, t_ps};
    }
    account.broken |= t_ps != delivered_ps;
    *array_add(&of->steps) = step;
    of->at_ps = delivered_ps;
    of->rank = step.to;
    of->phase = CONTROL_CAME;
    of->served = false;
}

static void link_taken(uint64_t link, uint64_t bytes, uint64_t asked_ps, uint64_t start_ps)
{
    struct follow *of = watch.of;
    if (!of->on_its_way) {
        fill_until(asked_ps);
        *array_add(&of->steps) = (struct account_step){
            .what = STEP_data, .from = route_from_rank(observed_message->route), .to = route_to_rank(observed_message->route),
            .begin_ps = asked_ps, .bytes = bytes, .first_hop = of->hops.count};
        of->on_its_way = true;
    }
    uint32_t speed = link_speed(link);
    uint64_t arrives_ps = start_ps + link_rate(speed)->latency_ps;
    *array_add(&of->hops) = (struct account_hop){place_rank(link_ends(link).to), speed, arrives_ps, arrives_ps};
    last_step()->hops++;
}

static void node_taken(uint32_t rank, uint64_t asked_ps, uint64_t end_ps)
{
    struct follow *of = watch.of;
    struct account_hop *hop = &of->hops.at[of->hops.count - 1];
    account.broken |= !of->on_its_way || hop->rank != rank || hop->arrives_ps != asked_ps;
    hop->ready_ps = of->at_ps = end_ps;
    last_step()->end_ps = end_ps;
    of->on_its_way = rank != last_step()->to;
    of->rank = rank;
    of->phase = DATA_CAME;
    of->served = false;
}

/* The PE's own TCM moves the bytes: both of its channels at a time if they stay there. */
static void tcm_taken(uint64_t asked_ps, uint64_t end_ps)
{
    const struct account_step *last = last_step();
    if (last && last->what == STEP_tcm && asked_ps == last->begin_ps)
        return;                                         /* the command completes with the later of both */
    fill_until(asked_ps);
    watch.of->phase = AT_WORK;
    step_until(STEP_tcm, part_rank(NODE_pe_tcm), end_ps);
}

static void reserved(enum resource_kind resource, uint64_t number, uint64_t bytes, uint64_t asked_ps, uint64_t start_ps,
                     uint64_t end_ps)
{
    if (!is_followed(observed_cause))
        return;
    bool of_tcm = resource == RESOURCE_TCM_READ || resource == RESOURCE_TCM_WRITE;
    if (resource == RESOURCE_LINK)
        link_taken(number, bytes, asked_ps, start_ps);
    else if (resource == RESOURCE_NODE)
        node_taken((uint32_t)number, asked_ps, end_ps);
    else if (of_tcm && number == watch.pe)
        tcm_taken(asked_ps, end_ps);
    else
        watch.of->served = true;
}

struct observer account_observer = {
    .name = "probe",
    .needs_every_event = true,
    .kernel_begins = kernel_begins,
    .host_request_ends = host_request_ends,
    .command_submitted = command_submitted,
    .command_scheduled = command_scheduled,
    .command_completed = command_completed,
    .service_starts = service_starts,
    .translated = translated,
    .control_sent = control_sent,
    .reserved = reserved,
};

void account_begin(uint32_t pe, uint64_t count)
{
    account_reset();
    watch.pe = pe;
    watch.count = count;
    watch.transfers = calloc(count, sizeof *watch.transfers);
    if (!watch.transfers)
        die("out of memory for %" PRIu64 " transfers", count);
    for (uint64_t i = 0; i < count; i++)
        start_at(i, 0, place_rank(place_host()));
    observer_watch(&account_observer, true);
}

void account_end(void)
{
    observer_watch(&account_observer, false);
    account.rows = watch.rows.at;
    account.row_count = watch.rows.count;
    if (watch.count > 1)
        return;
    account.steps = watch.transfers->steps.at;
    account.hops = watch.transfers->hops.at;
    account.count = watch.transfers->steps.count;
}

void account_reset(void)
{
    for (uint64_t i = 0; i < watch.count; i++) {
        array_free(&watch.transfers[i].steps);
        array_free(&watch.transfers[i].hops);
    }
    for (size_t i = 0; i < watch.rows.count; i++)
        free(watch.rows.at[i].hop);
    free(watch.transfers);
    array_free(&watch.rows);
    watch.transfers = NULL;
    watch.count = 0;
    account = (struct account){0};
}
