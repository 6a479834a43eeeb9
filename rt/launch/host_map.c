/* host_map.c: maps and unmaps of the host: control messages to each pe_mmu, which does not answer; its m_cpu knows when
 * they are delivered. */
#include "machine/emitted.h"
#include "sim/handler.h"
#include "host_request.h"
#include "machine/mmu.h"
#include "machine/pe.h"
#include "common/arena.h"

struct map_request {
    const uint32_t *pes;
    const uint64_t *addresses;                          /* NULL: unmap */
    uint64_t va, pages;
    struct fanout fanout;
};

static void pe_mmu_reached(struct message *message)
{
    struct leg *leaf = leg_of(message);
    const struct map_request *request = container_of(leaf->fanout, struct map_request, fanout);
    struct pe *pe = &kb_pe[request->pes[leg_leaf(leaf)]];
    if (request->addresses)
        mmu_map(pe, request->va, request->pages, request->addresses[leg_leaf(leaf)]);
    else
        mmu_unmap(pe, request->va, request->pages);
    fanout_leaf_answered(leaf, false);
}

static void m_cpu_dispatches(struct leg *cube)
{
    const struct map_request *request = container_of(cube->fanout, struct map_request, fanout);
    for (uint32_t i = cube->first; i < cube->end; i++) {
        struct way way = {leg_m_cpu(cube), place_pe(request->pes[i], NODE_pe_mmu), REQUEST};
        control_send(&cube->fanout->leaves[i].data.message, way, now_ps, pe_mmu_reached);
    }
}

static void request_done(struct fanout *fanout)
{
    (void)fanout;
}

void map_request_run(const uint32_t *pes, const uint64_t *addresses, uint32_t count, uint64_t va, uint64_t pages)
{
    struct map_request *request = arena_alloc(1, sizeof *request);
    uint32_t *cube = arena_alloc(count, sizeof *cube);
    for (uint32_t i = 0; i < count; i++)
        cube[i] = pes[i] / kb_shape.pes;
    *request = (struct map_request){.pes = pes, .addresses = addresses, .va = va, .pages = pages,
                                    .fanout = {.at_m_cpu = m_cpu_dispatches, .done = request_done}};
    fanout_plan(&request->fanout, cube, count);
    fanout_send(&request->fanout);
    fanout_wait(&request->fanout);
}

const struct handler host_map_handlers[] = {
    HANDLER(pe_mmu_reached, "map or unmap at pe_mmu"),
    {0}};
