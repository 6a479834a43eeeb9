/* traffic.c: how busy messages between PEs keep the links, by the routes alone.
 *
 * A message goes from its sender's pe_dma to the memory of the ring, which the receiver's pe_dma reads if it is not in
 * a TCM. Every byte occupies each link on that way. Nothing else is looked at: nodes, memories, engines. */
#include "base/rates.h"
#include "machine/emitted.h"
#include "machine/fabric.h"
#include "kb/measure.h"
#include "common/arena.h"

struct traffic {
    struct load {
        uint64_t bytes;
        enum link_class class;
    } *load;                                            /* per link, by number over the machine */
};

static uint64_t class_bw_bps(enum link_class class)
{
    switch (class) {
#define LINK(name, bw, latency) case LINK_##name: return kb_attrs.bw;
#include "kb/links.def"
#undef LINK
    default: return 0;
    }
}

/* Where the messages to a PE are written to. */
static struct place ring_place(uint32_t to)
{
    struct place place = place_pe(to, NODE_pe_dma);
    if (kb_attrs.pe_ipcq_buffer == BUFFER_SRAM)
        place.node = cube_sram();
    if (kb_attrs.pe_ipcq_buffer == BUFFER_HBM)
        place.node = cube_hbm_ctrl(&kb_shape, to % kb_shape.pes);
    return place;
}

static struct way write_way(uint32_t from, uint32_t to)
{
    return (struct way){place_pe(from, NODE_pe_dma), ring_place(to), REQUEST};
}

/* The read of a ring outside the TCM; its data are the response. */
static struct way read_way(uint32_t to)
{
    return (struct way){ring_place(to), place_pe(to, NODE_pe_dma), RESPONSE};
}

kb_traffic kb_traffic_new(void)
{
    struct traffic *traffic = arena_alloc(1, sizeof *traffic);
    traffic->load = arena_alloc(link_count(), sizeof *traffic->load);
    return traffic;
}

static void add_way(struct traffic *traffic, struct way way, uint64_t bytes)
{
    uint32_t end = place_rank(way.to);
    for (struct place at = way.from; place_rank(at) != end;) {
        struct hop hop = way_next(&way, at);
        traffic->load[hop.link].class = hop.class;
        traffic->load[hop.link].bytes += bytes;
        at = hop.to;
    }
}

void kb_traffic_add(kb_traffic traffic, uint32_t from, uint32_t to, uint64_t bytes)
{
    add_way(traffic, write_way(from, to), bytes);
    if (kb_attrs.pe_ipcq_buffer != BUFFER_TCM)
        add_way(traffic, read_way(to), bytes);
}

uint64_t kb_traffic_ps(kb_traffic traffic)
{
    uint64_t longest = 0;
    for (const struct load *load = traffic->load; load < traffic->load + link_count(); load++) {
        uint64_t busy = move_ps(load->bytes, class_bw_bps(load->class));
        longest = busy > longest ? busy : longest;
    }
    return longest;
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

uint64_t kb_latency_ps(uint32_t from, uint32_t to)
{
    struct way write = write_way(from, to), read = read_way(to);
    uint64_t latency = way_latency_ps(&write);
    return kb_attrs.pe_ipcq_buffer == BUFFER_TCM ? latency : latency + way_latency_ps(&read);
}
