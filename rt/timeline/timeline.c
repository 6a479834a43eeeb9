/* timeline.c: writes slices when they end, since only then all of a slice is known: of a track in the order of time.
 *
 * Slices of a kernel lie in one another: kernel, call, what the call does. An outer one is begun when the first inner
 * one is written, or at its end. Other tracks have lanes: a slice that begins before the last one of its lane has ended
 * goes to another lane, a track of the same name. */
#include "timeline.h"

#include <inttypes.h>
#include <string.h>

#include "base/human.h"
#include "base/stopwatch.h"
#include "columns.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/fail.h"
#include "common/key_table.h"
#include "launch/host_request.h"
#include "launch/launch.h"
#include "launch/watchdog.h"
#include "machine/emitted.h"
#include "machine/engine.h"
#include "machine/pe.h"
#include "machine/peers.h"
#include "machine/tile_buffers.h"
#include "perfetto.h"
#include "report/summary.h"
#include "signals.h"
#include "store/allocator.h"
#include "window.h"

#define RARE __attribute__((cold))                      /* not for each event */

/* A track, and others of its name for what overlaps. */
struct lane {
    uint32_t track;                                     /* 0: not made yet */
    uint32_t class;                                     /* of a link, + 1; 0: not known yet */
    uint64_t end_ps;                                    /* of its last slice */
    uint64_t tail;                                      /* perfetto_tail of the track of a resource */
    struct further *further;                            /* NULL: nothing has overlapped */
};

/* The ends stand apart from the lanes: a search for a lane that has ended reads little else. */
struct further {
    struct ARRAY(struct lane *) lanes;
    struct ARRAY(uint64_t) end_ps;                      /* of the last slice of each */
};

/* Where a lane's tracks are, if they have to be made. */
struct lane_place {
    uint32_t parent, rank;
    const char *name;
};

/* The rank of a track below that of its PE. */
enum { RANK_KERNEL, RANK_COMMANDS, RANK_SCHEDULER, RANK_FEEDER, RANK_SERVERS, RANK_TCM = 100, RANK_COUNTERS = 110,
       RANK_RINGS = 200 };

/* A message in a ring, from the start of the send to the receive. */
struct sent {
    struct cause send;
    uint64_t begin_ps, bytes, flow;
    uint32_t source_line;
};

struct ring_tracks {
    struct key_link link;                               /* by both PEs */
    struct ring_tracks *next;                           /* of the same destination */
    uint32_t source;                                    /* the PE that sends */
    struct lane lane;
    struct ARRAY(struct sent) sent;                     /* that are not received, by time */
};

struct pe_tracks {
    bool hidden;
    uint32_t track, name;                               /* its full name as the name of slices */
    struct lane kernels, commands, scheduler, feeder;
    struct lane *servers;
    uint32_t tcm_counter, depth[STAGES];                /* signals + 1; 0: not made yet */
    uint64_t kernel_bytes;                              /* of the TCM, that its kernel has allocated */
    bool acted;                                         /* its kernel has in this instant */
    uint32_t rings_track;
    struct ring_tracks *rings, *last_ring;
};

/* A kernel, and how far its slices are written. */
struct frame {
    const struct tl *tl;
    struct lane *lane;                                  /* NULL: its PE is hidden */
    uint64_t begin_ps, call_ps, delay_from_ps, delay_to_ps;
    struct call_site call;
    bool ended, is_open, in_call, call_is_open, delayed;
};

/* For whom something is done: a kernel or the host. */
struct actor {
    uint32_t name;                                      /* of its slices; 0: not known yet */
    bool hidden;
};

/* A signal as a counter. */
struct counter {
    uint32_t track;
    int64_t before;                                     /* its value before the window */
};

/* Ranks below the root; SIPs come after them. */
enum { RANK_PATH, RANK_HOST, RANK_IN_FLIGHT };

static struct {
    bool opened;
    uint32_t root, links, *sips, *sip_links, *cubes, *cube_links, *memories;  /* tracks; 0: not made yet */
    struct lane *resources[RESOURCE_KINDS], requests;
    struct pe_tracks *pes;
    struct key_table rings;
    struct ARRAY(struct frame) frames;                  /* by serial number of the kernel, from 1 on */
    struct ARRAY(struct actor) actors;                  /* likewise; the first one is the host */
    struct ARRAY(const struct pe *) acted;              /* PEs whose kernels have, in this instant */
    uint32_t *node_texts;                               /* names of nodes as arguments, by rank; 0: not made yet */
    uint32_t names[STAGES], command_names[COMMANDS], wait_names[COMMANDS];
    uint32_t issue_name, delay_name, take_name, feed_name, complete_name, answer_name;
    struct columns in_flight[LINK_CLASSES];             /* bytes on links */
    struct ARRAY(struct counter) counters;              /* of the signals */
    struct signals signals;
    bool window_begun;                                  /* a counter was told of in it */
    struct {
        uint64_t outside, other_pes;
        bool rest;                                      /* everything from rest_ps on: there are too many slices */
        uint64_t rest_ps;
    } left_out;
    uint64_t slices;
    struct ARRAY(uint64_t) flows;                       /* of the slice that is written next */
    struct {
        const struct command *command;
        uint64_t tile;
    } last_tile;                                        /* that completes its command next */
    struct {
        const struct command *receive;
        uint64_t flow;
    } received;                                         /* the message that completes this receive next */
} timeline;

/* ---- what is shown */

/* The timeline has all the slices that it may have: only what is open in it has to be ended. */
static RARE void leave_out_rest(void)
{
    signals_tell_before(&timeline.signals, now_ps);
    timeline.left_out.rest = true;
    timeline.left_out.rest_ps = now_ps;
    observer_watch(&timeline_observer, false);
    observer_watch(&timeline_end_observer, true);
}

/* Whether a slice is in the window; counts those that are not. */
static bool is_inside(uint64_t begin_ps, uint64_t end_ps)
{
    bool inside = window_has(begin_ps, end_ps);
    timeline.left_out.outside += !inside;
    return inside;
}

