/* summary.c: what a run did: time, work, how busy each kind of resource was, what bounds it, whether its results are
 * right. */
#include "summary.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/human.h"
#include "base/rates.h"
#include "common/arena.h"
#include "datapass/blas.h"
#include "datapass/exec.h"
#include "demand.h"
#include "device/device.h"
#include "host/bench.h"
#include "host/bounds.h"
#include "host/figure.h"
#include "host/note.h"
#include "host/roofline.h"
#include "kb/arith.h"
#include "launch/host_request.h"
#include "launch/launch.h"
#include "launch/watchdog.h"
#include "machine/dma.h"
#include "machine/emitted.h"
#include "machine/fabric.h"
#include "machine/pe.h"
#include "machine/stats.h"
#include "machine/tiling.h"
#include "ledger.h"
#include "profile.h"
#include "races/race.h"
#include "reference/expect.h"
#include "reference/reference.h"
#include "result.h"
#include "sim/event.h"
#include "sim/loop.h"
#include "sim/observer.h"

static const char *const space_names[SPACES] = {[SPACE_HBM] = "hbm", [SPACE_TCM] = "tcm", [SPACE_SRAM] = "sram"};
static const char *const link_names[LINK_CLASSES] = {
#define LINK(name, bw, latency) #name " links",
#define OWN_LINK(name) #name " links",
#include "kb/links.def"
};

/* ---- how busy each kind of resource was */

struct resource {
    const char *name;                                   /* "pe_gemm", "hbm", "noc links"; NULL: the machine has none */
    uint64_t busy_ps, servers;                          /* sum over its servers */
    uint64_t busiest_ps, busiest_servers;               /* of the busiest slice or link; of all servers if not known */
    uint64_t wait_ps;                                   /* sum over its requests, from the request to the start */
};

/* Engines, pe_gemm and pe_math together, memories, links. */
enum { RESOURCES = ENGINES + 1 + 2 * SPACES - 1 + LINK_CLASSES };

const char *const engine_names[ENGINES] = {
#define ENGINE(name, word, servers) word,
#include "kb/engines.def"
#undef ENGINE
};

static struct resource pooled(const char *name, uint64_t busy_ps, uint64_t wait_ps, uint64_t servers)
{
    return (struct resource){name, busy_ps, servers, busy_ps, servers, wait_ps};
}

uint64_t engine_servers(enum engine engine)
{
    const uint64_t per_pe[ENGINES] = {
#define ENGINE(name, word, servers) servers,
#include "kb/engines.def"
#undef ENGINE
    };
    return per_pe[engine];
}

static struct resource engine(enum engine engine)
{
    return pooled(engine_names[engine], stats.busy_ps[engine], stats.queue_wait_ps[engine],
                  pe_count() * engine_servers(engine));
}

/* pe_gemm and pe_math as one server; shown if they are one and both worked. */
static struct resource accelerator(void)
{
    uint64_t gemm_ps = stats.busy_ps[ENGINE_GEMM], math_ps = stats.busy_ps[ENGINE_MATH];
    uint64_t wait_ps = stats.queue_wait_ps[ENGINE_GEMM] + stats.queue_wait_ps[ENGINE_MATH];
    bool both = kb_shape.accel_shared && gemm_ps && math_ps;
    return pooled("pe_gemm+math", both ? gemm_ps + math_ps : 0, both ? wait_ps : 0, pe_count());
}

static struct resource hbm(void)
{
    struct resource all = pooled("hbm", stats.read_busy_ps[SPACE_HBM], stats.read_wait_ps[SPACE_HBM],
                                 slice_count() * kb_attrs.hbm_ctrl_pcs);
    all.busiest_ps = 0;
    all.busiest_servers = kb_attrs.hbm_ctrl_pcs;
    for (uint64_t i = 0; i < slice_count(); i++)
        if (kb_hbm[i].busy_ps > all.busiest_ps)
            all.busiest_ps = kb_hbm[i].busy_ps;
    return all;
}

static struct resource reads(const char *name, enum space space, uint64_t memories)
{
    return pooled(name, stats.read_busy_ps[space], stats.read_wait_ps[space], memories);
}

static struct resource writes(const char *name, enum space space, uint64_t memories)
{
    return pooled(name, stats.write_busy_ps[space], stats.write_wait_ps[space], memories);
}

