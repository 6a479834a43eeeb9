/* info.c: `SIM info`: what the machine consists of, and its peak rates. */
#include "info.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/dtype.h"
#include "base/human.h"
#include "common/fail.h"
#include "host/bounds.h"
#include "machine/emitted.h"
#include "machine/tiling.h"
#include "session/numbers.h"

static int info_main(int argc, char **argv);

static const struct cli_option options[] = {SET_OPTION, {0}};

const struct subcommand info_subcommand = {
    "info", "", "describes the machine",
    "Describes the machine: counts, memories, bandwidths, peak rates, and where the roofline has its ridge.", options,
    info_main,
};

static void print_counts(void)
{
    const struct shape *s = &kb_shape;
    uint64_t cubes = (uint64_t)s->sips * s->cubes;
    printf("machine    %s, topology %s, kbgen %s\n", kb_machine_name, kb_topology_hash, kb_version);
    printf("SIPs       %" PRIu32 "\n", s->sips);
    printf("cubes      %" PRIu64 ": %" PRIu32 " x %" PRIu32 " in each SIP\n", cubes, s->cube_rows, s->cube_cols);
    printf("routers    %" PRIu64 ": %" PRIu32 " x %" PRIu32 " in each cube\n", cubes * s->noc_rows * s->noc_cols,
            s->noc_rows, s->noc_cols);
    printf("PEs        %" PRIu32 ": %" PRIu32 " in each cube\n", pe_count(), s->pes);
}

static void print_memories(void)
{
    const struct attrs *a = &kb_attrs;
    uint64_t cubes = (uint64_t)kb_shape.sips * kb_shape.cubes;
    printf("hbm        %s: %s for each PE, %" PRIu64 " pseudo channels each\n",
            human_bytes(pe_count() * a->hbm_slice_bytes), human_bytes(a->hbm_slice_bytes), a->hbm_ctrl_pcs);
    printf("sram       %s: %s for each cube\n", human_bytes(cubes * a->sram_bytes), human_bytes(a->sram_bytes));
    printf("tcm        %s: %s for each PE, of which the scheduler reserves %s\n",
            human_bytes(pe_count() * a->pe_tcm_size_bytes), human_bytes(a->pe_tcm_size_bytes),
            human_bytes(a->pe_tcm_reserved_bytes));
}

static const char *bandwidth(double bps)
{
    return bps > 0 ? human_count(bps, "B/s") : "no limit";
}

static void print_bandwidths(void)
{
    static const uint64_t *const link_bps[LINK_CLASSES] = {
#define LINK(name, bw, latency) &kb_attrs.bw,
#include "kb/links.def"
#undef LINK
    };
    const struct attrs *a = &kb_attrs;
    double hbm = peak_hbm_bps_per_pe();
    printf("\nbandwidth  each, and of all\n");
    printf("  hbm      %-14s %s\n", bandwidth(hbm), bandwidth(hbm * (double)pe_count()));
    printf("  sram     %s read, %s write\n", bandwidth((double)a->sram_read_bw_bps),
            bandwidth((double)a->sram_write_bw_bps));
    printf("  tcm      %s read, %s write\n", bandwidth((double)a->pe_tcm_read_bw_bps),
            bandwidth((double)a->pe_tcm_write_bw_bps));
    for (unsigned class = 0; class < LINK_CLASSES; class++)
        printf("  %-8s %-14s %" PRIu64 " directed links\n", link_class_names[class],
                bandwidth((double)*link_bps[class]), peak_links(class));
}

/* At the ridge, compute and HBM take equally long. With fewer operations per byte, memory is the bound. */
static void print_peaks(void)
{
    printf("\npeak       each PE        of all         roofline ridge with HBM\n");
    for (unsigned dtype = 0; dtype < DTYPES; dtype++) {
        double flops = peak_flops_per_pe(dtype), hbm = peak_hbm_bps_per_pe();
        const char *unit = dtype_is_float(dtype) ? "FLOP" : "OP", *rate = dtype_is_float(dtype) ? "FLOP/s" : "OP/s";
        if (flops == 0)
            continue;
        printf("  %-8s %-14s %-14s", dtype_words[dtype], human_count(flops, rate),
                human_count(flops * (double)pe_count(), rate));
        if (hbm > 0)
            printf(" %.4g %s/B\n", flops / hbm, unit);
        else
            printf(" none: HBM has no limit\n");
    }
}

static int info_main(int argc, char **argv)
{
    for (int letter; (letter = subcommand_option(&info_subcommand, argc, argv)) != -1;)
        numbers_option(letter, optarg);
    numbers_options_end();
    if (optind < argc)
        usage_error("info takes no arguments: '%s'", argv[optind]);
    print_counts();
    print_memories();
    print_bandwidths();
    print_peaks();
    return STATUS_GOOD;
}