/* Whether a slice is written. */
static bool takes(uint64_t begin_ps, uint64_t end_ps)
{
    if (!is_inside(begin_ps, end_ps))
        return false;
    if (timeline.slices < window.slices) {
        timeline.slices++;
        return true;
    }
    if (!timeline.left_out.rest)
        leave_out_rest();
    return false;
}

/* ---- tracks */

static RARE uint32_t sip_track(uint32_t sip)
{
    uint32_t *track = &timeline.sips[sip];
    if (!*track)
        *track = perfetto_track(timeline.root, arena_printf("sip%" PRIu32, sip), 10 + sip);
    return *track;
}

/* A cube, by its number over the machine. */
static RARE uint32_t cube_track(uint32_t cube)
{
    uint32_t *track = &timeline.cubes[cube];
    if (!*track)
        *track = perfetto_track(sip_track(cube / kb_shape.cubes), arena_printf("cube%" PRIu32, cube % kb_shape.cubes),
                                10 + cube % kb_shape.cubes);
    return *track;
}

static struct pe_tracks *pe_tracks(const struct pe *pe)
{
    return &timeline.pes[pe_number(pe)];
}

static RARE uint32_t pe_track(const struct pe *pe)
{
    struct pe_tracks *tracks = pe_tracks(pe);
    uint32_t number = pe_number(pe), in_cube = number % kb_shape.pes;
    if (!tracks->track)
        tracks->track = perfetto_track(cube_track(number / kb_shape.pes), arena_printf("pe%" PRIu32, in_cube),
                                       10 + in_cube);
    return tracks->track;
}

/* The name of a PE as that of slices. */
static uint32_t pe_slice_name(const struct pe *pe)
{
    struct pe_tracks *tracks = pe_tracks(pe);
    if (!tracks->name)
        tracks->name = perfetto_name(pe_name(pe));
    return tracks->name;
}

/* The links out of the nodes of a cube, a SIP or the system. */
static RARE uint32_t links_track(struct place from)
{
    bool in_system = from.cube == OUTSIDE && from.node < SYSTEM_NODES;
    uint32_t *track = in_system ? &timeline.links
                      : from.cube == OUTSIDE ? &timeline.sip_links[from.sip] : &timeline.cube_links[place_cube(from)];
    if (*track)
        return *track;
    uint32_t parent = in_system ? timeline.root : from.cube == OUTSIDE ? sip_track(from.sip)
                      : cube_track(place_cube(from));
    return *track = perfetto_track(parent, "links", 2);
}

static RARE uint32_t memories_track(uint32_t cube)
{
    uint32_t *track = &timeline.memories[cube];
    if (!*track)
        *track = perfetto_track(cube_track(cube), "memories", 1);
    return *track;
}

/* The first lane behind `lane` that has ended by begin_ps. Hundreds of commands may be under way at once. */
static RARE struct lane *lane_behind(struct lane *lane, uint64_t begin_ps, uint64_t end_ps)
{
    if (!lane->further)
        lane->further = arena_alloc(1, sizeof *lane->further);
    struct further *further = lane->further;
    size_t i = 0;
    while (i < further->end_ps.count && further->end_ps.at[i] > begin_ps)
        i++;
    if (i == further->end_ps.count) {
        *array_add(&further->lanes) = arena_alloc(1, sizeof *lane);
        array_add(&further->end_ps);
    }
    further->end_ps.at[i] = end_ps;
    return further->lanes.at[i];
}

/* The lane for something that begins at begin_ps and is at least there until end_ps. */
static struct lane *lane_at(struct lane *lane, uint64_t begin_ps, uint64_t end_ps)
{
    if (lane->track && lane->end_ps > begin_ps)
        lane = lane_behind(lane, begin_ps, end_ps);
    lane->end_ps = end_ps;
    return lane;
}

/* What is in a lane ends, maybe earlier than was thought. */
static void lane_ends(const struct lane *first, struct lane *lane, uint64_t end_ps)
{
    lane->end_ps = end_ps;
    for (size_t i = 0; first->further && i < first->further->lanes.count; i++)
        if (first->further->lanes.at[i] == lane)
            first->further->end_ps.at[i] = end_ps;
}

/* The track of a lane of a PE. */
static uint32_t pe_lane(const struct pe *pe, struct lane *first, const char *name, uint32_t rank, uint64_t begin_ps,
                        uint64_t end_ps)
{
    struct lane *lane = lane_at(first, begin_ps, end_ps);
    if (!lane->track)
        lane->track = perfetto_track(pe_track(pe), name, rank);
    return lane->track;
}

/* ---- flows. The number of one is made of what it belongs to; 0, none, if that does not fit. */

enum flow_kind { FLOW_TILE = 1, FLOW_MESSAGE, FLOW_KERNEL };

static uint64_t flow_of(enum flow_kind kind, uint64_t kernel, uint64_t command, uint64_t tile)
{
    enum { KERNEL_BITS = 24, COMMAND_BITS = 20, TILE_BITS = 18 };
    if (kernel >> KERNEL_BITS || command >> COMMAND_BITS || tile >> TILE_BITS)
        return 0;
    return (((uint64_t)kind << KERNEL_BITS | kernel) << COMMAND_BITS | command) << TILE_BITS | tile;
}

/* The first tile of a command has the flow of the command itself. */
static uint64_t tile_flow(const struct command *command, uint64_t tile)
{
    return flow_of(FLOW_TILE, command->ask.serial, command->number, tile);
}

/* The flow of a send's message to the peer at a position of its list. */
static uint64_t message_flow(const struct command *send, uint32_t position)
{
    return flow_of(FLOW_MESSAGE, send->ask.serial, send->number, position);
}

/* ---- counters */

/* Changes a counter of a PE, which is made if it is not there yet. */
static void count(uint32_t *signal, const struct pe *pe, const char *name, uint32_t rank, bool bytes, uint64_t t_ps,
                  int64_t delta)
{
    if (!*signal) {
        *signal = signals_add(&timeline.signals) + 1;
        struct counter counter = {perfetto_counter(pe_track(pe), name, rank, bytes), 0};
        *array_add(&timeline.counters) = counter;
    }
    signals_change(&timeline.signals, *signal - 1, t_ps, delta);
}