static struct resource links(enum link_class class)
{
    const char *name = links_exist(class) ? link_names[class] : NULL;
    return (struct resource){name, stats.link_busy_ps[class], peak_links(class), link_busiest_ps(class), 1,
                             stats.link_wait_ps[class]};
}

static void resources_collect(struct resource resources[RESOURCES])
{
    struct resource *next = resources;
    for (unsigned i = 0; i < ENGINES; i++)
        *next++ = engine(i);
    *next++ = accelerator();
    *next++ = hbm();
    *next++ = reads("tcm read", SPACE_TCM, pe_count());
    *next++ = writes("tcm write", SPACE_TCM, pe_count());
    *next++ = reads("sram read", SPACE_SRAM, sram_count());
    *next++ = writes("sram write", SPACE_SRAM, sram_count());
    for (unsigned class = 0; class < LINK_CLASSES; class++)
        *next++ = links(class);
}

/* The span: from the first kernel's start to the last one's end; 0 if none has run. */
uint64_t summary_span_ps(void)
{
    uint64_t start = UINT64_MAX, end = 0;
    for (const struct launch *launch = launches; launch; launch = launch->next)
        for (uint32_t i = 0; i < launch->count; i++) {
            const struct kernel_run *run = &launch->runs[i];
            uint64_t end_ps = run->ended ? run->end_ps : now_ps;
            if (!run->started)
                continue;
            start = run->start_ps < start ? run->start_ps : start;
            end = end_ps > end ? end_ps : end;
        }
    return end > start ? end - start : 0;
}

/* A busy time as a share of the span times the servers. */
static double share(uint64_t busy_ps, uint64_t servers)
{
    double all = (double)summary_span_ps() * (double)servers;
    return all > 0 ? (double)busy_ps / all : 0;
}

static double mean_share(const struct resource *resource)
{
    return share(resource->busy_ps, resource->servers);
}

static double busiest_share(const struct resource *resource)
{
    return share(resource->busiest_ps, resource->busiest_servers);
}

/* ---- requests of the host between kernels
 *
 * What is busy or waits for such requests does not do so for kernels. All busy times and waits are saved when the first of
 * them begins, and restored whenever one ends, until a kernel begins. */

static struct {
    bool valid;
    uint64_t kernels;                                   /* that had begun */
    struct stats stats;
    uint64_t *links_busy_ps;                            /* of the arena, as `slices` */
    struct hbm_slice *slices;
} saved;

static uint64_t requests_under_way, kernels_begun, kernels_ended;   /* kernels: of this run, on any PE */

static void kernel_begins(const struct tl *tl)
{
    (void)tl;
    kernels_begun++;
}

static void kernel_ends(const struct tl *tl)
{
    (void)tl;
    kernels_ended++;
}

static void save(void)
{
    transfers_count_ahead(-1);
    saved.valid = true;
    saved.kernels = kernels_begun;
    saved.stats = stats;
    if (!saved.slices) {
        saved.links_busy_ps = arena_alloc(link_count(), sizeof *saved.links_busy_ps);
        saved.slices = arena_alloc(slice_count(), sizeof *saved.slices);
    }
    for (uint64_t i = 0; i < link_count(); i++)
        saved.links_busy_ps[i] = kb_links[i].busy_ps;
    memcpy(saved.slices, kb_hbm, slice_count() * sizeof *kb_hbm);
    transfers_count_ahead(1);
}

/* Bytes that were moved stay counted, and engines: those of a PE that has failed work for its kernel to the end. */
static void restore(void)
{
    transfers_count_ahead(-1);
#define RESTORE(member) memcpy(&stats.member, &saved.stats.member, sizeof stats.member)
    RESTORE(read_busy_ps);
    RESTORE(read_wait_ps);
    RESTORE(write_busy_ps);
    RESTORE(write_wait_ps);
    RESTORE(link_busy_ps);
    RESTORE(link_wait_ps);
    RESTORE(node_wait_ps);
#undef RESTORE
    for (uint64_t i = 0; i < link_count(); i++)
        kb_links[i].busy_ps = saved.links_busy_ps[i];
    for (uint32_t i = 0; i < slice_count(); i++) {      /* but not how the slice keeps the state of its channels */
        kb_hbm[i].busy_ps = saved.slices[i].busy_ps;
        kb_hbm[i].wait_ps = saved.slices[i].wait_ps;
    }
    transfers_count_ahead(1);
}

