/* bounds.c: the least time that one engine, one memory or the links need for some work, and the peak rates for `info`
 * and the summary. */
#include "bounds.h"

#include "base/address.h"
#include "base/ops.h"
#include "base/rates.h"
#include "common/arena.h"
#include "kb/measure.h"
#include "machine/emitted.h"
#include "machine/engine.h"
#include "machine/fabric.h"
#include "machine/memory.h"

/* ---- peak rates */

const char *const link_class_names[LINK_CLASSES] = {
#define LINK(name, bw, latency) #name,
#define OWN_LINK(name) #name,
#include "kb/links.def"
};

double peak_flops_per_pe(enum dtype dtype)
{
    const struct attrs *a = &kb_attrs;
    return 2.0 * (double)a->pe_gemm_rows * (double)a->pe_gemm_cols * (double)kb_gemm_k_per_cycle[dtype] *
           (double)a->pe_gemm_clock_khz * 1000;
}

double peak_hbm_bps_per_slice(void)
{
    return (double)kb_attrs.hbm_ctrl_pcs * (double)kb_attrs.hbm_ctrl_pc_bw_bps;
}

uint64_t peak_links(enum link_class class)
{
    const struct shape *s = &kb_shape;
    uint64_t rows = s->cube_rows, cols = s->cube_cols, of_cube = 0;
    switch (class) {
    case LINK_pcie: return 2 + 2 * (uint64_t)s->sips;
    case LINK_io: return (2 + 2 * (uint64_t)s->attachments) * s->sips;
    case LINK_ucie: return 2 * (rows * (cols - !s->closed_rows) + cols * (rows - !s->closed_cols)) * s->sips;
    case LINK_chip: return s->chips ? 2 * (uint64_t)s->chips->count : 0;
    default:                                            /* inside cubes, whose tables list every existing link */
        for (uint32_t i = 0; i < s->cube_links; i++)
            of_cube += speed_class(kb_cube_links[i].speed) == class;
        return of_cube * s->cubes * s->sips;
    }
}

bool links_exist(enum link_class class)
{
    return class != LINK_chip || kb_shape.chips;
}

static uint64_t largest_chip_bps(void)
{
    uint64_t most = 0;
    for (uint32_t i = 0; kb_shape.chips && i < kb_shape.chips->count; i++) {
        uint64_t bps = kb_shape.chips->speeds[i].bw_bps;
        if (!bps)
            return 0;
        most = bps > most ? bps : most;
    }
    return most;
}

uint64_t link_bw_bps(enum link_class class)
{
    switch (class) {
#define LINK(name, bw, latency) case LINK_##name: return kb_attrs.bw;
#include "kb/links.def"
    default: return largest_chip_bps();
    }
}

/* ---- engines and memories */

uint64_t kb_gemm_ps(enum kb_dtype dtype, uint64_t macs)
{
    uint64_t a_cycle = product(product(kb_attrs.pe_gemm_rows, kb_attrs.pe_gemm_cols), kb_gemm_k_per_cycle[dtype]);
    return a_cycle ? cycles_ps(ceil_div(macs, a_cycle), kb_attrs.pe_gemm_clock_khz) : 0;
}

uint64_t kb_gemm_k_step(enum kb_dtype dtype)
{
    return kb_gemm_k_per_cycle[dtype];
}

uint64_t kb_gemm_tile_ps(enum kb_dtype dtype, uint64_t m, uint64_t k, uint64_t n)
{
    uint64_t k_per_cycle = kb_gemm_k_per_cycle[dtype];
    return k_per_cycle ? builtin_pe_gemm_service(&(struct kb_gemm_request){.m = m, .k = k, .n = n,
                                                                           .k_per_cycle = k_per_cycle}) : 0;
}

uint64_t kb_math_ps(enum kb_dtype dtype, uint64_t elements)
{
    uint64_t lanes = kb_math_lanes[dtype];
    return lanes ? cycles_ps(ceil_div(elements, lanes), kb_attrs.pe_math_clock_khz) : 0;
}

uint64_t kb_op_cost(const char *op)
{
    uint16_t number = op_number(op);
    return op_known(number) ? engine_op_cost(number) : 0;
}

