/* util.c: how busy each kind of resource was while kernels ran. */
#include "util.h"

#include <string.h>

#include "machine/emitted.h"
#include "machine/fabric.h"
#include "launch/launch.h"
#include "host/bounds.h"
#include "common/arena.h"

static struct resource pooled(const char *name, uint64_t busy_ps, uint64_t servers)
{
    return (struct resource){name, busy_ps, servers, busy_ps, servers};
}

static void engines(struct resource *out)
{
    const struct attrs *a = &kb_attrs;
    uint64_t pes = pe_count();
    out[ENGINE_DMA_READ] = pooled("pe_dma read", stats.busy_ps[ENGINE_DMA_READ], pes * a->pe_dma_rd_engines);
    out[ENGINE_DMA_WRITE] = pooled("pe_dma write", stats.busy_ps[ENGINE_DMA_WRITE], pes * a->pe_dma_wr_engines);
    out[ENGINE_COMM] = pooled("pe_dma comm", stats.busy_ps[ENGINE_COMM], pes);
    out[ENGINE_FETCH_STORE] =
        pooled("pe_fetch_store", stats.busy_ps[ENGINE_FETCH_STORE], pes * a->pe_fetch_store_ports);
    out[ENGINE_GEMM] = pooled("pe_gemm", stats.busy_ps[ENGINE_GEMM], pes);
    out[ENGINE_MATH] = pooled("pe_math", stats.busy_ps[ENGINE_MATH], pes);
    out[ENGINE_SCHEDULER] = pooled("pe_scheduler", stats.busy_ps[ENGINE_SCHEDULER], pes);
}

/* Where pe_gemm and pe_math are one server, it is as busy as both of them; told if both are. */
static struct resource accelerator(void)
{
    uint64_t gemm_ps = stats.busy_ps[ENGINE_GEMM], math_ps = stats.busy_ps[ENGINE_MATH];
    bool both = kb_shape.accel_shared && gemm_ps && math_ps;
    return pooled("pe_gemm+math", both ? gemm_ps + math_ps : 0, pe_count());
}

static struct resource hbm(void)
{
    struct resource all = pooled("hbm", stats.read_busy_ps[SPACE_HBM], pe_count() * kb_attrs.hbm_ctrl_pcs);
    all.busiest_ps = 0;
    all.busiest_servers = kb_attrs.hbm_ctrl_pcs;
    for (uint64_t i = 0; i < pe_count(); i++)
        if (kb_hbm[i].busy_ps > all.busiest_ps)
            all.busiest_ps = kb_hbm[i].busy_ps;
    return all;
}

static struct resource links(enum link_class class)
{
    static const char *const names[LINK_CLASSES] = {
#define LINK(name, bw, latency) #name " links",
#include "kb/links.def"
#undef LINK
    };
    return (struct resource){.name = names[class], .busy_ps = stats.link_busy_ps[class], .servers = peak_links(class),
                             .busiest_ps = link_busiest_ps(class), .busiest_servers = 1};
}

void util_collect(struct resource resources[RESOURCES])
{
    uint64_t cubes = (uint64_t)kb_shape.sips * kb_shape.cubes;
    engines(resources);
    struct resource *next = resources + ENGINES;
    *next++ = accelerator();
    *next++ = hbm();
    *next++ = pooled("tcm read", stats.read_busy_ps[SPACE_TCM], pe_count());
    *next++ = pooled("tcm write", stats.write_busy_ps[SPACE_TCM], pe_count());
    *next++ = pooled("sram read", stats.read_busy_ps[SPACE_SRAM], cubes);
    *next++ = pooled("sram write", stats.write_busy_ps[SPACE_SRAM], cubes);
    for (unsigned class = 0; class < LINK_CLASSES; class++)
        *next++ = links(class);
}

uint64_t util_span_ps(void)
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

static double share(uint64_t busy_ps, uint64_t servers)
{
    double all = (double)util_span_ps() * (double)servers;
    return all > 0 ? (double)busy_ps / all : 0;
}

double util_mean(const struct resource *resource)
{
    return share(resource->busy_ps, resource->servers);
}

double util_busiest(const struct resource *resource)
{
    return share(resource->busiest_ps, resource->busiest_servers);
}

/* ---- requests of the host between kernels */

struct util_before {
    const struct memory_request *request;
    uint64_t kernels;                                   /* that had begun */
    bool idle;                                          /* all of them had ended */
    struct stats stats;
    uint64_t *links, *slices;
    struct util_before *next;                           /* of those under way, or among the spare ones */
};

static struct util_before *under_way, *spare;
static uint64_t kernels_begun, kernels_ended;           /* of this run, on any PE */

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

static struct util_before *before_new(void)
{
    struct util_before *before = spare;
    if (before) {
        spare = before->next;
        return before;
    }
    before = arena_alloc(1, sizeof *before);
    before->links = arena_alloc(link_count(), sizeof *before->links);
    before->slices = arena_alloc(pe_count(), sizeof *before->slices);
    return before;
}

static void host_request_begins(const struct memory_request *request)
{
    struct util_before *before = before_new();
    before->request = request;
    before->next = under_way;
    under_way = before;
    before->kernels = kernels_begun;
    before->idle = kernels_begun == kernels_ended;
    before->stats = stats;
    for (uint64_t i = 0; i < link_count(); i++)
        before->links[i] = kb_links[i].busy_ps;
    for (uint32_t i = 0; i < pe_count(); i++)
        before->slices[i] = kb_hbm[i].busy_ps;
}

static void put_back(const struct util_before *before)
{
    memcpy(stats.read_busy_ps, before->stats.read_busy_ps, sizeof stats.read_busy_ps);
    memcpy(stats.write_busy_ps, before->stats.write_busy_ps, sizeof stats.write_busy_ps);
    memcpy(stats.link_busy_ps, before->stats.link_busy_ps, sizeof stats.link_busy_ps);
    memcpy(stats.wait_ps, before->stats.wait_ps, sizeof stats.wait_ps);
    memcpy(stats.memory_wait_ps, before->stats.memory_wait_ps, sizeof stats.memory_wait_ps);
    stats.node_wait_ps = before->stats.node_wait_ps;
    for (uint64_t i = 0; i < link_count(); i++)
        kb_links[i].busy_ps = before->links[i];
    for (uint32_t i = 0; i < pe_count(); i++)
        kb_hbm[i].busy_ps = before->slices[i];
}

static void host_request_ends(const struct memory_request *request)
{
    struct util_before **link = &under_way;
    while ((*link)->request != request)
        link = &(*link)->next;
    struct util_before *before = *link;
    *link = before->next;
    if (before->idle && before->kernels == kernels_begun)
        put_back(before);
    before->next = spare;
    spare = before;
}

void util_reset(void)
{
    under_way = spare = NULL;
    kernels_begun = kernels_ended = 0;
}

struct observer util_observer = {
    .name = "utilisation",
    .kernel_begins = kernel_begins,
    .kernel_ends = kernel_ends,
    .host_request_begins = host_request_begins,
    .host_request_ends = host_request_ends,
};
