/* account.c: the steps of a transfer, from the moments of the machine. */
#include "account.h"

#include "common/array.h"
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

static struct {
    uint32_t pe;                                        /* that acts, or UINT32_MAX */
    enum phase phase;
    bool on_its_way;                                    /* the last step is a data message */
    bool served;                                        /* by the memory that the last message went to */
    bool over;
    uint64_t at_ps, translation_ps;                     /* the end of the last step; of a translation in a step to come */
    uint32_t rank;                                      /* where the transfer is */
    struct ARRAY(struct account_step) steps;
    struct ARRAY(struct account_hop) hops;
} watch;

static struct account_step *last_step(void)
{
    return watch.steps.count ? &watch.steps.at[watch.steps.count - 1] : NULL;
}

static void start_at(uint64_t t_ps, uint32_t rank)
{
    watch.steps.count = watch.hops.count = 0;
    watch.at_ps = t_ps;
    watch.rank = rank;
    watch.phase = AT_WORK;
}

/* Adds a step at a node, from the end of the last one on, unless it takes no time. */
static void step_until(enum step_what what, uint32_t rank, uint64_t end_ps)
{
    account.broken |= end_ps < watch.at_ps;
    if (end_ps > watch.at_ps)
        *array_add(&watch.steps) = (struct account_step){.what = what, .from = rank, .to = rank,
                                                         .begin_ps = watch.at_ps, .end_ps = end_ps};
    watch.at_ps = end_ps;
}

static uint32_t part_rank(enum node_kind part)
{
    return pe_rank(&kb_pe[watch.pe], part);
}

/* Accounts for the time up to now_ps or to a time that the machine knows already. */
static void fill_until(uint64_t t_ps)
{
    struct account_step *last = last_step();
    if (watch.phase == DATA_CAME) {
        step_until(watch.served ? STEP_write : STEP_drain, watch.rank, t_ps);
    } else if (watch.phase == CONTROL_CAME) {
        step_until(STEP_access, watch.rank, t_ps);
    } else if (watch.translation_ps && t_ps - watch.at_ps == watch.translation_ps) {
        step_until(STEP_translate, part_rank(NODE_pe_mmu), t_ps);
        watch.translation_ps = 0;
    } else if (last && last->what == STEP_tcm) {        /* the other channel is later, or a model of a user says so */
        last->end_ps = watch.at_ps = t_ps;
    } else if (watch.pe != UINT32_MAX) {
        step_until(STEP_prepare, part_rank(NODE_pe_dma), t_ps);
    }
}

/* ---- commands */

static void kernel_begins(const struct tl *tl)
{
    if (watch.pe != UINT32_MAX)
        start_at(now_ps, pe_rank(tl->pe, NODE_pe_cpu));
}

static void command_submitted(const struct command *command)
{
    step_until(STEP_call, pe_rank(command->pe, NODE_pe_cpu), now_ps);
}

static void command_scheduled(const struct command *command)
{
    step_until(STEP_schedule, pe_rank(command->pe, NODE_pe_scheduler), now_ps);
}

static void service_starts(const struct token *token)
{
    step_until(STEP_dispatch, pe_rank(token->command->pe, NODE_pe_dma), now_ps);
}

static void translated(const struct pe *pe, uint64_t length_ps)
{
    (void)pe;
    fill_until(now_ps);
    watch.translation_ps = length_ps;
}

/* What follows is the kernel's answer to the launch. */
static void command_completed(const struct command *command)
{
    (void)command;
    fill_until(now_ps);
    watch.over = true;
}

static void host_request_ends(const struct memory_request *request)
{
    (void)request;
    fill_until(now_ps);
    watch.over = true;
}

/* ---- messages and reservations */

