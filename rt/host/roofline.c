/* roofline.c: the least time of a launch, for any algorithm that solves its problem and for its own algorithm.
 *
 * Both bounds consist of the least time of a launch, from the host to the PE that is nearest to it and back, and of the
 * longest of the bounds of the parts of the machine. The problem's follow from the tensors and the operations that the
 * bench states: they are the same for every kernel that solves the problem. */
#include "roofline.h"

#include "base/human.h"
#include "base/rates.h"
#include "bounds.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/fail.h"
#include "kb/measure.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/fabric.h"
#include "machine/pe.h"
#include "store/tensor.h"

enum part { PART_ARRAY, PART_MATH, PART_ACCEL, PART_MEMORY, PART_LINK, PART_LATENCY, PARTS };

static const char *const part_names[PARTS] = {"array", "math", "accel", "memory", "link", "latency"};

struct bound {
    uint64_t part_ps[PARTS];
    enum part longest;
    uint64_t all_ps;                                    /* with the launch */
};

struct roofline {
    const char *program;
    uint64_t time_ps, launch_ps;                        /* from the submission to the answer; the least time of that */
    struct bound problem, algorithm;
};

static struct ARRAY(struct roofline) rooflines;

/* ---- latencies of idle parts */

/* Of control messages, or of data in the planes of the request and of the answer. */
static uint64_t there_and_back_ps(struct place from, struct place to, uint8_t plane, uint8_t answer_plane)
{
    struct way way = way_of(from, to, plane), back = way_answer(way, answer_plane);
    return sum(route_latency_ps(route_of(way)), route_latency_ps(route_of(back)));
}

/* The least time of a launch: to the PE that is nearest to the host, past io_cpu or by it, of what its pe_cpu takes
 * before the kernel's body, and of the answer. */
static uint64_t launch_ps(void)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t cube = 0; cube < kb_shape.cubes; cube++) {
        struct place m_cpu = place_m_cpu(0, cube), io_cpu = place_io_cpu(0);
        uint64_t through_ps = sum(there_and_back_ps(place_host(), io_cpu, 0, 0), there_and_back_ps(io_cpu, m_cpu, 0, 0));
        uint64_t down_ps = kb_min(through_ps, there_and_back_ps(place_host(), m_cpu, 0, 0));
        for (uint32_t pe = 0; pe < kb_shape.pes; pe++) {
            uint64_t pe_ps = there_and_back_ps(m_cpu, place_pe(cube * kb_shape.pes + pe, NODE_pe_cpu), 0, 0);
            least = kb_min(least, sum(down_ps, pe_ps));
        }
    }
    return sum(least, kb_attrs.pe_cpu_launch_ps);
}

/* The least time from a PE to a memory of its cube and back. */
static uint64_t memory_latency_ps(enum kb_space space)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t pe = 0; pe < kb_shape.pes; pe++)
        for (uint32_t slice = 0; slice < (space == KB_HBM ? kb_shape.slices : kb_shape.srams); slice++) {
            struct place dma = place_pe(pe, NODE_pe_dma), memory = dma;
            memory.node = space == KB_HBM ? cube_hbm_ctrl(&kb_shape, slice) : cube_sram();
            uint64_t read_ps = there_and_back_ps(dma, memory, 0, kb_shape.plane_of_read);
            uint64_t write_ps = there_and_back_ps(dma, memory, kb_shape.plane_of_write, 0);
            least = kb_min(least, kb_min(read_ps, write_ps));
        }
    return least;
}

/* ---- bytes of a problem, by the kind of memory that they lie in */

struct bytes {
    uint64_t read[3], written[3];                       /* by enum kb_space */
};

static uint64_t tensor_bytes(struct call_site call, const struct tensor *tensor, bool all_copies)
{
    tensor_check(call, tensor);
    uint64_t copies = all_copies && tensor->place.split == KB_COPIES ? tensor->shards : 1;
    return product(product(tensor->elements, kb_dtype_bytes((enum kb_dtype)tensor->dtype)), copies);
}

static struct bytes problem_bytes(struct call_site call, const struct kb_problem *problem)
{
    struct bytes bytes = {0};
    bytes.read[kb_main_memory()] = problem->read_bytes;
    for (unsigned i = 0; i < KB_OPERANDS; i++) {
        const struct tensor *read = problem->reads[i], *written = problem->writes[i];
        if (read)
            bytes.read[read->place.space] += tensor_bytes(call, read, false);
        if (written)
            bytes.written[written->place.space] += tensor_bytes(call, written, true);
    }
    return bytes;
}

static struct bytes bytes_of(const struct kb_work *work)
{
    struct bytes bytes = {.read = {[KB_SRAM] = work->sram_read}, .written = {[KB_SRAM] = work->sram_written}};
    enum kb_space memory = kb_main_memory();
    bytes.read[memory] = sum(bytes.read[memory], work->hbm_read);
    bytes.written[memory] = sum(bytes.written[memory], work->hbm_written);
    return bytes;
}

