/* activity.c: counts the busy time of engines, memories and links in bins of time, for pictures of a run.
 *
 * A row of bins belongs to a PE; of a large machine to a cube or a SIP, so that the size of a report is bounded. All rows
 * have bins of one width, which doubles whenever the run outgrows the last bin: neighbours are added up, which is exact.
 * What lasts over several bins is split over them, and the parts add up to the whole. */
#include "activity.h"

#include <string.h>

#include "base/dtype.h"
#include "base/rates.h"
#include "common/arena.h"
#include "common/array.h"
#include "host/bounds.h"
#include "launch/launch.h"
#include "machine/engine.h"
#include "machine/pe.h"
#include "machine/route.h"
#include "machine/stats.h"
#include "summary.h"
#include "usage.h"

/* A row is of a PE if there are at most UNITS_MOST of them; else of a cube or of a SIP. */
enum { UNITS_MOST = 1024, LINKS_MOST = 6000, BINS = 400, BINS_OF_FEW = 1600, FEW_UNITS = 256 };
/* A report shows up to FRAMES_MOST frames, and at least two thirds of that if the run has as many bins. */
enum { FRAMES_MOST = 150, TIMELINE_CELLS = 120000 };

/* What a row counts: the busy time of an engine, or one of these. */
enum { SERIES_KERNEL = ENGINES, SERIES_WAITING, SERIES_HBM, SERIES_HBM_BYTES, SERIES_TCM_BYTES, SERIES_SRAM, SERIES_LINK,
       SERIES };

/* FLOP and bytes of HBM of a launch. */
struct work {
    const struct launch *launch;
    uint64_t flop, hbm_bytes;
};

static struct {
    uint64_t **rows[SERIES];                            /* by unit, cube or link; NULL until something is counted */
    uint64_t unit_pes, units;                           /* PEs of a unit */
    uint64_t unit_slices;                               /* HBM slices of a row: one, those of a cube or of a SIP */
    bool few_links;                                     /* links inside cubes have rows as well */
    uint64_t width_ps, bins;
    uint64_t *kernel_since_ps;                          /* by PE; NO_KERNEL: none runs */
    struct ARRAY(struct work) work;                     /* in the order of launches that have begun */
    struct ARRAY(uint32_t) launch_of;                   /* by serial number of the kernel: its place in work */
} activity;

#define NO_KERNEL UINT64_MAX

static uint64_t row_count(unsigned series)
{
    switch (series) {
    case SERIES_LINK: return link_count();
    case SERIES_SRAM: return sram_count();
    case SERIES_HBM: case SERIES_HBM_BYTES: return slice_count() / activity.unit_slices;
    default: return activity.units;
    }
}

/* ---- bins */

static void widen(void)
{
    for (unsigned series = 0; series < SERIES; series++)
        for (uint64_t i = 0; i < row_count(series); i++) {
            uint64_t *row = activity.rows[series][i], half = activity.bins / 2;
            for (uint64_t bin = 0; row && bin < half; bin++)
                row[bin] = row[2 * bin] + row[2 * bin + 1];
            if (row)
                memset(row + half, 0, half * sizeof *row);
        }
    activity.width_ps *= 2;
}

/* The part of an amount that falls before the time t_ps, which is within [start, end]. */
static uint64_t part_before(uint64_t amount, uint64_t start_ps, uint64_t end_ps, uint64_t t_ps)
{
    return (uint64_t)((unsigned __int128)amount * (t_ps - start_ps) / (end_ps - start_ps));
}

/* Counts an amount that is spread evenly over the time from start to end. */
static void count(unsigned series, uint64_t number, uint64_t start_ps, uint64_t end_ps, uint64_t amount)
{
    uint64_t **row = &activity.rows[series][number];
    if (!amount)
        return;
    if (!*row)
        *row = arena_alloc(activity.bins, sizeof **row);
    while (end_ps > activity.width_ps * activity.bins || start_ps >= activity.width_ps * activity.bins)
        widen();
    uint64_t bin = start_ps / activity.width_ps, counted = 0;
    for (uint64_t to_ps; (to_ps = (bin + 1) * activity.width_ps) < end_ps; bin++) {
        uint64_t before = part_before(amount, start_ps, end_ps, to_ps);
        (*row)[bin] += before - counted;
        counted = before;
    }
    (*row)[bin] += amount - counted;
}