/* A message is on a link of a class. */
static void link_takes(enum link_class class, uint64_t begin_ps, uint64_t end_ps, uint64_t bytes)
{
    struct columns *columns = &timeline.in_flight[class];
    if (end_ps <= window.from_ps || begin_ps > window.to_ps)
        return;
    if (!columns->at)
        *columns = columns_make(window.from_ps);
    columns_add(columns, begin_ps < window.from_ps ? window.from_ps : begin_ps,
                end_ps < window.to_ps ? end_ps : window.to_ps + 1, (int64_t)bytes);
}

/* Writes them at the end, when the width of their columns is known. What was left out is missing in the last columns. */
static RARE void link_counts_write(void)
{
    static const char *const names[LINK_CLASSES] = {
#define LINK(name, bw, latency) #name,
#define OWN_LINK(name) #name,
#include "kb/links.def"
    };
    for (unsigned class = 0; class < LINK_CLASSES; class++) {
        const struct columns *columns = &timeline.in_flight[class];
        uint64_t width_ps = UINT64_C(1) << columns->bits, rest_ps = timeline.left_out.rest_ps;
        if (!columns->at || (timeline.left_out.rest && rest_ps < width_ps))
            continue;
        const char *name = arena_printf("bytes in flight: %s (means of %s)", names[class], human_time_exact(width_ps));
        uint32_t track = perfetto_counter(timeline.root, name, RANK_IN_FLIGHT + class, true);
        columns_tell(columns, timeline.left_out.rest ? rest_ps - width_ps : window.to_ps, track, perfetto_count);
    }
}

/* The values with which the window begins. */
static RARE void counters_begin(void)
{
    if (timeline.window_begun)
        return;
    timeline.window_begun = true;
    for (size_t i = 0; i < timeline.counters.count; i++)
        if (timeline.counters.at[i].before)
            perfetto_count(timeline.counters.at[i].track, window.from_ps, timeline.counters.at[i].before);
}

static void counter_told(uint32_t number, uint64_t t_ps, int64_t value)
{
    struct counter *counter = &timeline.counters.at[number];
    if (t_ps < window.from_ps)
        counter->before = value;
    if (t_ps < window.from_ps || t_ps > window.to_ps || timeline.left_out.rest)
        return;
    counters_begin();
    perfetto_count(counter->track, t_ps, value);
}

static void kernel_bytes_look(const struct pe *pe)
{
    struct pe_tracks *tracks = pe_tracks(pe);
    uint64_t bytes = allocator_kernel_bytes(memory_tcm(pe_number(pe))), before = tracks->kernel_bytes;
    tracks->acted = false;
    tracks->kernel_bytes = bytes;
    if (bytes != before)
        count(&tracks->tcm_counter, pe, "TCM in use", RANK_COUNTERS, true, now_ps, (int64_t)(bytes - before));
}

static void instant_ends(void)
{
    unsigned before = phase_enter(PHASE_trace);
    for (size_t i = 0; i < timeline.acted.count; i++)
        kernel_bytes_look(timeline.acted.at[i]);
    timeline.acted.count = 0;
    signals_instant_ends(&timeline.signals);
    perfetto_empty();
    phase_leave(before);
}

/* ---- kernels */

static struct frame *frame_of(const struct tl *tl)
{
    return &timeline.frames.at[tl->serial - 1];
}

static void kernel_open(struct frame *frame)
{
    if (frame->is_open)
        return;
    frame->is_open = true;
    timeline.slices++;
    struct perfetto_value request = {ARGUMENT_request, .number = frame->tl->request};
    uint64_t flow = flow_of(FLOW_KERNEL, frame->tl->serial, 0, 0);
    perfetto_write(PERFETTO_BEGIN, &(struct perfetto_event){
        frame->lane->track, perfetto_name(frame->tl->name), frame->begin_ps,
        .value_count = 1, .values = &request, .flow_count = 1, .flows = &flow});
}

static void call_open(struct frame *frame)
{
    kernel_open(frame);
    if (!frame->in_call || frame->call_is_open)
        return;
    frame->call_is_open = true;
    timeline.slices++;
    perfetto_write(PERFETTO_BEGIN, &(struct perfetto_event){
        frame->lane->track, perfetto_constant(frame->call.name), frame->call_ps,
        perfetto_source(frame->call.file, frame->call.line), .value_count = 0});
}

/* Whether a slice within a call is written, next. */
static bool takes_part(struct frame *frame, uint64_t begin_ps, uint64_t end_ps)
{
    if (!takes(begin_ps, end_ps))
        return false;
    call_open(frame);
    return true;
}

/* A delay is over that was not that of a command's submission. */
static void delay_ends(struct frame *frame, uint64_t t_ps)
{
    if (!frame->delayed)
        return;
    frame->delayed = false;
    uint64_t end_ps = frame->delay_to_ps < t_ps ? frame->delay_to_ps : t_ps;
    if (frame->delay_from_ps < end_ps && takes_part(frame, frame->delay_from_ps, end_ps))
        perfetto_slice(&(struct perfetto_event){frame->lane->track, timeline.delay_name, frame->delay_from_ps, .source = 0}, end_ps);
}

/* A call lasts until the next one begins: what a kernel computes itself takes no time. */
static void call_ends(struct frame *frame, uint64_t t_ps)
{
    delay_ends(frame, t_ps);
    if (frame->in_call && !frame->call_is_open && frame->call_ps < t_ps && takes(frame->call_ps, t_ps)) {
        timeline.slices--;
        call_open(frame);
    }
    if (frame->call_is_open)
        perfetto_end(frame->lane->track, t_ps);
    frame->in_call = frame->call_is_open = false;
}

static void frame_ends(struct frame *frame, uint64_t t_ps)
{
    if (frame->ended || !frame->lane)
        return;
    frame->ended = true;
    call_ends(frame, t_ps);
    if (!frame->is_open && takes(frame->begin_ps, t_ps)) {
        timeline.slices--;
        kernel_open(frame);
    }
    if (frame->is_open)
        perfetto_end(frame->lane->track, t_ps);
    lane_ends(&pe_tracks(frame->tl->pe)->kernels, frame->lane, t_ps);
}

