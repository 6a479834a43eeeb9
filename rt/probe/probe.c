/* probe.c: what a transfer between two ends is, and its simulation. */
#include "probe.h"

#include <inttypes.h>

#include "common/arena.h"
#include "common/fail.h"
#include "host/bounds.h"
#include "launch/deadlock.h"
#include "launch/host_request.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/mmu.h"
#include "machine/state.h"
#include "sim/loop.h"

const char *const transfer_words[TRANSFER_KINDS] = {
#define TRANSFER(name, what) [TRANSFER_##name] = #name,
#include "transfer.def"
}, *const transfer_phrases[TRANSFER_KINDS] = {
#define TRANSFER(name, what) [TRANSFER_##name] = what,
#include "transfer.def"
};

static bool is_command(const struct probe *probe)
{
    return probe->kind == TRANSFER_load || probe->kind == TRANSFER_store;
}

static bool is_launch(const struct probe *probe)
{
    return probe->kind == TRANSFER_launch || probe->kind == TRANSFER_answer;
}

/* ---- which transfer it is */

/* How far from the host requests come to an end: 0 is the host. */
static unsigned depth(enum end_kind kind)
{
    return kind == END_HOST ? 0 : kind == END_IO_CPU ? 1 : kind == END_M_CPU ? 2 : 3;
}

/* Whether requests of the host pass through `upper` on their way to `lower`. */
static bool is_above(struct end upper, struct end lower)
{
    if (depth(upper.kind) >= depth(lower.kind))
        return false;
    return upper.kind == END_HOST
           || (upper.kind == END_IO_CPU ? end_sip(upper) == end_sip(lower) : end_cube(upper) == end_cube(lower));
}

/* A PE as the memory where its bytes are. */
static struct end as_memory(struct end end)
{
    return end.kind == END_PE ? end_make(END_TCM, end.number) : end;
}

/* Some memory below an io_cpu or m_cpu, for a request that passes through it. */
static struct end memory_below(struct end processor)
{
    uint32_t cube = processor.kind == END_M_CPU ? processor.number : end_sip(processor) * kb_shape.cubes;
    return end_of_cube(cube);
}

static const char *plan_command(struct probe *probe)
{
    bool stores = probe->from.kind == END_PE;
    probe->kind = stores ? TRANSFER_store : TRANSFER_load;
    probe->pe = stores ? probe->from.number : probe->to.number;
    probe->memory = as_memory(stores ? probe->to : probe->from);
    if (probe->is_virtual && !kb_attrs.pe_mmu_enabled)
        return arena_printf("pe_mmu of %s is off, so it has no virtual addresses", kb_machine_name);
    return NULL;
}

static const char *plan_request(struct probe *probe)
{
    bool down = is_above(probe->from, probe->to);
    struct end upper = down ? probe->from : probe->to, lower = down ? probe->to : probe->from;
    if (!down && !is_above(upper, lower))
        return arena_printf("the host's requests do not pass from %s to %s, nor back: a request goes from the host to"
                            " the io_cpu of a SIP, from there to the m_cpu of a cube, and on to the memories and PEs of"
                            " that cube", end_name(probe->from), end_name(probe->to));
    if (probe->is_virtual)
        return "only a load or a store by a PE has virtual addresses";
    probe->is_part = upper.kind != END_HOST || end_is_processor(lower.kind) || !probe->bytes;
    if (!probe->bytes) {
        probe->kind = down ? TRANSFER_launch : TRANSFER_answer;
        probe->pe = lower.kind == END_PE ? lower.number : end_cube(memory_below(lower)) * kb_shape.pes;
    } else {
        probe->kind = down ? TRANSFER_write : TRANSFER_read;
        probe->memory = end_is_processor(lower.kind) ? memory_below(lower) : as_memory(lower);
    }
    return NULL;
}

/* Whether all bytes are where they must be. Returns NULL, or what is wrong. */
static const char *check_bytes(const struct probe *probe)
{
    uint64_t room = kb_attrs.pe_tcm_size_bytes - kb_attrs.pe_tcm_reserved_bytes, all;
    struct range range;
    if (__builtin_mul_overflow(probe->bytes, probe->load, &all))
        return "that many bytes do not exist";
    if (is_command(probe) && probe->bytes > room)
        return arena_printf("the TCM of a PE has room for %" PRIu64 " bytes of kernels, not for %" PRIu64, room,
                            probe->bytes);
    const char *wrong = address_decode(end_address(probe->memory, 0), all, &range);
    return wrong ? arena_printf("%" PRIu64 " bytes at offset 0x%" PRIx64 " of %s: %s", all, probe->memory.offset,
                                end_name(probe->memory), wrong) : NULL;
}