static void count_busy(unsigned series, uint64_t number, uint64_t start_ps, uint64_t end_ps)
{
    count(series, number, start_ps, end_ps, end_ps - start_ps);
}

static uint64_t unit_of(const struct pe *pe)
{
    return pe_number(pe) / activity.unit_pes;
}

/* ---- what is watched */

static struct work *work_of_launch(const struct launch *launch)
{
    for (size_t i = activity.work.count; i > 0; i--)
        if (activity.work.at[i - 1].launch == launch)
            return &activity.work.at[i - 1];
    *array_add(&activity.work) = (struct work){.launch = launch};
    return &activity.work.at[activity.work.count - 1];
}

/* That of the launch whose kernel is the cause of something. */
static struct work *work_of(struct cause cause)
{
    return &activity.work.at[activity.launch_of.at[cause.kernel]];
}

static void kernel_begins(const struct tl *tl)
{
    uint32_t number = (uint32_t)(work_of_launch(tl->launch) - activity.work.at);
    while (activity.launch_of.count <= tl->serial)
        *array_add(&activity.launch_of) = 0;
    activity.launch_of.at[tl->serial] = number;
    activity.kernel_since_ps[pe_number(tl->pe)] = now_ps;
}

/* Counts the kernel that runs on a PE, if one does, up to t_ps. */
static void kernel_left(uint64_t pe, uint64_t t_ps)
{
    uint64_t *since_ps = &activity.kernel_since_ps[pe];
    if (*since_ps != NO_KERNEL && *since_ps < t_ps)
        count_busy(SERIES_KERNEL, pe / activity.unit_pes, *since_ps, t_ps);
    *since_ps = NO_KERNEL;
}

static void kernel_ends(const struct tl *tl)
{
    kernel_left(pe_number(tl->pe), now_ps);
}

static void service_ends(const struct token *token)
{
    const struct pe *pe = token->command->pe;
    count_busy(engine_of(token->stage->kind), unit_of(pe), token->started_ps, now_ps);
    count_busy(SERIES_WAITING, unit_of(pe), token->arrival_ps, token->started_ps);
    if (token->stage->kind == STAGE_GEMM)
        work_of(command_cause(token->command))->flop += token->stage->amount;
}

static void command_scheduled(const struct command *command)
{
    count_busy(ENGINE_SCHEDULER, unit_of(command->pe), command->pe->scheduling_since_ps, now_ps);
}

static void hbm_reserved(uint64_t slice, uint64_t bytes, uint64_t start_ps, uint64_t end_ps)
{
    count_busy(SERIES_HBM, slice / activity.unit_slices, start_ps, end_ps);
    count(SERIES_HBM_BYTES, slice / activity.unit_slices, start_ps, end_ps, bytes);
    if (observed_cause.kernel)
        work_of(observed_cause)->hbm_bytes += bytes;
}

static void reserved(enum resource_kind kind, uint64_t number, uint64_t bytes, uint64_t asked_ps, uint64_t start_ps,
                     uint64_t end_ps)
{
    (void)asked_ps;
    switch (kind) {
    case RESOURCE_PSEUDO_CHANNEL:
        hbm_reserved(number / kb_attrs.hbm_ctrl_pcs, bytes, start_ps, end_ps);
        break;
    case RESOURCE_HBM_MODEL:
        hbm_reserved(number, bytes, start_ps, end_ps);
        break;
    case RESOURCE_SRAM_READ:
    case RESOURCE_SRAM_WRITE:
    case RESOURCE_SRAM_MODEL:
        count_busy(SERIES_SRAM, number, start_ps, end_ps);
        break;
    case RESOURCE_TCM_READ:
    case RESOURCE_TCM_WRITE:
        count(SERIES_TCM_BYTES, number / activity.unit_pes, start_ps, end_ps, bytes);
        break;
    case RESOURCE_LINK:
        if (activity.few_links || link_class(number) < LINK_noc)
            count_busy(SERIES_LINK, number, start_ps, end_ps);
        break;
    default:;
    }
}