static void host_request_begins(const struct memory_request *request)
{
    (void)request;
    saved.valid &= requests_under_way > 0 && saved.kernels == kernels_begun;
    requests_under_way++;
    if (!saved.valid && kernels_begun == kernels_ended)
        save();
}

static void host_request_ends(const struct memory_request *request)
{
    (void)request;
    requests_under_way--;
    if (saved.valid && saved.kernels == kernels_begun)
        restore();
}

void report_reset(void)
{
    memset(&saved, 0, sizeof saved);
    requests_under_way = kernels_begun = kernels_ended = 0;
    demand_reset();
    command_rows_reset();
}

struct observer summary_observer = {
    .name = "summary",
    .kernel_begins = kernel_begins,
    .kernel_ends = kernel_ends,
    .host_request_begins = host_request_begins,
    .host_request_ends = host_request_ends,
};

uint64_t summary_peak_ppm(void)
{
    double peak_ps = 0;
    for (unsigned dtype = 0; dtype < DTYPES; dtype++)
        if (demand.gemm_ops[dtype] > 0)
            peak_ps += demand.gemm_ops[dtype] / (peak_flops_per_pe(dtype) * (double)pe_count()) * 1e12;
    return summary_span_ps() ? (uint64_t)(peak_ps / (double)summary_span_ps() * 1e6) : 0;
}

/* ---- text */

static void print_launch(FILE *out, const struct launch *launch)
{
    uint64_t exec_ps = 0, dma_ps = 0, compute_ps = 0;
    for (uint32_t i = 0; i < launch->count; i++) {
        const struct kernel_run *run = &launch->runs[i];
        exec_ps = kb_max(exec_ps, run->end_ps - run->start_ps);
        dma_ps = kb_max(dma_ps, run->dma_ps);
        compute_ps = kb_max(compute_ps, run->compute_ps);
    }
    fprintf(out, "launch       %s on %u PEs: %s to %s; longest kernel %s, DMA %s, compute %s\n", launch->program,
            (unsigned)launch->count, human_time(launch->submitted_ps), human_time(launch->done_ps),
            human_time(exec_ps), human_time(dma_ps), human_time(compute_ps));
}

/* A launch that failed, or that had not ended when another one failed. */
static void print_bad_launch(FILE *out, const struct launch *launch)
{
    if (launch->status == LAUNCH_SKIPPED)
        fprintf(out, "SKIPPED      %s\n", launch->program);
    else if (launch->status == LAUNCH_RUNNING)
        fprintf(out, "UNFINISHED   %s on %u PEs, from %s on\n", launch->program, (unsigned)launch->count,
                human_time(launch->submitted_ps));
    else
        fprintf(out, "FAILED       %s on %u PEs: %s to %s; %s\n", launch->program, (unsigned)launch->count,
                human_time(launch->submitted_ps), human_time(launch->done_ps), launch_outcome(launch));
}

static void print_launches(FILE *out)
{
    for (const struct launch *launch = launches; launch; launch = launch->next)
        (launch->status == LAUNCH_OK ? print_launch : print_bad_launch)(out, launch);
}

static void print_requests(FILE *out)
{
    for (const struct memory_request *request = memory_requests; request; request = request->next) {
        const struct failure *failure = &request->failure;
        fprintf(out, "%-12s %s each at %u addresses: %s to %s", request->writes ? "write" : "read",
                human_bytes(request->bytes), (unsigned)request->count, human_time(request->submitted_ps),
                human_time(request->done_ps));
        if (failure->set)
            fprintf(out, "; FAILED with %s at %s", fault_names[failure->code], place_name(failure->node));
        fputc('\n', out);
    }
}

/* Against the peak of all PEs. */
static void print_work(FILE *out)
{
    const double *work = demand.gemm_ops, seconds = (double)summary_span_ps() * 1e-12;
    for (unsigned dtype = 0; dtype < DTYPES; dtype++) {
        double peak = peak_flops_per_pe(dtype) * (double)pe_count();
        const char *unit = dtype_is_float(dtype) ? "FLOP" : "OP", *rate = dtype_is_float(dtype) ? "FLOP/s" : "OP/s";
        if (work[dtype] > 0 && seconds > 0)
            fprintf(out, "work         %s of %s: %s of %s at peak, %.1f %%\n", human_count(work[dtype], unit),
                    dtype_words[dtype], human_count(work[dtype] / seconds, rate), human_count(peak, rate),
                    100 * work[dtype] / seconds / peak);
    }
}

