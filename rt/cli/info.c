/* info.c: `SIM info`: the machine: counts, memories, peaks. */
#include "info.h"

#include <inttypes.h>

#include "base/dtype.h"
#include "machine/emitted.h"
#include "base/human.h"
#include "host/bounds.h"
#include "machine/tiling.h"

static void counts(FILE *out)
{
    const struct shape *s = &kb_shape;
    uint64_t cubes = (uint64_t)s->sips * s->cubes;
    fprintf(out, "machine    %s, topology %s, kbgen %s\n", kb_machine_name, kb_topology_hash, kb_version);
    fprintf(out, "SIPs       %" PRIu32 "\n", s->sips);
    fprintf(out, "cubes      %" PRIu64 ": %" PRIu32 " x %" PRIu32 " in each SIP\n", cubes, s->cube_rows, s->cube_cols);
    fprintf(out, "routers    %" PRIu64 ": %" PRIu32 " x %" PRIu32 " in each cube\n", cubes * s->noc_rows * s->noc_cols,
            s->noc_rows, s->noc_cols);
    fprintf(out, "PEs        %" PRIu32 ": %" PRIu32 " in each cube\n", pe_count(), s->pes);
}

static void memories(FILE *out)
{
    const struct attrs *a = &kb_attrs;
    uint64_t cubes = (uint64_t)kb_shape.sips * kb_shape.cubes;
    fprintf(out, "hbm        %s: %s for each PE, %" PRIu64 " pseudo channels each\n",
            human_bytes(pe_count() * a->hbm_slice_bytes), human_bytes(a->hbm_slice_bytes), a->hbm_ctrl_pcs);
    fprintf(out, "sram       %s: %s for each cube\n", human_bytes(cubes * a->sram_bytes), human_bytes(a->sram_bytes));
    fprintf(out, "tcm        %s: %s for each PE, of which the scheduler reserves %s\n",
            human_bytes(pe_count() * a->pe_tcm_size_bytes), human_bytes(a->pe_tcm_size_bytes),
            human_bytes(a->pe_tcm_reserved_bytes));
}

static const char *bandwidth(double bps)
{
    return bps > 0 ? human_count(bps, "B/s") : "no limit";
}

static void bandwidths(FILE *out)
{
    static const uint64_t *const link_bps[LINK_CLASSES] = {
#define LINK(name, bw, latency) &kb_attrs.bw,
#include "kb/links.def"
#undef LINK
    };
    const struct attrs *a = &kb_attrs;
    double hbm = peak_hbm_bps_per_pe();
    fprintf(out, "\nbandwidth  each, and of all\n");
    fprintf(out, "  hbm      %-14s %s\n", bandwidth(hbm), bandwidth(hbm * (double)pe_count()));
    fprintf(out, "  sram     %s read, %s write\n", bandwidth((double)a->sram_read_bw_bps),
            bandwidth((double)a->sram_write_bw_bps));
    fprintf(out, "  tcm      %s read, %s write\n", bandwidth((double)a->pe_tcm_read_bw_bps),
            bandwidth((double)a->pe_tcm_write_bw_bps));
    for (unsigned class = 0; class < LINK_CLASSES; class++)
        fprintf(out, "  %-8s %-14s %" PRIu64 " directed links\n", link_class_names[class],
                bandwidth((double)*link_bps[class]), peak_links(class));
}

/* The ridge is where compute and HBM take equally long: with fewer operations a byte, memory bounds. */
static void peaks(FILE *out)
{
    fprintf(out, "\npeak       each PE        of all         roofline ridge with HBM\n");
    for (unsigned dtype = 0; dtype < DTYPES; dtype++) {
        double flops = peak_flops_per_pe(dtype), hbm = peak_hbm_bps_per_pe();
        const char *unit = dtype_is_float(dtype) ? "FLOP" : "OP", *rate = dtype_is_float(dtype) ? "FLOP/s" : "OP/s";
        if (flops == 0)
            continue;
        fprintf(out, "  %-8s %-14s %-14s", dtype_words[dtype], human_count(flops, rate),
                human_count(flops * (double)pe_count(), rate));
        if (hbm > 0)
            fprintf(out, " %.4g %s/B\n", flops / hbm, unit);
        else
            fprintf(out, " none: HBM has no limit\n");
    }
}

void info_print(FILE *out)
{
    counts(out);
    memories(out);
    bandwidths(out);
    peaks(out);
}