struct observer activity_observer = {
    .name = "activity",
    .needs_every_event = true,
    .kernel_begins = kernel_begins,
    .kernel_ends = kernel_ends,
    .service_ends = service_ends,
    .command_scheduled = command_scheduled,
    .reserved = reserved,
};

void activity_watch(void)
{
    const struct shape *s = &kb_shape;
    activity.unit_pes = pe_count() <= UNITS_MOST ? 1 : cube_count() <= UNITS_MOST ? s->pes : s->pes * s->cubes;
    activity.units = pe_count() / activity.unit_pes;
    activity.unit_slices = activity.unit_pes == 1 || !s->slices ? 1 : activity.unit_pes / s->pes * s->slices;
    activity.few_links = link_count() <= LINKS_MOST;
    activity.bins = activity.units <= FEW_UNITS ? BINS_OF_FEW : BINS;
    activity.width_ps = 1;
    for (unsigned series = 0; series < SERIES; series++)
        activity.rows[series] = arena_alloc(row_count(series), sizeof *activity.rows[series]);
    activity.kernel_since_ps = arena_alloc(pe_count(), sizeof *activity.kernel_since_ps);
    memset(activity.kernel_since_ps, 0xff, pe_count() * sizeof *activity.kernel_since_ps);
    usage_watch();
    observer_watch(&activity_observer, true);
}

/* ---- JSON: the machine */

/* The router of a cube's node: row and column. */
static void write_position(struct json *json, const struct cube_node *node)
{
    uint32_t router = node->kind == NODE_router ? node->index : kb_cube_nodes[kb_cube_links[node->up].to].index;
    router %= kb_shape.noc_rows * kb_shape.noc_cols;    /* the routers of all planes have the same places */
    json_u64_array(json, "at", (uint64_t[]){router / kb_shape.noc_cols, router % kb_shape.noc_cols}, 2);
}

static bool has_speed(enum link_speed speed)
{
    for (uint32_t i = 0; i < kb_shape.cube_links; i++)
        if (kb_cube_links[i].speed == speed)
            return true;
    return false;
}

/* What is closed to rings, and the ports that links between chips join: SIP, cube and side of both ends. */
static void write_long_links(struct json *json)
{
    const struct shape *s = &kb_shape;
    const struct { const char *name; bool closed; } rings[] = {
        {"cube_rows", s->closed_rows}, {"cube_cols", s->closed_cols},
        {"router_rows", has_speed(SPEED_row_wrap)}, {"router_cols", has_speed(SPEED_col_wrap)}};
    json_array(json, "closed");
    for (size_t i = 0; i < COUNT_OF(rings); i++)
        if (rings[i].closed)
            json_string(json, NULL, rings[i].name);
    json_array_end(json);
    json_array(json, "chips");
    for (uint32_t i = 0; s->chips && i < s->chips->count; i++) {
        const struct chip_end *a = &s->chips->links[i].end[0], *b = &s->chips->links[i].end[1];
        json_u64_array(json, NULL, (uint64_t[]){a->sip, a->cube, a->side, b->sip, b->cube, b->side}, 6);
    }
    json_array_end(json);
}