static void print_util(FILE *out, const struct resource *resources)
{
    for (const struct resource *r = resources; r < resources + RESOURCES; r++) {
        if (r->busy_ps == 0)
            continue;
        fprintf(out, "  %-14s %5.1f %%", r->name, 100 * mean_share(r));
        if (r->busiest_servers != r->servers)
            fprintf(out, ", the busiest %5.1f %%", 100 * busiest_share(r));
        fputc('\n', out);
    }
}

static void print_bytes(FILE *out)
{
    fprintf(out, "moved\n");
    for (unsigned space = 0; space < SPACES; space++)
        if (stats.read_bytes[space] || stats.write_bytes[space])
            fprintf(out, "  %-14s %s read, %s written\n", space_names[space], human_bytes(stats.read_bytes[space]),
                    human_bytes(stats.write_bytes[space]));
    for (unsigned class = 0; class < LINK_CLASSES; class++)
        if (stats.link_bytes[class])
            fprintf(out, "  %-14s %s\n", link_names[class], human_bytes(stats.link_bytes[class]));
}

/* Where data messages waited longest in all. */
static const char *longest_wait(void)
{
    const char *name = "nodes";
    uint64_t longest_ps = stats.node_wait_ps;
    for (unsigned i = 0; i < LINK_CLASSES; i++)
        if (stats.link_wait_ps[i] > longest_ps)
            longest_ps = stats.link_wait_ps[i], name = link_names[i];
    for (unsigned i = 0; i < SPACES; i++)
        if (stats.read_wait_ps[i] + stats.write_wait_ps[i] > longest_ps)
            longest_ps = stats.read_wait_ps[i] + stats.write_wait_ps[i], name = space_names[i];
    return name;
}

static void print_share(FILE *out, const struct resource *r)
{
    fprintf(out, "%s, %.1f %% busy%s", r->name, 100 * busiest_share(r),
            r->busiest_servers != r->servers ? " at the busiest" : "");
}

/* What bounds a run. A DMA engine is held while its transfer is under way, so a busy one only says that transfers take
 * the time: then there is also what they wait for, and the busiest memory or link. */
enum reason { REASON_BUSY, REASON_TRANSFERS, REASON_LATENCY };

struct bottleneck {
    enum reason reason;
    const struct resource *top, *shared;                /* the busiest; the busiest of memories and links */
};

static struct bottleneck bottleneck_of(const struct resource *resources)
{
    const struct resource *top = resources, *shared = resources + ENGINES + 1;
    for (const struct resource *r = resources; r < resources + RESOURCES; r++) {
        if (busiest_share(r) > busiest_share(top))
            top = r;
        if (r > shared && busiest_share(r) > busiest_share(shared))
            shared = r;
    }
    bool dma = top == resources + ENGINE_DMA_READ || top == resources + ENGINE_DMA_WRITE;
    return (struct bottleneck){busiest_share(top) < 0.5 ? REASON_LATENCY : dma ? REASON_TRANSFERS : REASON_BUSY, top, shared};
}

static void print_bound(FILE *out, const struct resource *resources)
{
    struct bottleneck bottleneck = bottleneck_of(resources);
    fprintf(out, "bound by     ");
    if (bottleneck.reason == REASON_LATENCY)
        fprintf(out, "latency: nothing is busy for half of the time; the most is ");
    print_share(out, bottleneck.top);
    if (bottleneck.reason == REASON_TRANSFERS) {
        fprintf(out, " with transfers, which queue longest for %s; then ", longest_wait());
        print_share(out, bottleneck.shared);
    }
    fputc('\n', out);
}

/* ---- verification */

/* The tile of C, or of the result of a math composite. Returns false if the op has no tiles. */
static bool difference_tile(const struct difference *d, uint64_t tile[2])
{
    bool gemm = d->op->kind == OPKIND_gemm;
    uint64_t tile_m = gemm ? d->op->gemm.tile_m : d->op->math.tile_m;
    uint64_t tile_n = gemm ? d->op->gemm.tile_n : d->op->math.tile_n;
    if (!tile_m || !tile_n)
        return false;
    tile[0] = d->index[0] / tile_m;
    tile[1] = d->index[1] / tile_n;
    return true;
}