const char *probe_plan(struct probe *probe)
{
    struct end from = probe->from, to = probe->to;
    bool moves_bytes = end_is_memory(from.kind) || end_is_memory(to.kind) || (from.kind == END_PE && to.kind == END_PE);
    if (!probe->sized)
        probe->bytes = moves_bytes ? PROBE_BYTES : 0;
    if (moves_bytes && !probe->bytes)
        return "a memory gets and gives at least 1 byte";
    if (end_is_memory(from.kind) && end_is_memory(to.kind))
        return arena_printf("%s moves no bytes by itself, nor does %s: a PE loads them, and stores them",
                            end_phrases[from.kind], end_phrases[to.kind]);
    bool requested = end_is_processor(from.kind) || end_is_processor(to.kind);
    const char *why = requested ? plan_request(probe) : plan_command(probe);
    if (!why && probe->load > 1 && requested && probe->is_part)
        why = "several at once are transfers of a PE, or of the host and a memory";
    return why || !probe->bytes ? why : check_bytes(probe);
}

/* ---- simulation */

static void count_one(struct probe *probe, uint64_t ps)
{
    probe->least_ps = ps < probe->least_ps ? ps : probe->least_ps;
    probe->most_ps = ps > probe->most_ps ? ps : probe->most_ps;
    probe->sum_ps += ps;
}

/* The kernel that loads or stores. */
static void transfer_bytes(struct tl *tl, const void *arg)
{
    struct probe *probe = *(struct probe *const *)arg;
    uint64_t *asked_ps = arena_alloc(probe->load, sizeof *asked_ps);
    struct command **commands = arena_alloc(probe->load, sizeof(struct command *));
    for (uint64_t i = 0; i < probe->load; i++) {
        uint64_t past = i * probe->bytes;
        struct request ask = {.kind = probe->kind == TRANSFER_load ? COMMAND_load : COMMAND_store,
                              .address[OPERAND_A] = probe->is_virtual ? past : end_address(probe->memory, past),
                              .virtual_address[OPERAND_A] = probe->is_virtual,
                              .tcm = kb_attrs.pe_tcm_reserved_bytes, .bytes = probe->bytes};
        asked_ps[i] = now_ps;
        commands[i] = kernel_submit(tl, &ask);
        command_hold(commands[i]);
    }
    for (uint64_t i = 0; i < probe->load; i++) {
        kernel_wait(tl, commands[i]->number);
        count_one(probe, commands[i]->complete_ps - asked_ps[i]);
        command_drop(commands[i]);
    }
}

static void transfer_nothing(struct tl *tl, const void *arg)
{
    (void)tl;
    (void)arg;
}

/* Maps the bytes on the memory side to virtual address 0. */
static void map_memory(const struct probe *probe)
{
    uint64_t address = end_address(probe->memory, 0), pages;
    const char *wrong = map_pages(0, probe->bytes * probe->load, &pages);
    if (wrong)
        usage_error("%s", wrong);
    fanout_wait(map_request_submit(&probe->pe, &address, 1, 0, pages));
}

static void run_launch(struct probe *probe)
{
    struct launch_part part = {.program = "probe", .body = is_launch(probe) ? transfer_nothing : transfer_bytes,
                               .arg = &probe, .pes = &probe->pe, .count = 1};
    if (probe->is_virtual)
        map_memory(probe);
    struct launch *launch = launch_submit(&part, 1, &(struct launch_options){.start = START_FREE});
    if (!launch_wait(launch))
        run_failed("the transfer failed: %s", launch_outcome(launch));
    probe->ps = launch->runs->end_ps - launch->runs->start_ps;
}