/* ---- parts */

/* How many PEs work, and how many HBM slices and srams they have. */
struct workers {
    uint64_t pes, slices, srams;
};

static struct workers workers_of(const struct launch *launch)
{
    struct workers workers = {.pes = launch->count};
    for (uint32_t i = 0; i < launch->count; i++) {      /* in rank order: PEs that share a memory are neighbours */
        uint32_t pe = pe_number(launch->runs[i].tl.pe), before = i ? pe_number(launch->runs[i - 1].tl.pe) : 0;
        workers.srams += kb_shape.srams && (i == 0 || pe / kb_shape.pes != before / kb_shape.pes);
        workers.slices += kb_shape.slices && (i == 0 || own_slice(pe) != own_slice(before));
    }
    return workers;
}

static void bound_engines(struct bound *bound, struct workers workers, const struct kb_problem *problem)
{
    uint64_t *ps = bound->part_ps, p = workers.pes;
    ps[PART_ARRAY] = kb_gemm_ps(problem->gemm_dtype, ceil_div(problem->macs, p));
    ps[PART_MATH] = sum(kb_math_ps(problem->math_dtype, ceil_div(problem->math, p)),
                        kb_math_ps(KB_f32, ceil_div(problem->math_f32, p)));
    if (ps[PART_ARRAY] && ps[PART_MATH])
        ps[PART_ACCEL] = kb_shape.accel_shared ? sum(ps[PART_ARRAY], ps[PART_MATH])
                                               : kb_max(ps[PART_ARRAY], ps[PART_MATH]);
}

static void bound_memories(struct bound *bound, struct workers workers, const struct bytes *bytes)
{
    const uint64_t memories[] = {[KB_HBM] = workers.slices, [KB_TCM] = workers.pes, [KB_SRAM] = workers.srams};
    for (enum kb_space space = KB_HBM; space <= KB_SRAM; space++) {
        uint64_t n = memories[space];
        if (!n)
            continue;
        uint64_t ps = kb_memory_ps(space, ceil_div(bytes->read[space], n), ceil_div(bytes->written[space], n));
        bound->part_ps[PART_MEMORY] = kb_max(bound->part_ps[PART_MEMORY], ps);
    }
}

/* The bandwidth of all engines of a pe_dma for reads or for writes. 0: none of them is limited. */
static uint64_t dma_bw_bps(bool writes)
{
    return writes ? product(kb_attrs.pe_dma_wr_engines, kb_attrs.pe_dma_wr_bw_bps)
                  : product(kb_attrs.pe_dma_rd_engines, kb_attrs.pe_dma_rd_bw_bps);
}

/* Every byte that a PE reads leaves its memory by the memory's link, and reaches the PE by the PE's and by its pe_dma;
 * every byte that it writes goes the other way. */
static uint64_t attach_link_ps(struct workers workers, const struct bytes *bytes)
{
    uint64_t bw_bps = link_bw_bps(LINK_attach), longest = 0;
    const uint64_t *const directions[] = {bytes->read, bytes->written};
    for (unsigned i = 0; i < 2; i++) {
        uint64_t hbm = directions[i][KB_HBM], sram = directions[i][KB_SRAM];
        longest = kb_max(longest, move_ps(ceil_div(hbm + sram, workers.pes), bw_bps));
        longest = kb_max(longest, move_ps(ceil_div(hbm + sram, workers.pes), dma_bw_bps(i)));
        longest = kb_max(longest, workers.slices ? move_ps(ceil_div(hbm, workers.slices), bw_bps) : 0);
        longest = kb_max(longest, workers.srams ? move_ps(ceil_div(sram, workers.srams), bw_bps) : 0);
    }
    return longest;
}

/* One command: the call, the scheduler, and the read and the write of a byte in the nearest memories. */
static uint64_t command_ps(const struct bytes *bytes)
{
    uint64_t ps = sum(kb_attrs.pe_cpu_overhead_ps, kb_attrs.pe_scheduler_overhead_ps);
    if (bytes->read[KB_HBM])
        ps = sum(ps, sum(memory_latency_ps(KB_HBM), kb_attrs.hbm_ctrl_access_ps));
    else if (bytes->read[KB_SRAM])
        ps = sum(ps, memory_latency_ps(KB_SRAM));
    if (bytes->written[KB_HBM] || bytes->written[KB_SRAM])
        ps = sum(ps, memory_latency_ps(bytes->written[KB_HBM] ? KB_HBM : KB_SRAM));
    return ps;
}