static void control_sent(const struct message *message, uint64_t leave_ps, uint64_t delivered_ps)
{
    const struct way *way = &message->route->way;
    if (watch.over)
        return;
    fill_until(leave_ps);
    struct account_step step = {.what = STEP_control, .from = message->route->from_rank, .to = message->route->to_rank,
                                .begin_ps = leave_ps, .end_ps = delivered_ps, .first_hop = watch.hops.count};
    uint64_t t_ps = leave_ps;
    for (struct traversal along = traversal_of(*way); traversal_next(&along); step.hops++) {
        struct control_hop hop = control_hop(way, along.hop);
        uint64_t arrives_ps = t_ps + hop.link_ps;
        t_ps = arrives_ps + hop.node_ps;
        *array_add(&watch.hops) = (struct account_hop){along.rank, along.hop.class, arrives_ps, t_ps};
    }
    account.broken |= t_ps != delivered_ps;
    *array_add(&watch.steps) = step;
    watch.at_ps = delivered_ps;
    watch.rank = step.to;
    watch.phase = CONTROL_CAME;
    watch.served = false;
}

static void link_taken(uint64_t link, uint64_t bytes, uint64_t asked_ps, uint64_t start_ps)
{
    if (!watch.on_its_way) {
        fill_until(asked_ps);
        *array_add(&watch.steps) = (struct account_step){
            .what = STEP_data, .from = observed_message->route->from_rank, .to = observed_message->route->to_rank,
            .begin_ps = asked_ps, .bytes = bytes, .first_hop = watch.hops.count};
        watch.on_its_way = true;
    }
    enum link_class class = link_class(link);
    uint64_t arrives_ps = start_ps + link_latency_ps(class);
    *array_add(&watch.hops) = (struct account_hop){place_rank(link_ends(link).to), class, arrives_ps, arrives_ps};
    last_step()->hops++;
}

static void node_taken(uint32_t rank, uint64_t asked_ps, uint64_t end_ps)
{
    struct account_hop *hop = &watch.hops.at[watch.hops.count - 1];
    account.broken |= !watch.on_its_way || hop->rank != rank || hop->arrives_ps != asked_ps;
    hop->ready_ps = watch.at_ps = end_ps;
    last_step()->end_ps = end_ps;
    watch.on_its_way = rank != last_step()->to;
    watch.rank = rank;
    watch.phase = DATA_CAME;
    watch.served = false;
}

/* The PE's own TCM moves the bytes: both of its channels at a time if they stay there. */
static void tcm_taken(uint64_t asked_ps, uint64_t end_ps)
{
    const struct account_step *last = last_step();
    if (last && last->what == STEP_tcm && asked_ps == last->begin_ps)
        return;                                         /* the command completes with the later of both */
    fill_until(asked_ps);
    watch.phase = AT_WORK;
    step_until(STEP_tcm, part_rank(NODE_pe_tcm), end_ps);
}

static void reserved(enum resource_kind resource, uint64_t number, uint64_t bytes, uint64_t asked_ps, uint64_t start_ps,
                     uint64_t end_ps)
{
    if (watch.over)
        return;
    bool of_tcm = resource == RESOURCE_TCM_READ || resource == RESOURCE_TCM_WRITE;
    if (resource == RESOURCE_LINK)
        link_taken(number, bytes, asked_ps, start_ps);
    else if (resource == RESOURCE_NODE)
        node_taken((uint32_t)number, asked_ps, end_ps);
    else if (of_tcm && number == watch.pe)
        tcm_taken(asked_ps, end_ps);
    else
        watch.served = true;
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

void account_begin(uint32_t pe)
{
    account = (struct account){0};
    watch.pe = pe;
    watch.on_its_way = watch.served = watch.over = false;
    watch.translation_ps = 0;
    start_at(0, place_rank(place_host()));
    observer_watch(&account_observer, true);
}

void account_end(void)
{
    observer_watch(&account_observer, false);
    account.steps = watch.steps.at;
    account.hops = watch.hops.at;
    account.count = watch.steps.count;
}

void account_reset(void)
{
    array_free(&watch.steps);
    array_free(&watch.hops);
    account = (struct account){0};
}