/* Looks at the kernel's TCM at the end of the instant. */
static void kernel_acts(const struct pe *pe)
{
    struct pe_tracks *tracks = pe_tracks(pe);
    if (tracks->acted || tracks->hidden)
        return;
    tracks->acted = true;
    *array_add(&timeline.acted) = pe;
}

static void kernel_begins(const struct tl *tl)
{
    while (timeline.frames.count < tl->serial)
        *array_add(&timeline.frames) = (struct frame){0};
    struct frame *frame = frame_of(tl);
    struct pe_tracks *tracks = pe_tracks(tl->pe);
    *frame = (struct frame){.tl = tl, .begin_ps = now_ps};
    if (tracks->hidden)
        return;
    frame->lane = lane_at(&tracks->kernels, now_ps, UINT64_MAX);
    if (!frame->lane->track)
        frame->lane->track = perfetto_track(pe_track(tl->pe), "kernel", RANK_KERNEL);
    kernel_acts(tl->pe);
}

/* Of a kernel that began before the rest was left out. */
static bool is_known(const struct tl *tl)
{
    return tl->serial <= timeline.frames.count && frame_of(tl)->tl == tl;
}

static RARE void open_kernel_ends(const struct tl *tl)
{
    if (is_known(tl))
        frame_ends(frame_of(tl), now_ps);
}

static RARE void open_call_ends(const struct tl *tl)
{
    if (is_known(tl) && frame_of(tl)->lane)
        call_ends(frame_of(tl), now_ps);
}

static void kernel_ends(const struct tl *tl)
{
    frame_ends(frame_of(tl), now_ps);
    kernel_acts(tl->pe);
}

static void call_begins(const struct tl *tl)
{
    struct frame *frame = frame_of(tl);
    if (!frame->lane)
        return;
    call_ends(frame, now_ps);
    frame->in_call = true;
    frame->call = tl->call;
    frame->call_ps = now_ps;
    kernel_acts(tl->pe);
}

static void kernel_will_act(const struct tl *tl, enum kernel_act act, uint64_t t_ps)
{
    if (act == KERNEL_BEGINS)
        return;
    struct frame *frame = frame_of(tl);
    if (!frame->lane)
        return;
    delay_ends(frame, now_ps);
    frame->delayed = true;
    frame->delay_from_ps = now_ps;
    frame->delay_to_ps = t_ps;
    kernel_acts(tl->pe);
}

static uint32_t command_source(const struct command *command)
{
    return perfetto_source(command->ask.file, command->ask.line);
}

/* The kernel has waited for a command, up to now. */
static void wait_ends(const struct tl *tl, const struct command *command)
{
    struct frame *frame = frame_of(tl);
    delay_ends(frame, now_ps);
    if (tl->awaited_since_ps == now_ps || !takes_part(frame, tl->awaited_since_ps, now_ps))
        return;
    struct perfetto_value number = {ARGUMENT_command, .number = command->number};
    perfetto_slice(&(struct perfetto_event){frame->lane->track, timeline.wait_names[command->ask.kind], tl->awaited_since_ps,
                                            command_source(command), .value_count = 1, .values = &number}, now_ps);
}

/* ---- commands */

/* Its arguments, up to three. Returns how many. */
static uint32_t command_values(const struct command *command, struct perfetto_value *values)
{
    uint32_t count = 0;
    values[count++] = (struct perfetto_value){ARGUMENT_command, false, command->number};
    if (command->ask.bytes)
        values[count++] = (struct perfetto_value){ARGUMENT_bytes, false, command->ask.bytes};
    if (command_is_composite(command->ask.kind))
        values[count++] = (struct perfetto_value){ARGUMENT_tiles, false, command->tiles};
    return count;
}

static void command_submitted(const struct command *command)
{
    struct frame *frame = frame_of(command->pe->kernel);
    if (!frame->lane)
        return;
    frame->delayed = false;
    uint64_t begin_ps = frame->delay_to_ps == now_ps ? frame->delay_from_ps : now_ps;
    if (!takes_part(frame, begin_ps, now_ps))
        return;
    struct perfetto_value values[3];
    uint64_t flow = tile_flow(command, 0);
    perfetto_slice(&(struct perfetto_event){frame->lane->track, timeline.issue_name, begin_ps, command_source(command),
                                            command_values(command, values), 1, false, values, &flow}, now_ps);
}

static void command_scheduled(const struct command *command)
{
    struct pe_tracks *tracks = pe_tracks(command->pe);
    uint64_t begin_ps = command->pe->scheduling_since_ps;
    if (tracks->hidden || !takes(begin_ps, now_ps))
        return;
    uint32_t track = pe_lane(command->pe, &tracks->scheduler, "pe_scheduler", RANK_SCHEDULER, begin_ps, now_ps);
    struct perfetto_value number = {ARGUMENT_command, false, command->number};
    uint64_t flow = tile_flow(command, 0);
    perfetto_slice(&(struct perfetto_event){track, timeline.take_name, begin_ps, 0, 1, 1, false, &number, &flow}, now_ps);
}

/* Writes a command from its submission to its completion, or to the end of the run. */
static void command_write(const struct command *command, uint64_t end_ps, bool complete)
{
    struct pe_tracks *tracks = pe_tracks(command->pe);
    if (tracks->hidden || !takes(command->submitted_ps, end_ps))
        return;
    uint32_t track = pe_lane(command->pe, &tracks->commands, "commands", RANK_COMMANDS, command->submitted_ps, end_ps);
    struct perfetto_value values[3];
    perfetto_write(PERFETTO_BEGIN, &(struct perfetto_event){
        track, timeline.command_names[command->ask.kind], command->submitted_ps, command_source(command),
        command_values(command, values), .values = values});
    if (complete) {
        uint64_t flows[3] = {tile_flow(command, 0)};
        if (timeline.last_tile.command == command && timeline.last_tile.tile)
            flows[1] = tile_flow(command, timeline.last_tile.tile);
        if (timeline.received.receive == command)
            flows[2] = timeline.received.flow;
        perfetto_write(PERFETTO_INSTANT, &(struct perfetto_event){
            track, timeline.complete_name, end_ps, .flow_count = 3, .flows_end = true, .flows = flows});
    }
    perfetto_end(track, end_ps);
}