static struct bound bound_of(struct workers workers, const struct kb_problem *problem, const struct bytes *bytes,
                             const struct kb_work *work, uint64_t launched_ps)
{
    struct bound bound = {0};
    bound_engines(&bound, workers, problem);
    bound_memories(&bound, workers, bytes);
    bound.part_ps[PART_MEMORY] = kb_max(bound.part_ps[PART_MEMORY], work->memory_ps);
    bound.part_ps[PART_LINK] = kb_max(attach_link_ps(workers, bytes), work->traffic ? kb_traffic_ps(work->traffic) : 0);
    bound.part_ps[PART_LATENCY] = kb_max(command_ps(bytes), work->latency_ps);
    for (enum part part = 0; part < PARTS; part++)
        if (bound.part_ps[part] > bound.part_ps[bound.longest])
            bound.longest = part;
    bound.all_ps = sum(launched_ps, bound.part_ps[bound.longest]);
    return bound;
}

static struct bound problem_bound(const struct kb_problem *problem, const struct bytes *bytes, uint64_t launched_ps)
{
    struct workers all = {pe_count(), slice_count(), sram_count()};
    return bound_of(all, problem, bytes, &(struct kb_work){0}, launched_ps);
}

static struct bound algorithm_bound(const struct launch *launch, const struct kb_problem *problem,
                                    const struct bytes *bytes, const struct kb_work *work, uint64_t launched_ps)
{
    struct kb_problem done = *problem;
    struct bytes moved = *bytes;
    if (work->macs)
        done.macs = work->macs;
    if (work->math || work->math_f32)
        done.math = work->math, done.math_f32 = work->math_f32;
    if (work->hbm_read || work->hbm_written || work->sram_read || work->sram_written)
        moved = bytes_of(work);
    return bound_of(workers_of(launch), &done, &moved, work, launched_ps);
}

void kb_roofline_at(kb_future launch, const char *file, uint32_t line, const struct kb_problem *problem,
                    const struct kb_work *work)
{
    struct call_site call = {"kb_roofline", file, line};
    if (!launch || launch->status != LAUNCH_OK)
        misuse(file, line, "kb_roofline: %s", launch ? "the launch has not ended" : "there is no launch");
    struct bytes bytes = problem_bytes(call, problem);
    uint64_t launched_ps = launch_ps();
    struct bound algorithm = algorithm_bound(launch, problem, &bytes, work ? work : &(struct kb_work){0}, launched_ps);
    kb_figure("time", kb_kernels_ps_at(launch, file, line), KB_PS);
    for (enum part part = 0; part < PARTS; part++)
        if (algorithm.part_ps[part])
            kb_figure(arena_printf("%s_bound", part_names[part]), algorithm.part_ps[part], KB_PS);
    *array_add(&rooflines) = (struct roofline){launch->program, launch->done_ps - launch->submitted_ps, launched_ps,
                                               problem_bound(problem, &bytes, launched_ps), algorithm};
}

/* ---- results */

static uint64_t reached_permille(const struct roofline *roofline, const struct bound *bound)
{
    return (uint64_t)((unsigned __int128)bound->all_ps * 1000 / kb_max(roofline->time_ps, 1));
}

static void print_bound(FILE *out, const char *name, const struct roofline *roofline, const struct bound *bound)
{
    fprintf(out, "%-12s %s %s, ", name, human_time(bound->all_ps), part_names[bound->longest]);
    fprintf(out, "%.1f %% of %s%s%s\n", (double)reached_permille(roofline, bound) / 10, human_time(roofline->time_ps),
            rooflines.count > 1 ? " of " : "", rooflines.count > 1 ? roofline->program : "");
}

void rooflines_print(FILE *out)
{
    for (size_t i = 0; i < rooflines.count; i++) {
        print_bound(out, "problem", &rooflines.at[i], &rooflines.at[i].problem);
        print_bound(out, "algorithm", &rooflines.at[i], &rooflines.at[i].algorithm);
    }
}

static void write_bound(struct json *json, const char *name, const struct roofline *roofline, const struct bound *bound)
{
    json_object(json, name);
    json_u64(json, "bound_ps", bound->all_ps);
    json_string(json, "by", part_names[bound->longest]);
    json_u64(json, "reached_permille", reached_permille(roofline, bound));
    json_u64(json, "launch_ps", roofline->launch_ps);
    for (enum part part = 0; part < PARTS; part++)
        json_u64(json, arena_printf("%s_ps", part_names[part]), bound->part_ps[part]);
    json_object_end(json);
}

void rooflines_write(struct json *json)
{
    if (!rooflines.count)
        return;
    json_array(json, "bounds");
    for (size_t i = 0; i < rooflines.count; i++) {
        json_object(json, NULL);
        json_string(json, "program", rooflines.at[i].program);
        json_u64(json, "time_ps", rooflines.at[i].time_ps);
        write_bound(json, "problem", &rooflines.at[i], &rooflines.at[i].problem);
        write_bound(json, "algorithm", &rooflines.at[i], &rooflines.at[i].algorithm);
        json_object_end(json);
    }
    json_array_end(json);
}

void rooflines_reset(void)
{
    array_free(&rooflines);
}