static uint32_t difference_rank(const struct difference *d)
{
    return d->op->kind == OPKIND_gemm ? 2 : d->op->math.to.rank;
}

void summary_print_difference(FILE *out, const struct difference *d)
{
    uint64_t tile[2];
    fprintf(out, "WRONG        operation %" PRIu64 ", %s of kernel %s, called at %s:%u\n  ", d->op->id, d->op->name,
            d->op->kernel, d->op->file, (unsigned)d->op->line);
    if (difference_tile(d, tile))
        fprintf(out, "tile (%" PRIu64 ", %" PRIu64 "), ", tile[0], tile[1]);
    fprintf(out, "element [");
    for (uint32_t axis = 0; axis < difference_rank(d); axis++)
        fprintf(out, "%s%" PRIu64, axis ? ", " : "", d->index[axis]);
    fprintf(out, "]: got %.9g, expected %.9g, error %.3g, allowed %.3g\n", d->got, d->expected,
            fabs(d->got - d->expected), d->allowed);
}

void summary_print(FILE *out, const struct host_times *host)
{
    struct resource resources[RESOURCES];
    resources_collect(resources);
    fprintf(out, "%s on %s: %s simulated\n", bench_current->name, kb_machine_name, human_time(now_ps));
    print_requests(out);
    print_launches(out);
    if (summary_span_ps() && result_good()) {
        print_work(out);
        fprintf(out, "busy, of the time from the first kernel's start to the last one's end\n");
        print_util(out, resources);
        print_bytes(out);
        print_bound(out, resources);
    }
    notes_print(out);
    figures_print(out);
    rooflines_print(out);
    verifications_print(out);
    if (!verifications && oplog_on && result_good() && !sim_failed() && !watchdog_ended())
        fprintf(out, "not checked  no tensor: the bench expects nothing\n");
    if (exec_difference.op)
        summary_print_difference(out, &exec_difference);
    else if (exec_check && exec_stats.computes)
        fprintf(out, "verified     every operation that computes, of %" PRIu64 "\n", exec_stats.computes);
    else if (exec_check)
        fprintf(out, "not checked  no operation: none of %" PRIu64 " computes\n", exec_stats.ops);
    if (kept_out.commands)
        fprintf(out, "kept out     %" PRIu64 " command%s of the op log, the first by %s at %s:%" PRIu32 "; a result of "
                "theirs\n             was not computed, and what was verified does not have it\n", kept_out.commands,
                kept_out.commands == 1 ? "" : "s", kept_out.kernel, kept_out.first.file, kept_out.first.line);
    races_print(out);
    if (summary_span_ps() && result_good())
        ledger_print(out, "--json");
    double rate = host->simulation > 0 ? (double)event_count / host->simulation : 0;
    fprintf(out,
            "host         %s: set-up %s, simulation %s (%" PRIu64 " events, %s), data pass %s, reference %s\n",
            human_seconds(host->total), human_seconds(host->setup), human_seconds(host->simulation), event_count,
            human_count(rate, "/s"), human_seconds(exec_stats.seconds), human_seconds(reference_seconds));
}

/* ---- JSON */

static void write_difference(struct json *json, const struct difference *d)
{
    uint64_t tile[2];
    json_object(json, "first_wrong_op");
    json_u64(json, "op", d->op->id);
    json_string(json, "name", d->op->name);
    json_string(json, "kernel", d->op->kernel);
    json_string(json, "file", d->op->file);
    json_u64(json, "line", d->op->line);
    if (difference_tile(d, tile)) {
        json_u64(json, "tile_m", tile[0]);
        json_u64(json, "tile_n", tile[1]);
    }
    json_array(json, "index");
    for (uint32_t axis = 0; axis < difference_rank(d); axis++)
        json_u64(json, NULL, d->index[axis]);
    json_array_end(json);
    json_double(json, "got", d->got);
    json_double(json, "expected", d->expected);
    json_object_end(json);
}

