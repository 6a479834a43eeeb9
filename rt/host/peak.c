/* peak.c: what the machine can do at best, from its attributes alone. */
#include "peak.h"

#include "machine/emitted.h"

const char *const link_class_names[LINK_CLASSES] = {
#define LINK(name, bw, latency) #name,
#include "kb/links.def"
#undef LINK
};

uint64_t peak_pes(void)
{
    return pe_count();
}

double peak_flops_per_pe(enum dtype dtype)
{
    const struct attrs *a = &kb_attrs;
    return 2.0 * (double)a->pe_gemm_rows * (double)a->pe_gemm_cols * (double)kb_gemm_k_per_cycle[dtype] *
           (double)a->pe_gemm_clock_khz * 1000;
}

double peak_hbm_bps_per_pe(void)
{
    return (double)kb_attrs.hbm_ctrl_pcs * (double)kb_attrs.hbm_ctrl_pc_bw_bps;
}

/* The rows of a cube's links hold a ucie and an io link for every side, whether there is something beyond it or not. */
static uint64_t of_one_cube(enum link_class class)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < kb_shape.cube_links; i++)
        count += kb_cube_links[i].class == class;
    return count;
}

uint64_t peak_links(enum link_class class)
{
    const struct shape *s = &kb_shape;
    uint64_t rows = s->cube_rows, cols = s->cube_cols;
    switch (class) {
    case LINK_pcie: return 2 + 2 * (uint64_t)s->sips;
    case LINK_io: return (2 + 2 * (uint64_t)s->attachments) * s->sips;
    case LINK_ucie: return 2 * (rows * (cols - 1) + cols * (rows - 1)) * s->sips;
    default: return of_one_cube(class) * s->cubes * s->sips;
    }
}