static void command_completed(const struct command *command)
{
    const struct tl *tl = command->pe->kernel;
    command_write(command, now_ps, true);
    timeline.last_tile.command = timeline.received.receive = NULL;
    if (tl->awaited == command && !tl->failure.set && frame_of(tl)->lane)
        wait_ends(tl, command);
}

/* ---- tiles */

static void tile_fed(const struct token *token, uint64_t end_ps)
{
    const struct command *command = token->command;
    struct pe_tracks *tracks = pe_tracks(command->pe);
    if (tracks->hidden)
        return;
    if (token->buffer[0].bytes)
        count(&tracks->tcm_counter, command->pe, "TCM in use", RANK_COUNTERS, true, now_ps, (int64_t)tile_buffers_bytes(token));
    if (!takes(now_ps, end_ps))
        return;
    uint32_t track = pe_lane(command->pe, &tracks->feeder, "feeder", RANK_FEEDER, now_ps, end_ps);
    struct perfetto_value values[] = {{ARGUMENT_command, false, command->number}, {ARGUMENT_tile, false, token->tile.id}};
    uint64_t flow = tile_flow(command, token->tile.id);
    perfetto_slice(&(struct perfetto_event){track, timeline.feed_name, now_ps, 0, 2, 1, false, values, &flow}, end_ps);
}

static void queue_changes(const struct token *token, int delta)
{
    static const char *const names[STAGES] = {
#define STAGE(name, part, engine, busy) #name " queue",
#include "kb/stages.def"
#undef STAGE
    };
    enum stage_kind stage = token->stage->kind;
    struct pe_tracks *tracks = pe_tracks(token->command->pe);
    if (!tracks->hidden)
        count(&tracks->depth[stage], token->command->pe, names[stage], RANK_COUNTERS + 1 + stage, false, now_ps, delta);
}

static void tile_queued(const struct token *token)
{
    queue_changes(token, 1);
}

/* ---- rings */

static RARE struct ring_tracks *ring_new(uint32_t destination, uint32_t source, uint64_t key)
{
    struct pe_tracks *tracks = &timeline.pes[destination];
    struct ring_tracks *ring = arena_alloc(1, sizeof *ring);
    ring->source = source;
    *(tracks->rings ? &tracks->last_ring->next : &tracks->rings) = ring;
    tracks->last_ring = ring;
    key_table_add(&timeline.rings, &ring->link, key);
    return ring;
}

static struct ring_tracks *ring_of(uint32_t destination, uint32_t source)
{
    uint64_t key = (uint64_t)destination << 32 | source;
    struct ring_tracks *ring = key_table_find(&timeline.rings, key);
    return ring ? ring : ring_new(destination, source, key);
}

static void message_sent(const struct command *send)
{
    struct pe_list peers = peers_of(&send->ask);
    for (uint32_t i = 0; i < peers.count; i++) {
        const struct pe *destination = &kb_pe[peers.pe[i]];
        if (pe_tracks(destination)->hidden)
            continue;
        struct sent sent = {command_cause(send), now_ps, send->ask.bytes, message_flow(send, i),
                            perfetto_source(send->ask.file, send->ask.line)};
        *array_add(&ring_of(peers.pe[i], pe_number(send->pe))->sent) = sent;
    }
}

static void sent_write(const struct pe *destination, struct ring_tracks *ring, const struct sent *sent, uint64_t end_ps,
                       const struct command *receive)
{
    struct pe_tracks *tracks = pe_tracks(destination);
    if (!takes(sent->begin_ps, end_ps))
        return;
    struct lane *lane = lane_at(&ring->lane, sent->begin_ps, end_ps);
    if (!tracks->rings_track)
        tracks->rings_track = perfetto_track(pe_track(destination), "rings", RANK_RINGS);
    if (!lane->track)
        lane->track = perfetto_track(tracks->rings_track, arena_printf("from %s", pe_name(&kb_pe[ring->source])),
                                     ring->source);
    struct perfetto_value values[3] = {{ARGUMENT_command, false, sent->send.number}, {ARGUMENT_bytes, false, sent->bytes}};
    if (receive)
        values[2] = (struct perfetto_value){ARGUMENT_receive, false, receive->number};
    perfetto_slice(&(struct perfetto_event){lane->track, pe_slice_name(&kb_pe[ring->source]), sent->begin_ps, sent->source_line,
                                            receive ? 3 : 2, 1, false, values, &sent->flow}, end_ps);
}

static void message_received(const struct command *receive, const struct sender *sender)
{
    if (pe_tracks(receive->pe)->hidden)
        return;
    struct ring_tracks *ring = ring_of(pe_number(receive->pe), pe_number(sender->pe));
    size_t i = 0;
    while (ring->sent.at[i].send.kernel != sender->cause.kernel || ring->sent.at[i].send.number != sender->cause.number)
        i++;
    timeline.received.receive = receive;
    timeline.received.flow = ring->sent.at[i].flow;
    sent_write(receive->pe, ring, &ring->sent.at[i], now_ps, receive);
    ring->sent.count--;
    memmove(&ring->sent.at[i], &ring->sent.at[i + 1], (ring->sent.count - i) * sizeof *ring->sent.at);
}

/* ---- services */

static void service_starts(const struct token *token)
{
    queue_changes(token, -1);
    if (token->stage->kind == STAGE_COMM)
        message_sent(token->command);
}

static const char *server_name(enum stage_kind stage)
{
    bool shared = kb_shape.accel_shared && (stage == STAGE_GEMM || stage == STAGE_MATH);
    return shared ? "pe_gemm, pe_math" : engine_names[engine_of(stage)];
}