static void write_util(struct json *json)
{
    struct resource resources[RESOURCES];
    resources_collect(resources);
    json_object(json, "util");
    json_u64(json, "span_ps", summary_span_ps());
    json_u64(json, "gemm_flop", stats.gemm_flops);
    for (const struct resource *r = resources; r < resources + RESOURCES; r++) {
        if (!r->name)
            continue;
        json_object(json, r->name);
        json_u64(json, "busy_ps", r->busy_ps);
        json_u64(json, "servers", r->servers);
        json_u64(json, "busiest_ps", r->busiest_ps);
        json_u64(json, "busiest_servers", r->busiest_servers);
        json_u64(json, "wait_ps", r->wait_ps);
        json_object_end(json);
    }
    json_object(json, "nodes");
    json_u64(json, "wait_ps", stats.node_wait_ps);
    json_object_end(json);
    json_object_end(json);
}

static void write_share(struct json *json, const struct resource *r)
{
    json_string(json, "resource", r->name);
    json_u64(json, "busy_permille",
             (uint64_t)((unsigned __int128)r->busiest_ps * 1000 / product(summary_span_ps(), r->busiest_servers)));
}

static void write_bound(struct json *json)
{
    static const char *const reasons[] = {
        [REASON_BUSY] = "busy", [REASON_TRANSFERS] = "transfers", [REASON_LATENCY] = "latency"};
    struct resource resources[RESOURCES];
    resources_collect(resources);
    struct bottleneck bottleneck = bottleneck_of(resources);
    json_object(json, "bound_by");
    json_string(json, "reason", reasons[bottleneck.reason]);
    write_share(json, bottleneck.top);
    if (bottleneck.reason == REASON_TRANSFERS) {
        json_string(json, "queue", longest_wait());
        json_object(json, "then");
        write_share(json, bottleneck.shared);
        json_object_end(json);
    }
    json_object_end(json);
}

/* A row for each HBM slice that was used. */
static void write_slices(struct json *json)
{
    json_array(json, "hbm_slices");
    for (uint32_t i = 0; i < slice_count(); i++) {
        if (!kb_hbm[i].busy_ps && !kb_hbm[i].wait_ps)
            continue;
        json_object(json, NULL);
        json_string(json, "id", place_name(slice_place(i)));
        json_u64(json, "busy_ps", kb_hbm[i].busy_ps);
        json_u64(json, "wait_ps", kb_hbm[i].wait_ps);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_moved(struct json *json, const char *key, uint64_t read_bytes, uint64_t write_bytes)
{
    json_object(json, key);
    json_u64(json, "read", read_bytes);
    json_u64(json, "write", write_bytes);
    json_object_end(json);
}

void utilisation_write(struct json *json)
{
    write_util(json);
    write_slices(json);
    json_object(json, "bytes");
    write_moved(json, "hbm", stats.read_bytes[SPACE_HBM], stats.write_bytes[SPACE_HBM]);
    write_moved(json, "tcm", stats.read_bytes[SPACE_TCM], stats.write_bytes[SPACE_TCM]);
    write_moved(json, "sram", stats.read_bytes[SPACE_SRAM], stats.write_bytes[SPACE_SRAM]);
    json_object(json, "links");
    for (unsigned class = 0; class < LINK_CLASSES; class++)
        if (links_exist(class))
            json_u64(json, link_class_names[class], stats.link_bytes[class]);
    json_object_end(json);
    json_object_end(json);
}

static void write_kept_out(struct json *json)
{
    json_object(json, "kept_out");
    json_u64(json, "commands", kept_out.commands);
    json_string(json, "kernel", kept_out.kernel);
    json_string(json, "file", kept_out.first.file);
    json_u64(json, "line", kept_out.first.line);
    json_object_end(json);
}

void summary_write(struct json *json)
{
    verifications_write(json);
    if (kept_out.commands)
        write_kept_out(json);
    if (exec_difference.op)
        write_difference(json, &exec_difference);
    races_write(json);
    notes_write(json);
    figures_write(json);
    rooflines_write(json);
    if (summary_span_ps() && result_good())
        write_bound(json);
    utilisation_write(json);
}

void summary_write_host(struct json *json, const struct host_times *host)
{
    json_object(json, "host");
    json_double(json, "seconds", host->total);
    json_double(json, "setup_s", host->setup);
    json_double(json, "simulation_s", host->simulation);
    json_double(json, "data_pass_s", exec_stats.seconds);
    json_double(json, "reference_s", reference_seconds);
    if (blas_kernels())
        json_string(json, "blas", blas_kernels());
    json_u64(json, "events", event_count);
    json_double(json, "events_per_s", host->simulation > 0 ? (double)event_count / host->simulation : 0);
    profile_write(json);
    json_object_end(json);
}
