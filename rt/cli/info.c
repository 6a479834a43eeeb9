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
    printf("routers    %" PRIu64 ": %" PRIu32 " x %" PRIu32 " in each ", cubes * s->planes * s->noc_rows * s->noc_cols,
           s->noc_rows, s->noc_cols);
    if (s->planes > 1)
        printf("of %" PRIu32 " planes of each ", s->planes);
    printf("cube\n");
    printf("PEs        %" PRIu32 ": %" PRIu32 " in each cube\n", pe_count(), s->pes);
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_hbm(void)
{
    const struct attrs *a = &kb_attrs;
    const char *all = human_bytes(slice_count() * a->hbm_slice_bytes), *each = human_bytes(a->hbm_slice_bytes);
    if (kb_shape.slices == 0)
        printf("hbm        none\n");
    else if (kb_shape.slices == kb_shape.pes)
        printf("hbm        %s: %s for each PE, %" PRIu64 " pseudo channel%s each\n", all, each, a->hbm_ctrl_pcs,
               plural(a->hbm_ctrl_pcs));
    else
        printf("hbm        %s: %" PRIu32 " slice%s in each cube, %s and %" PRIu64 " pseudo channel%s each\n", all,
               kb_shape.slices, plural(kb_shape.slices), each, a->hbm_ctrl_pcs, plural(a->hbm_ctrl_pcs));
}

static void print_memories(void)
{
    const struct attrs *a = &kb_attrs;
    uint64_t cubes = (uint64_t)kb_shape.sips * kb_shape.cubes;
    print_hbm();
    if (kb_shape.srams)
        printf("sram       %s: %s for each cube\n", human_bytes(cubes * a->sram_bytes), human_bytes(a->sram_bytes));
    else
        printf("sram       none\n");
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
    const struct attrs *a = &kb_attrs;
    double hbm = peak_hbm_bps_per_slice();
    printf("\nbandwidth  each, and of all\n");
    if (kb_shape.slices)
        printf("  hbm      %-14s %s\n", bandwidth(hbm), bandwidth(hbm * (double)slice_count()));
    if (kb_shape.srams)
        printf("  sram     %s read, %s write\n", bandwidth((double)a->sram_read_bw_bps),
                bandwidth((double)a->sram_write_bw_bps));
    printf("  tcm      %s read, %s write\n", bandwidth((double)a->pe_tcm_read_bw_bps),
            bandwidth((double)a->pe_tcm_write_bw_bps));
    for (unsigned class = 0; class < LINK_CLASSES; class++)
        if (links_exist(class))
            printf("  %-8s %-14s %" PRIu64 " directed links%s\n", link_class_names[class],
                   bandwidth((double)link_bw_bps(class)), peak_links(class), class == LINK_chip ? "; the widest" : "");
}

/* At the ridge, compute and HBM take equally long. With fewer operations per byte, memory is the bound. */
static void print_peaks(void)
{
    printf("\npeak       each PE        of all         roofline ridge with HBM\n");
    for (unsigned dtype = 0; dtype < DTYPES; dtype++) {
        double flops = peak_flops_per_pe(dtype), hbm = peak_hbm_bps_per_slice();
        const char *unit = dtype_is_float(dtype) ? "FLOP" : "OP", *rate = dtype_is_float(dtype) ? "FLOP/s" : "OP/s";
        if (flops == 0)
            continue;
        printf("  %-8s %-14s %-14s", dtype_words[dtype], human_count(flops, rate),
                human_count(flops * (double)pe_count(), rate));
        if (!kb_shape.slices)
            printf(" none: there is no HBM\n");
        else if (hbm > 0)
            printf(" %.4g %s/B\n", flops / hbm * ((double)kb_shape.pes / kb_shape.slices), unit);
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