/* The nodes of a cube that are at a router; and the cubes, with the side of the port, that have a link to their io_cpu. */
static void write_nodes(struct json *json)
{
    static const char *const kinds[NODE_KINDS] = {
#define NODE(kind) [NODE_##kind] = #kind,
#include "kb/kinds.def"
    };
    json_array(json, "nodes");
    for (uint32_t i = 0; i < kb_shape.cube_nodes; i++) {
        const struct cube_node *node = &kb_cube_nodes[i];
        bool has_place = node->kind == NODE_router || node->up != NO_LINK;
        if (!has_place)
            continue;
        json_object(json, NULL);
        json_u64(json, "node", i);
        json_string(json, "kind", kinds[node->kind]);
        json_u64(json, "index", node->index);
        write_position(json, node);
        json_object_end(json);
    }
    json_array_end(json);
    json_array(json, "io");
    for (uint32_t i = 0; i < kb_shape.attachments; i++)
        json_u64_array(json, NULL, (uint64_t[]){kb_attachments[i].cube, kb_attachments[i].side}, 2);
    json_array_end(json);
    write_long_links(json);
}

static void write_rates(struct json *json)
{
    json_object(json, "peak_flops");
    for (unsigned dtype = 0; dtype < DTYPES; dtype++)
        if (kb_gemm_k_per_cycle[dtype])
            json_double(json, dtype_words[dtype], peak_flops_per_pe(dtype) * (double)pe_count());
    json_object_end(json);
    json_double(json, "hbm_bps", peak_hbm_bps_per_slice() * (double)slice_count());
    json_object(json, "link_bps");
    for (unsigned class = 0; class < LINK_CLASSES; class++)
        if (links_exist(class))
            json_u64(json, link_class_names[class], link_bw_bps(class));
    json_object_end(json);
    json_object(json, "servers");
    for (unsigned engine = 0; engine < ENGINES; engine++)
        json_u64(json, engine_names[engine], engine_servers(engine));
    json_u64(json, "hbm", kb_attrs.hbm_ctrl_pcs);
    json_object_end(json);
}

static void write_machine(struct json *json)
{
    const struct shape *s = &kb_shape;
    json_object(json, "machine");
    json_string(json, "name", kb_machine_name);
    json_string(json, "topology", kb_topology_hash);
    json_string(json, "kbgen", kb_version);
    json_u64(json, "sips", s->sips);
    json_u64_array(json, "cubes", (uint64_t[]){s->cube_rows, s->cube_cols}, 2);
    json_u64_array(json, "routers", (uint64_t[]){s->noc_rows, s->noc_cols}, 2);
    json_u64(json, "cube_pes", s->pes);
    json_u64(json, "cube_slices", s->slices);
    json_u64_array(json, "first_ranks", (uint64_t[]){SYSTEM_NODES, SIP_NODES}, 2);
    json_u64(json, "cube_nodes", s->cube_nodes);
    write_nodes(json);
    write_rates(json);
    json_object_end(json);
}

/* ---- JSON: series of frames
 *
 * A row is a text with one character per frame: a level from 0 to 63, of 63 for the full scale. Zeros at the end are
 * left out, and equal rows are written once. */