static void run_requests(struct probe *probe)
{
    struct memory_request *requests = arena_alloc(probe->load, sizeof *requests);
    for (uint64_t i = 0; i < probe->load; i++) {
        uint64_t *address = arena_alloc(1, sizeof *address);
        *address = end_address(probe->memory, i * probe->bytes);
        requests[i] = (struct memory_request){.writes = probe->kind == TRANSFER_write, .addresses = address, .count = 1,
                                              .bytes = probe->bytes};
        memory_request_submit(&requests[i]);
    }
    for (uint64_t i = 0; i < probe->load; i++) {
        if (!memory_request_wait(&requests[i]))
            run_failed("the transfer failed");
        count_one(probe, requests[i].done_ps - requests[i].submitted_ps);
    }
    probe->ps = probe->most_ps;
}

/* The host program. */
static void run_transfers(void *probe)
{
    struct probe *transfer = probe;
    if (is_command(transfer) || is_launch(transfer))
        run_launch(transfer);
    else
        run_requests(transfer);
}

/* ---- the account */

/* The rank from or to which messages of an end go. */
static uint32_t end_rank(struct end end)
{
    return place_rank(end_place(end));
}

/* Returns the number of the first or the last message that a node sends, account.count if the node sends none. */
static uint32_t message_from(uint32_t rank, bool is_last)
{
    uint32_t found = account.count;
    for (uint32_t i = 0; i < account.count; i++)
        if (account.steps[i].hops && account.steps[i].from == rank && (is_last || found == account.count))
            found = i;
    return found;
}

/* Cuts the transfer's part out of the steps of a request. Bytes of a memory are asked for and acknowledged, so that part
 * begins and ends at the CPU; else it is what one end sends until it is at the other. A CPU sends down first, up last. */
static void cut_part(struct probe *probe)
{
    bool up = probe->kind == TRANSFER_read || probe->kind == TRANSFER_answer;
    struct end upper = up ? probe->to : probe->from, lower = up ? probe->from : probe->to;
    bool answered = probe->bytes && !end_is_processor(lower.kind);
    uint32_t begin = end_rank(answered ? upper : probe->from), end = end_rank(answered ? upper : probe->to);
    uint32_t first = message_from(begin, up && !answered), last = first;
    while (last < account.count && !(account.steps[last].hops && account.steps[last].to == end))
        last++;
    if (last == account.count)
        die("internal error: there is no message from %s to %s", end_name(probe->from), end_name(probe->to));
    if (last + 1 < account.count && account.steps[last + 1].what == STEP_drain && account.steps[last + 1].to == end)
        last++;
    probe->first_step = first;
    probe->steps = last + 1 - first;
    probe->ps = account.steps[last].end_ps - account.steps[first].begin_ps;
}

/* Checks that the steps add up to what was simulated. */
static void check_steps(const struct probe *probe)
{
    uint64_t sum_ps = 0;
    bool whole = probe->steps && !account.broken;
    for (uint32_t i = probe->first_step; i < probe->first_step + probe->steps; i++) {
        const struct account_step *step = &account.steps[i];
        sum_ps += step->end_ps - step->begin_ps;
        whole &= i == probe->first_step || step->begin_ps == step[-1].end_ps;
    }
    if (!whole || sum_ps != probe->ps)
        die("internal error: the steps from %s to %s add up to %" PRIu64 " ps, the transfer takes %" PRIu64 " ps",
            end_name(probe->from), end_name(probe->to), sum_ps, probe->ps);
}

/* Checks that the steps of several transfers add up to their times. */
static void check_rows(const struct probe *probe)
{
    uint64_t sum_ps = 0;
    for (uint32_t i = 0; i < account.row_count; i++)
        sum_ps += account.rows[i].took.sum_ps;
    if (account.broken || sum_ps != probe->sum_ps || account.sum_ps != probe->sum_ps)
        die("internal error: the steps of %" PRIu64 " transfers add up to %" PRIu64 " ps, the transfers to %" PRIu64 " ps",
            probe->load, sum_ps, probe->sum_ps);
}

void probe_run(struct probe *probe, bool follow)
{
    probe->least_ps = UINT64_MAX;
    probe->most_ps = probe->sum_ps = probe->ps = 0;
    probe->first_step = probe->steps = 0;
    follow |= probe->is_part;
    machine_init();
    if (follow)
        account_begin(is_command(probe) ? probe->pe : UINT32_MAX, probe->load);
    if (!sim_run(run_transfers, probe, 1, launches_deadlocked))
        run_failed("the transfer from %s to %s does not end", end_name(probe->from), end_name(probe->to));
    if (!follow)
        return;
    account_end();
    if (probe->load > 1) {
        check_rows(probe);
        return;
    }
    probe->steps = account.count;
    if (probe->is_part)
        cut_part(probe);
    check_steps(probe);
}