static void service_write(const struct token *token, uint64_t end_ps)
{
    const struct command *command = token->command;
    const struct pe *pe = command->pe;
    struct pe_tracks *tracks = pe_tracks(pe);
    enum stage_kind stage = token->stage->kind;
    if (tracks->hidden || !takes(token->started_ps, end_ps))
        return;
    if (!tracks->servers)
        tracks->servers = arena_alloc(kb_pe_servers, sizeof *tracks->servers);
    uint32_t server = (uint32_t)(token->server - pe->servers);
    uint32_t track = pe_lane(pe, &tracks->servers[server], server_name(stage), RANK_SERVERS + kb_pe_servers - server,
                             token->started_ps, end_ps);
    struct perfetto_value values[3] = {
        {ARGUMENT_command, false, command->number},
        {stage == STAGE_GEMM ? ARGUMENT_flop : stage == STAGE_MATH ? ARGUMENT_elements : ARGUMENT_bytes, false,
         token->stage->amount},
        {ARGUMENT_tile, false, token->tile.id},
    };
    timeline.flows.count = 0;
    *array_add(&timeline.flows) = tile_flow(command, token->tile.id);
    for (uint32_t i = 0, count = stage == STAGE_COMM ? peers_of(&command->ask).count : 0; i < count; i++)
        *array_add(&timeline.flows) = message_flow(command, i);
    perfetto_slice(&(struct perfetto_event){track, timeline.names[stage], token->started_ps, command_source(command),
                                            command_is_composite(command->ask.kind) ? 3 : 2, (uint32_t)timeline.flows.count,
                                            false, values, timeline.flows.at}, end_ps);
}

static void service_ends(const struct token *token)
{
    const struct command *command = token->command;
    struct pe_tracks *tracks = pe_tracks(command->pe);
    service_write(token, now_ps);
    if (token->stage[1].kind != STAGE_NONE)
        return;
    if (command->tiles_left == 1) {
        timeline.last_tile.command = command;
        timeline.last_tile.tile = token->tile.id;
    }
    if (!tracks->hidden && token->buffer[0].bytes)
        count(&tracks->tcm_counter, command->pe, "TCM in use", RANK_COUNTERS, true, now_ps,
              -(int64_t)tile_buffers_bytes(token));
}

/* ---- links and memories */

static uint32_t node_text(uint32_t rank)
{
    uint32_t *text = &timeline.node_texts[rank];
    if (!*text)
        *text = perfetto_text(place_name(rank_place(rank)));
    return *text;
}

/* The name of a node within its cube, in a buffer that the next call overwrites. */
static RARE const char *name_in_cube(struct place place)
{
    const char *name = place_name(place), *after = place.cube == OUTSIDE ? NULL : strstr(name, ".cube");
    after = after ? strchr(after + 1, '.') : NULL;
    return after ? after + 1 : name;
}

/* "noc.r0c1 -> port.e", in the arena. */
static RARE const char *link_name(struct link_ends ends)
{
    char name[256], *end = stpcpy(stpcpy(name, name_in_cube(ends.from)), " -> ");
    bool inside = place_cube(ends.from) == place_cube(ends.to) && ends.from.cube != OUTSIDE;
    end = stpcpy(end, inside ? name_in_cube(ends.to) : place_name(ends.to));
    return arena_text(name, (size_t)(end - name));
}

static RARE struct lane_place resource_place(enum resource_kind kind, uint64_t number)
{
    switch (kind) {
    case RESOURCE_LINK: {
        struct link_ends ends = link_ends(number);
        return (struct lane_place){links_track(ends.from), (uint32_t)number, link_name(ends)};
    }
    case RESOURCE_PSEUDO_CHANNEL: {
        struct place slice = slice_place(number / kb_attrs.hbm_ctrl_pcs);
        return (struct lane_place){memories_track(place_cube(slice)), (uint32_t)number,
                                   arena_printf("%s pc%" PRIu64, name_in_cube(slice), number % kb_attrs.hbm_ctrl_pcs)};
    }
    case RESOURCE_HBM_MODEL:
        return (struct lane_place){memories_track(place_cube(slice_place(number))), (uint32_t)number,
                                   arena_printf("%s", name_in_cube(slice_place(number)))};
    case RESOURCE_SRAM_READ: return (struct lane_place){memories_track(number), 0, "sram read"};
    case RESOURCE_SRAM_WRITE: return (struct lane_place){memories_track(number), 0, "sram write"};
    case RESOURCE_SRAM_MODEL: return (struct lane_place){memories_track(number), 0, "sram"};
    case RESOURCE_TCM_READ: return (struct lane_place){pe_track(&kb_pe[number]), RANK_TCM, "pe_tcm read"};
    default: return (struct lane_place){pe_track(&kb_pe[number]), RANK_TCM + 1, "pe_tcm write"};
    }
}

/* For whom something is done. */
static struct actor actor_of(struct cause cause)
{
    while (timeline.actors.count <= cause.kernel)
        *array_add(&timeline.actors) = (struct actor){0};
    struct actor *actor = &timeline.actors.at[cause.kernel];
    if (!actor->name) {
        const struct pe *pe = timeline.frames.at[cause.kernel - 1].tl->pe;
        *actor = (struct actor){pe_slice_name(pe), pe_tracks(pe)->hidden};
    }
    return *actor;
}

/* Reservations of the same cause, of as many bytes and on the same route. A message has several, one a link. */
struct reservations {
    struct cause cause;
    uint64_t bytes;
    const struct route *route;                          /* of a message that takes a link; NULL: something else is reserved */
    bool known, hidden;
    struct perfetto_slices slices;                      /* count 0: none was written yet */
};

enum { RESERVATIONS_BITS = 8 };

static struct reservations *reservations_of(struct cause cause, uint64_t bytes, const struct route *route)
{
    static struct reservations all[1 << RESERVATIONS_BITS];
    uint64_t key = ((uint64_t)cause.kernel << 32 | cause.number) + (uintptr_t)route + bytes;
    struct reservations *those = &all[hash_bits(key, RESERVATIONS_BITS)];
    if (those->known && those->cause.kernel == cause.kernel && those->cause.number == cause.number && those->bytes == bytes
        && those->route == route)
        return those;
    those->cause = cause;
    those->bytes = bytes;
    those->route = route;
    those->known = true;
    those->hidden = actor_of(cause).hidden;
    those->slices.count = 0;
    return those;
}