uint64_t kb_memory_ps(enum kb_space space, uint64_t read_bytes, uint64_t write_bytes)
{
    if (space == KB_HBM)
        return move_ps(sum(read_bytes, write_bytes), product(kb_attrs.hbm_ctrl_pcs, kb_attrs.hbm_ctrl_pc_bw_bps));
    bool tcm = space == KB_TCM;
    uint64_t read_ps = move_ps(read_bytes, tcm ? kb_attrs.pe_tcm_read_bw_bps : kb_attrs.sram_read_bw_bps);
    uint64_t write_ps = move_ps(write_bytes, tcm ? kb_attrs.pe_tcm_write_bw_bps : kb_attrs.sram_write_bw_bps);
    return read_ps > write_ps ? read_ps : write_ps;
}

/* ---- links
 *
 * A message goes from its sender's pe_dma to the memory that holds the receiver's queue. From an sram or HBM slice the
 * receiver's pe_dma reads it. Each byte occupies every link on the way. Nodes, memories and engines are left out. */

struct traffic {
    struct link_load {
        uint64_t bytes;
        uint32_t speed;
        uint32_t message;                               /* the last one that was counted here */
    } *load;                                            /* by number of the link over the machine */
    uint32_t messages;                                  /* those that are added together count as one */
};

static struct way write_way(uint32_t from, uint32_t to)
{
    struct place queue = place_pe(to, NODE_pe_dma);
    if (kb_attrs.pe_ipcq_buffer == BUFFER_sram && kb_shape.srams)
        queue.node = cube_sram();
    if (kb_attrs.pe_ipcq_buffer == BUFFER_hbm && kb_shape.slices)
        queue = slice_place(own_slice(to));
    return way_of(place_pe(from, NODE_pe_dma), queue, kb_shape.plane_of_message);
}

/* The way of the data that the receiver reads from its queue, which is not in its TCM. */
static struct way read_way(uint32_t to)
{
    return way_answer(write_way(to, to), kb_shape.plane_of_read);
}

/* Adds bytes to a link, unless the last message has taken it already. */
static inline void add_to_link(struct traffic *traffic, uint32_t link, uint32_t speed, uint64_t bytes)
{
    struct link_load *load = &traffic->load[link];
    load->speed = speed;
    load->bytes += load->message == traffic->messages ? 0 : bytes;
    load->message = traffic->messages;
}

/* Adds bytes to the links of a way. Those of a way that data have taken are listed, and need not be looked for. */
static void add_bytes(struct traffic *traffic, struct way way, uint64_t bytes)
{
    const struct route *route = route_listed(&way);
    for (uint32_t i = 0; route && i < route->length; i++)
        add_to_link(traffic, step_link(route->steps[i]), step_target(&route->steps[i])->speed, bytes);
    if (route)
        return;
    for (struct traversal along = traversal_of(way); traversal_next(&along);)
        add_to_link(traffic, along.hop.link, along.hop.speed, bytes);
}

kb_traffic kb_traffic_new(void)
{
    struct traffic *traffic = arena_alloc(1, sizeof *traffic);
    traffic->load = arena_alloc(link_count(), sizeof *traffic->load);
    return traffic;
}

void kb_traffic_multicast(kb_traffic traffic, uint32_t from, const uint32_t *to, uint32_t count, uint64_t bytes)
{
    traffic->messages++;
    for (uint32_t i = 0; i < count; i++)
        add_bytes(traffic, write_way(from, to[i]), bytes);
    for (uint32_t i = 0; kb_attrs.pe_ipcq_buffer != BUFFER_tcm && i < count; i++) {
        traffic->messages++;
        add_bytes(traffic, read_way(to[i]), bytes);
    }
}

void kb_traffic_add(kb_traffic traffic, uint32_t from, uint32_t to, uint64_t bytes)
{
    kb_traffic_multicast(traffic, from, &to, 1, bytes);
}

uint64_t kb_traffic_ps(kb_traffic traffic)
{
    uint64_t longest = 0;
    for (const struct link_load *load = traffic->load; load < traffic->load + link_count(); load++) {
        uint64_t busy = move_ps(load->bytes, link_rate(load->speed)->bw_bps);
        longest = busy > longest ? busy : longest;
    }
    return longest;
}

uint64_t kb_latency_ps(uint32_t from, uint32_t to)
{
    struct way write = write_way(from, to), read = read_way(to);
    uint64_t latency = route_latency_ps(route_of(write));
    return kb_attrs.pe_ipcq_buffer == BUFFER_tcm ? latency : latency + route_latency_ps(route_of(read));
}