static const char levels[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

struct texts {
    struct ARRAY(char *) row;
    struct ARRAY(uint64_t) of;                          /* the row of each unit */
};

static void texts_add(struct texts *texts, char *text)
{
    size_t at = 0;
    while (at < texts->row.count && strcmp(texts->row.at[at], text))
        at++;
    if (at == texts->row.count)
        *array_add(&texts->row) = text;
    *array_add(&texts->of) = at;
}

static void texts_write(struct json *json, struct texts *texts)
{
    json_array(json, "rows");
    for (size_t i = 0; i < texts->row.count; i++)
        json_string(json, NULL, texts->row.at[i]);
    json_array_end(json);
    json_array(json, "row_of");
    for (size_t i = 0; i < texts->of.count; i++)
        json_u64(json, NULL, texts->of.at[i]);
    json_array_end(json);
    array_free(&texts->row);
    array_free(&texts->of);
}

/* What a row counted in one frame of `bins` bins. */
static uint64_t frame_amount(const uint64_t *row, uint64_t frame, uint64_t bins)
{
    uint64_t amount = 0;
    for (uint64_t bin = frame * bins; row && bin < (frame + 1) * bins && bin < activity.bins; bin++)
        amount += row[bin];
    return amount;
}

struct frames {
    uint64_t count, bins;                               /* bins of a frame */
};

static char *row_text(const uint64_t *row, struct frames frames, double full)
{
    char *text = arena_alloc(frames.count + 1, 1);
    uint64_t length = 0;
    for (uint64_t i = 0; i < frames.count; i++) {
        double share = (double)frame_amount(row, i, frames.bins) / full;
        unsigned level = share > 0 ? (unsigned)(63 * (share < 1 ? share : 1) + 0.5) : 0;
        text[i] = levels[share > 0 && !level ? 1 : level];
        length = share > 0 ? i + 1 : length;
    }
    text[length] = '\0';
    return text;
}

static double largest_amount(unsigned series, struct frames frames)
{
    uint64_t largest = 1;
    for (uint64_t i = 0; i < row_count(series); i++)
        for (uint64_t frame = 0; activity.rows[series][i] && frame < frames.count; frame++) {
            uint64_t amount = frame_amount(activity.rows[series][i], frame, frames.bins);
            largest = amount > largest ? amount : largest;
        }
    return (double)largest;
}

static bool is_row_shown(unsigned series, uint64_t number)
{
    return series != SERIES_LINK || activity.rows[series][number];
}

/* `full` is the amount of a frame at full scale; 0: the largest that there is. `scale` is what one unit of the amount
 * means in the unit of the series. */
static void write_series(struct json *json, const char *name, unsigned series, struct frames frames, double full,
                         double scale)
{
    struct texts texts = {0};
    bool used = false;
    for (uint64_t i = 0; i < row_count(series); i++)
        used |= activity.rows[series][i] != NULL;
    if (!used)
        return;
    full = full > 0 ? full : largest_amount(series, frames);
    json_object(json, name);
    json_double(json, "full", full * scale);
    for (uint64_t i = 0; i < row_count(series); i++)
        if (is_row_shown(series, i))
            texts_add(&texts, row_text(activity.rows[series][i], frames, full));
    texts_write(json, &texts);
    json_object_end(json);
}

static void write_frames(struct json *json, struct frames frames)
{
    double width_ps = (double)(activity.width_ps * frames.bins), pes = (double)activity.unit_pes * width_ps;
    double slices = (double)activity.unit_slices * width_ps;
    json_object(json, "frames");
    json_u64(json, "width_ps", activity.width_ps * frames.bins);
    json_u64(json, "count", frames.count);
    json_object(json, "series");
    for (unsigned engine = 0; engine < ENGINES; engine++)
        write_series(json, engine_names[engine], engine, frames, pes * (double)engine_servers(engine),
                     1 / (pes * (double)engine_servers(engine)));
    write_series(json, "kernel", SERIES_KERNEL, frames, pes, 1 / pes);
    write_series(json, "waiting", SERIES_WAITING, frames, 0, 1 / pes);
    write_series(json, "hbm", SERIES_HBM, frames, slices * (double)kb_attrs.hbm_ctrl_pcs,
                 1 / (slices * (double)kb_attrs.hbm_ctrl_pcs));
    write_series(json, "hbm bytes", SERIES_HBM_BYTES, frames, 0, 1e12 / slices);
    write_series(json, "tcm bytes", SERIES_TCM_BYTES, frames, 0, 1e12 / pes);
    write_series(json, "sram", SERIES_SRAM, frames, 2 * width_ps, 1 / (2 * width_ps));
    write_series(json, "links", SERIES_LINK, frames, width_ps, 1 / width_ps);
    json_object_end(json);
    json_object_end(json);
}

/* ---- JSON: the timeline: what each unit did in each column */

/* The engines in the order in which they claim a column that they are busy for half of. */
static const struct claim {
    unsigned series;
    char letter;
} claims[] = {
    {ENGINE_GEMM, 'g'},      {ENGINE_MATH, 'm'},     {ENGINE_COMM, 'c'},
    {ENGINE_DMA_WRITE, 'w'}, {ENGINE_DMA_READ, 'r'}, {ENGINE_FETCH_STORE, 'f'},
};

static double busy_share(unsigned series, uint64_t unit, uint64_t column, uint64_t bins)
{
    const uint64_t *row = activity.rows[series][unit];
    uint64_t servers = series < ENGINES ? engine_servers(series) : 1;
    return (double)frame_amount(row, column, bins)
           / ((double)(activity.width_ps * bins * activity.unit_pes) * (double)servers);
}

/* The letter of the first engine that is busy for half of a column; else of the busiest one, if it is for a twentieth;
 * else '.' if a kernel runs, or ' '. */
static char letter_of(uint64_t unit, uint64_t column, uint64_t bins)
{
    const struct claim *busiest = NULL;
    double most = 0.05;
    for (size_t i = 0; i < COUNT_OF(claims); i++) {
        double share = busy_share(claims[i].series, unit, column, bins);
        if (share >= 0.5)
            return claims[i].letter;
        if (share > most)
            most = share, busiest = &claims[i];
    }
    return busiest ? busiest->letter : busy_share(SERIES_KERNEL, unit, column, bins) > 0 ? '.' : ' ';
}

static void write_timeline(struct json *json, struct frames columns)
{
    struct texts texts = {0};
    for (uint64_t unit = 0; unit < activity.units; unit++) {
        char *text = arena_alloc(columns.count + 1, 1);
        for (uint64_t column = 0; column < columns.count; column++)
            text[column] = letter_of(unit, column, columns.bins);
        for (uint64_t end = columns.count; end > 0 && text[end - 1] == ' '; end--)
            text[end - 1] = '\0';
        texts_add(&texts, text);
    }
    json_object(json, "timeline");
    json_u64(json, "width_ps", activity.width_ps * columns.bins);
    json_u64(json, "count", columns.count);
    texts_write(json, &texts);
    json_object_end(json);
}

/* The columns of a run whose number is at most `most`. */
static struct frames frames_of(uint64_t end_ps, uint64_t most)
{
    uint64_t bins = ceil_div(end_ps, activity.width_ps), group = ceil_div(bins, most);
    group = group ? group : 1;
    return (struct frames){ceil_div(bins, group), group};
}

/* ---- JSON: all of it */

static void write_works(struct json *json)
{
    json_array(json, "launches");
    for (const struct launch *launch = launches; launch; launch = launch->next) {
        struct work none = {0}, *work = &none;
        for (size_t i = 0; i < activity.work.count; i++)
            if (activity.work.at[i].launch == launch)
                work = &activity.work.at[i];
        json_object(json, NULL);
        json_u64(json, "flop", work->flop);
        json_u64(json, "hbm_bytes", work->hbm_bytes);
        json_object_end(json);
    }
    json_array_end(json);
}

/* Links that have a row of frames; nodes if there are not too many. */
static bool is_shown(enum resource_kind kind, uint64_t number)
{
    return kind == RESOURCE_LINK ? is_row_shown(SERIES_LINK, number) : activity.few_links;
}

void activity_write(struct json *json, uint64_t end_ps)
{
    if (!activity_observer.watches)
        return;
    for (uint64_t pe = 0; pe < pe_count(); pe++)
        kernel_left(pe, end_ps);                        /* of a run that was ended early */
    write_machine(json);
    json_object(json, "activity");
    json_string(json, "of", activity.unit_pes == 1 ? "pe" : activity.units == cube_count() ? "cube" : "sip");
    write_works(json);
    usage_write_columns(json, is_shown);
    write_frames(json, frames_of(end_ps, FRAMES_MOST));
    write_timeline(json, frames_of(end_ps, ceil_div(TIMELINE_CELLS, activity.units)));
    json_object_end(json);
}