static void reservations_begin(struct reservations *those)
{
    struct perfetto_value values[4];
    uint32_t count = 0;
    values[count++] = (struct perfetto_value){those->cause.kernel ? ARGUMENT_command : ARGUMENT_request, false, those->cause.number};
    values[count++] = (struct perfetto_value){ARGUMENT_bytes, false, those->bytes};
    if (those->route) {
        values[count++] = (struct perfetto_value){ARGUMENT_from, true, node_text(route_from_rank(those->route))};
        values[count++] = (struct perfetto_value){ARGUMENT_to, true, node_text(route_to_rank(those->route))};
    }
    perfetto_slices_make(&those->slices, &(struct perfetto_event){.name = actor_of(those->cause).name, .value_count = count,
                                                                  .values = values});
}

static void reserved(enum resource_kind kind, uint64_t number, uint64_t bytes, uint64_t asked_ps, uint64_t start_ps,
                     uint64_t end_ps)
{
    if (kind == RESOURCE_NODE)
        return;
    struct lane *lane = &timeline.resources[kind][number];
    const struct route *route = NULL;
    if (kind == RESOURCE_LINK) {
        if (!lane->class)
            lane->class = link_class(number) + 1;
        link_takes(lane->class - 1, start_ps, end_ps, bytes);
        route = observed_message->route;
    }
    struct reservations *those = reservations_of(observed_cause, bytes, route);
    if (those->hidden) {
        timeline.left_out.other_pes++;
        return;
    }
    if (!takes(start_ps, end_ps))
        return;
    lane = lane_at(lane, start_ps, end_ps);
    if (!lane->track) {
        struct lane_place place = resource_place(kind, number);
        lane->track = perfetto_track(place.parent, place.name, place.rank);
        lane->tail = perfetto_tail(lane->track);
    }
    if (!those->slices.count)
        reservations_begin(those);
    struct perfetto_value waited = {ARGUMENT_waited_ps, false, start_ps - asked_ps};
    /* That is behind what several links have in common, which compresses well. */
    perfetto_slice_of(&those->slices, start_ps > asked_ps ? &waited : NULL, lane->tail, start_ps, end_ps);
}

/* ---- requests of the host, at the end of the run. They are few: there is no limit to their number. */

static RARE uint32_t host_lane(uint64_t begin_ps, uint64_t end_ps)
{
    struct lane *lane = lane_at(&timeline.requests, begin_ps, end_ps);
    if (!lane->track)
        lane->track = perfetto_track(timeline.root, "host", RANK_HOST);
    return lane->track;
}

static RARE void launch_flows(const struct launch *launch)
{
    timeline.flows.count = 0;
    for (uint32_t i = 0; i < launch->count; i++) {
        const struct tl *tl = &launch->runs[i].tl;
        if (tl->serial && tl->serial <= timeline.frames.count && frame_of(tl)->is_open)
            *array_add(&timeline.flows) = flow_of(FLOW_KERNEL, tl->serial, 0, 0);
    }
}

static RARE void launch_write(const struct launch *launch, uint64_t end_ps)
{
    static const char *const words[] = {"running", "ok", "failed", "timeout", "deadlock", "skipped"};
    bool runs = launch->status == LAUNCH_RUNNING;
    uint64_t done_ps = runs ? end_ps : launch->done_ps;
    if (launch->status == LAUNCH_SKIPPED || !is_inside(launch->submitted_ps, done_ps))
        return;
    uint32_t track = host_lane(launch->submitted_ps, done_ps);
    struct perfetto_value values[] = {
        {ARGUMENT_request, false, launch->fanout.correlation}, {ARGUMENT_pes, false, launch->count},
        {ARGUMENT_status, true, perfetto_text(words[launch->status])},
    };
    launch_flows(launch);
    struct perfetto_event event = {
        track, perfetto_name(arena_printf("launch %s", launch->program)), launch->submitted_ps,
        perfetto_source(launch->file, launch->line), 3, (uint32_t)timeline.flows.count, false, values, timeline.flows.at,
    };
    perfetto_write(PERFETTO_BEGIN, &event);
    if (!runs)
        perfetto_write(PERFETTO_INSTANT, &(struct perfetto_event){
            track, timeline.answer_name, done_ps, .flow_count = event.flow_count, .flows_end = true, .flows = event.flows});
    perfetto_end(track, done_ps);
}

static RARE void memory_request_write(const struct memory_request *request, uint64_t end_ps)
{
    uint64_t done_ps = request->fanout.answered ? request->done_ps : end_ps;
    if (!is_inside(request->submitted_ps, done_ps))
        return;
    uint32_t track = host_lane(request->submitted_ps, done_ps);
    struct perfetto_value values[] = {{ARGUMENT_request, false, request->fanout.correlation},
                                      {ARGUMENT_bytes, false, request->bytes * request->count}};
    perfetto_slice(&(struct perfetto_event){track, perfetto_name(request->writes ? "write" : "read"), request->submitted_ps,
                                            .value_count = 2, .values = values}, done_ps);
}

/* ---- the file */