double probe_bps(const struct probe *probe)
{
    return probe->ps ? (double)probe->bytes * (double)probe->load * 1e12 / (double)probe->ps : 0;
}

/* ---- JSON */

static void write_link(struct json *json, uint32_t speed, uint32_t rank)
{
    const struct link_rate *rate = link_rate(speed);
    json_string(json, "link", link_class_names[speed_class(speed)]);
    json_u64(json, "latency_ps", rate->latency_ps);
    if (rate->bw_bps)
        json_u64(json, "bandwidth_bps", rate->bw_bps);
    else
        json_null(json, "bandwidth_bps");
    json_string(json, "node", place_name(rank_place(rank)));
}

/* Times count from the begin of the transfer. */
static void write_hop(struct json *json, const struct account_hop *hop, uint64_t zero_ps)
{
    json_object(json, NULL);
    write_link(json, hop->speed, hop->rank);
    json_u64(json, "arrives_ps", hop->arrives_ps - zero_ps);
    json_u64(json, "overhead_ps", hop->ready_ps - hop->arrives_ps);
    json_object_end(json);
}

static void write_what(struct json *json, enum step_what what, uint32_t from, uint32_t to, bool is_message)
{
    json_string(json, "what", step_words[what]);
    if (is_message)
        json_string(json, "from", place_name(rank_place(from)));
    json_string(json, is_message ? "to" : "node", place_name(rank_place(to)));
}

static void write_step(struct json *json, const struct account_step *step, uint64_t zero_ps)
{
    bool is_message = step->hops;
    json_object(json, NULL);
    write_what(json, step->what, step->from, step->to, is_message);
    json_u64(json, "begin_ps", step->begin_ps - zero_ps);
    json_u64(json, "end_ps", step->end_ps - zero_ps);
    if (is_message) {
        json_u64(json, "bytes", step->bytes);
        json_array(json, "hops");
        for (uint32_t i = 0; i < step->hops; i++)
            write_hop(json, &account.hops[step->first_hop + i], zero_ps);
        json_array_end(json);
    }
    json_object_end(json);
}

static void write_spread(struct json *json, const struct spread *spread, uint64_t load)
{
    json_u64(json, "least_ps", spread_least_ps(spread, load));
    json_u64(json, "most_ps", spread->most_ps);
    json_double(json, "mean_ps", (double)spread->sum_ps / (double)load);
}

static void write_row(struct json *json, const struct account_row *row, uint64_t load)
{
    json_object(json, NULL);
    write_what(json, row->what, row->from, row->to, row->hops);
    write_spread(json, &row->took, load);
    if (row->hops) {
        json_u64(json, "bytes", row->bytes);
        json_array(json, "hops");
        for (uint32_t i = 0; i < row->hops; i++) {
            json_object(json, NULL);
            write_link(json, row->hop[i].speed, row->hop[i].rank);
            write_spread(json, &row->hop[i].took, load);
            json_object_end(json);
        }
        json_array_end(json);
    }
    json_object_end(json);
}

void probe_write(struct json *json, const struct probe *probe)
{
    json_string(json, "from", end_name(probe->from));
    json_string(json, "to", end_name(probe->to));
    json_string(json, "transfer", transfer_words[probe->kind]);
    json_u64(json, "bytes", probe->bytes);
    json_u64(json, "load", probe->load);
    json_bool(json, "virtual", probe->is_virtual);
    json_u64(json, "ps", probe->ps);
    json_double(json, "bandwidth_bps", probe_bps(probe));
    if (probe->load > 1) {
        json_u64(json, "least_ps", probe->least_ps);
        json_u64(json, "most_ps", probe->most_ps);
        json_double(json, "mean_ps", (double)probe->sum_ps / (double)probe->load);
    }
    if (probe->steps) {
        json_array(json, "steps");
        for (uint32_t i = 0; i < probe->steps; i++)
            write_step(json, &account.steps[probe->first_step + i], account.steps[probe->first_step].begin_ps);
        json_array_end(json);
    }
    if (probe->load > 1 && account.row_count) {
        json_array(json, "spread");
        for (uint32_t i = 0; i < account.row_count; i++)
            write_row(json, &account.rows[i], probe->load);
        json_array_end(json);
    }
}
