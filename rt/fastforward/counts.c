/* counts.c: counts, taken and extrapolated. */
#include "counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/rates.h"
#include "machine/emitted.h"
#include "machine/fabric.h"
#include "machine/stats.h"
#include "common/diag.h"

/* Of a PE. */
struct counts {
    uint64_t dma_ps, compute_ps;
};

static struct stats stats_then;
static uint64_t *links_then, *slices_then;
static struct counts *pes_then;

static void counts_init(void)
{
    links_then = calloc(link_count(), sizeof *links_then);
    slices_then = calloc(pe_count(), sizeof *slices_then);
    pes_then = calloc(pe_count(), sizeof *pes_then);
    if (!links_then || !slices_then || !pes_then)
        die("no memory for the counts of %u PEs", (unsigned)pe_count());
}

void counts_take(struct pe *const *pes, uint32_t count)
{
    if (!links_then)
        counts_init();
    stats_then = stats;
    memcpy(links_then, link_busy_ps, link_count() * sizeof *links_then);
    for (uint32_t i = 0; i < pe_count(); i++)
        slices_then[i] = kb_hbm[i].busy_ps;
    for (uint32_t i = 0; i < count; i++) {
        const struct pe *pe = pes[i];
        pes_then[i] = (struct counts){pe->dma.total_ps, pe->compute.total_ps};
    }
}

static void repeat(uint64_t *value, uint64_t then, uint64_t times)
{
    *value = sum(*value, product(*value - then, times));
}

static void repeat_all(uint64_t *values, const uint64_t *then, size_t count, uint64_t times)
{
    for (size_t i = 0; i < count; i++)
        repeat(&values[i], then[i], times);
}

void counts_repeat(struct pe *const *pes, uint32_t count, uint64_t times)
{
    _Static_assert(sizeof stats % sizeof(uint64_t) == 0, "statistics are numbers of 64 bits and nothing else");
    repeat_all((uint64_t *)&stats, (uint64_t *)&stats_then, sizeof stats / sizeof(uint64_t), times);
    repeat_all(link_busy_ps, links_then, link_count(), times);
    for (uint32_t i = 0; i < pe_count(); i++)
        repeat(&kb_hbm[i].busy_ps, slices_then[i], times);
    for (uint32_t i = 0; i < count; i++) {
        struct pe *pe = pes[i];
        repeat(&pe->dma.total_ps, pes_then[i].dma_ps, times);
        repeat(&pe->compute.total_ps, pes_then[i].compute_ps, times);
    }
}