RARE void timeline_open(const char *path, const char *title)
{
    static const char *const stages[STAGES] = {
#define STAGE(name, part, engine, busy) #name,
#include "kb/stages.def"
#undef STAGE
    };
    perfetto_open(path);
    timeline.opened = true;
    timeline.root = perfetto_track(0, arena_printf("%s (1 ns here is 1 ps of simulated time)", title), 0);
    timeline.sips = arena_alloc(kb_shape.sips, sizeof *timeline.sips);
    timeline.sip_links = arena_alloc(kb_shape.sips, sizeof *timeline.sip_links);
    timeline.cubes = arena_alloc(cube_count(), sizeof *timeline.cubes);
    timeline.cube_links = arena_alloc(cube_count(), sizeof *timeline.cube_links);
    timeline.memories = arena_alloc(cube_count(), sizeof *timeline.memories);
    timeline.pes = arena_alloc(pe_count(), sizeof *timeline.pes);
    timeline.node_texts = arena_alloc(node_count(), sizeof *timeline.node_texts);
    for (unsigned kind = RESOURCE_NODE + 1; kind < RESOURCE_KINDS; kind++)
        timeline.resources[kind] = arena_alloc(resource_count(kind), sizeof(struct lane));
    for (unsigned stage = 0; stage < STAGES; stage++)
        timeline.names[stage] = perfetto_name(stages[stage]);
    for (unsigned kind = 0; kind < COMMANDS; kind++) {
        timeline.command_names[kind] = perfetto_name(command_words[kind]);
        timeline.wait_names[kind] = perfetto_name(arena_printf("waits for %s", command_words[kind]));
    }
    *array_add(&timeline.actors) = (struct actor){perfetto_name("host"), false};
    timeline.issue_name = perfetto_name("submits");
    timeline.delay_name = perfetto_name("delay");
    timeline.take_name = perfetto_name("takes command");
    timeline.feed_name = perfetto_name("feeds tile");
    timeline.complete_name = perfetto_name("complete");
    timeline.answer_name = perfetto_name("answer");
    for (uint32_t pe = 0; pe < pe_count(); pe++)
        timeline.pes[pe].hidden = !window_has_pe(pe);
    timeline.signals.tell = counter_told;
    observer_watch(&timeline_observer, true);
}

RARE uint32_t timeline_path_track(void)
{
    return timeline.opened ? perfetto_track(timeline.root, "critical path", RANK_PATH) : 0;
}

/* Writes what is under way at the end of the run. */
static RARE void rest_write(uint64_t end_ps)
{
    for (const struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++) {
        for (uint32_t server = 0; pe->servers && server < kb_pe_servers; server++)
            if (pe->servers[server].token)
                service_write(pe->servers[server].token, end_ps);
        for (struct ring_tracks *ring = pe_tracks(pe)->rings; ring; ring = ring->next)
            for (size_t i = 0; i < ring->sent.count; i++)
                sent_write(pe, ring, &ring->sent.at[i], end_ps, NULL);
    }
    for (size_t i = 0; i < timeline.frames.count; i++) {
        struct frame *frame = &timeline.frames.at[i];
        if (!frame->lane)
            continue;
        for (const struct command *command = frame->tl->first; command; command = command->next)
            command_write(command, end_ps, false);
        if (!frame->ended && frame->tl->awaited)
            wait_ends(frame->tl, frame->tl->awaited);
        frame_ends(frame, end_ps);
    }
}

/* Where the slices are that the window leaves out; it is bounded by INT64_MAX, which says nothing unless the run is longer. */
static RARE const char *outside_text(uint64_t end_ps)
{
    const char *from = human_time_exact(window.from_ps), *to = human_time_exact(window.to_ps);
    if (window.to_ps == INT64_MAX && end_ps <= INT64_MAX)
        return arena_printf("before %s", from);
    return window.from_ps ? arena_printf("before %s or after %s", from, to) : arena_printf("after %s", to);
}

/* Says what is not shown, on standard error and in the trace. */
static RARE void left_out_write(uint64_t end_ps)
{
    uint64_t outside = timeline.left_out.outside, others = timeline.left_out.other_pes;
    bool rest = timeline.left_out.rest;
    if (!outside && !others && !rest)
        return;
    struct perfetto_value values[] = {{ARGUMENT_slices_outside, false, outside}, {ARGUMENT_slices_of_other_pes, false, others},
                                      {ARGUMENT_all_from_ps, false, timeline.left_out.rest_ps}};
    perfetto_write(PERFETTO_INSTANT, &(struct perfetto_event){
        timeline.root, perfetto_name("left out"), end_ps, .value_count = rest ? 3 : 2, .values = values});
    message("timeline: left out:");
    if (outside)
        message(" %" PRIu64 " slices %s%s", outside, outside_text(end_ps), others || rest ? ";" : "");
    if (others)
        message(" %" PRIu64 " slices of other PEs than %s%s", others, window.pes, rest ? ";" : "");
    if (rest)
        message(" everything from %" PRIu64 " ps on, after %" PRIu64 " slices; --timeline-slices N shows more",
                timeline.left_out.rest_ps, window.slices);
    message("\n");
}

RARE void timeline_close(uint64_t end_ps)
{
    if (!timeline_observer.watches && !timeline_end_observer.watches)
        return;
    observer_watch(&timeline_observer, false);
    observer_watch(&timeline_end_observer, false);
    if (end_ps < now_ps)
        end_ps = now_ps;
    rest_write(end_ps);
    for (const struct launch *launch = launches; launch; launch = launch->next)
        launch_write(launch, end_ps);
    for (const struct memory_request *request = memory_requests; request; request = request->next)
        memory_request_write(request, end_ps);
    signals_finish(&timeline.signals);
    counters_begin();
    link_counts_write();
    left_out_write(end_ps);
    if (watchdog_ended())
        perfetto_write(PERFETTO_INSTANT, &(struct perfetto_event){
            timeline.root, perfetto_name(arena_printf("interrupted by %s", watchdog_ended())), end_ps, .source = 0});
    perfetto_close();
}

struct observer timeline_observer = {
    .name = "timeline",
    .needs_every_event = true,
    .instant_ends = instant_ends,
    .kernel_begins = kernel_begins,
    .call_begins = call_begins,
    .kernel_will_act = kernel_will_act,
    .kernel_ends = kernel_ends,
    .command_submitted = command_submitted,
    .command_scheduled = command_scheduled,
    .command_completed = command_completed,
    .message_received = message_received,
    .tile_fed = tile_fed,
    .tile_queued = tile_queued,
    .service_starts = service_starts,
    .service_ends = service_ends,
    .reserved = reserved,
};

struct observer timeline_end_observer = {
    .name = "end of a timeline",
    .needs_every_event = true,
    .call_begins = open_call_ends,
    .kernel_ends = open_kernel_ends,
};
