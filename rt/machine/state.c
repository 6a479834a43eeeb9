/* state.c: the machine's state as a whole: the tables that emitted code defines, and what each file of this room has. */
#include "state.h"

#include <string.h>

#include "command.h"
#include "dma.h"
#include "emitted.h"
#include "ipcq.h"
#include "mmu.h"
#include "operand.h"
#include "peers.h"
#include "dma_requests.h"
#include "stats.h"
#include "tile.h"

/* ---- no field is missing in state.def */

STATE_LISTED(pe)
#define PE STATE_LISTED_FIELD
#define PE_EACH STATE_LISTED_ARRAY
#include "state.def"
STATE_LISTED_END
STATE_LISTED(busy)
#define BUSY STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(queue)
#define QUEUE STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(server)
#define SERVER STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(token)
#define TOKEN STATE_LISTED_FIELD
#define TOKEN_EACH STATE_LISTED_ARRAY
#include "state.def"
STATE_LISTED_END
STATE_LISTED(buffer)
#define BUFFER STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(event)
#define EVENT STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(command)
#define COMMAND STATE_LISTED_FIELD
#define COMMAND_EACH STATE_LISTED_ARRAY
#include "state.def"
STATE_LISTED_END
STATE_LISTED(request)
#define REQUEST STATE_LISTED_FIELD
#define REQUEST_EACH STATE_LISTED_ARRAY
#include "state.def"
STATE_LISTED_END
STATE_LISTED(epilogue)
#define EPILOGUE STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(transfer)
#define TRANSFER STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(data_message)
#define DATA STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(message)
#define MESSAGE STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(channels)
#define CHANNELS STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(pseudo_channel)
#define PSEUDO_CHANNEL STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(hbm_slice)
#define SLICE STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(fabric_node)
#define FABRIC_NODE STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(fabric_link)
#define FABRIC_LINK STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END

/* ---- set-up and reset */

void machine_init(void)
{
    fabric_init();
    memory_init();
    stats_init();
    pes_init();
}

void machine_reset(void)
{
    memset(kb_pe, 0, pe_count() * sizeof *kb_pe);
    memset(kb_servers, 0, pe_count() * kb_pe_servers * sizeof *kb_servers);
    memset(kb_sram, 0, cube_count() * sizeof *kb_sram);
    memset(kb_hbm, 0, slice_count() * sizeof *kb_hbm);
    memset(kb_pseudo_channels, 0, slice_count() * kb_attrs.hbm_ctrl_pcs * sizeof *kb_pseudo_channels);
    memset(kb_nodes, 0, node_count() * sizeof *kb_nodes);
    memset(kb_links, 0, link_count() * sizeof *kb_links);
    models_reset();
    fabric_reset();
    payloads_reset();
    operands_reset();
    tokens_reset();
    transfers_reset();
    dma_requests_reset();
    ipcq_reset();
    peers_reset();
    mmu_reset();
    commands_reset();
}

/* ---- save and restore */

static void carry_busy(struct state_image *image, struct busy *busy)
{
#define BUSY(field, kind, when) STATE_CARRY(BUSY, busy, field, kind)
#include "state.def"
}

static void carry_channels(struct state_image *image, struct channels *channels)
{
#define CHANNELS(field, kind, when) STATE_CARRY(CHANNELS, channels, field, kind)
#include "state.def"
}

/* The other fields of a PE on which nothing is under way are as at the start, or do not matter. */
static void carry_pe(struct state_image *image, struct pe *pe)
{
    carry_busy(image, &pe->dma);
    carry_busy(image, &pe->compute);
    carry_channels(image, &pe->tcm);
    mmu_carry(pe, image);
}

static void carry_memories(struct state_image *image)
{
    for (uint32_t i = 0; i < cube_count(); i++)
        carry_channels(image, &kb_sram[i]);
    for (uint32_t i = 0; i < slice_count(); i++) {
        struct hbm_slice *slice = &kb_hbm[i];
        struct pseudo_channel *channels = slice_channels(i);
        for (struct pseudo_channel *pc = channels; pc < channels + kb_attrs.hbm_ctrl_pcs; pc++) {
#define PSEUDO_CHANNEL(field, kind, when) STATE_CARRY(PSEUDO_CHANNEL, pc, field, kind)
#include "state.def"
        }
#define SLICE(field, kind, when) STATE_CARRY(SLICE, slice, field, kind)
#include "state.def"
    }
}

static void carry_fabric(struct state_image *image)
{
    for (struct fabric_node *node = kb_nodes; node < kb_nodes + node_count(); node++) {
#define FABRIC_NODE(field, kind, when) STATE_CARRY(FABRIC_NODE, node, field, kind)
#include "state.def"
    }
    for (struct fabric_link *link = kb_links; link < kb_links + link_count(); link++) {
#define FABRIC_LINK(field, kind, when) STATE_CARRY(FABRIC_LINK, link, field, kind)
#include "state.def"
    }
}

static void carry_machine(struct state_image *image)
{
    uint64_t t_ps = now_ps;
    state_carry(image, &t_ps, sizeof t_ps);
    if (image->restores)
        event_restart(t_ps);
    for (uint32_t i = 0; i < pe_count(); i++)
        carry_pe(image, &kb_pe[i]);
    carry_memories(image);
    carry_fabric(image);
    models_carry(image);
    fabric_carry(image);
    ipcq_carry(image);
    state_carry(image, &stats, sizeof stats);
}

/* Whether nothing is under way on a PE. */
static bool is_idle(const struct pe *pe)
{
    bool idle = !pe->submitted && !pe->scheduling && !pe->feeding && !pe->feed && !pe->travelling && !pe->waiting;
    for (uint32_t i = 0; i < kb_pe_servers; i++)
        idle &= !pe->servers[i].token;
    return idle;
}

/* Why the state cannot be saved now, or NULL. */
static const char *under_way(void)
{
    uint64_t kernel_ps;
    if (event_due || event_waiting(&kernel_ps) || kernel_ps != UINT64_MAX)
        return "a launch, a request of the host or a credit is under way";
    for (struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++) {
        if (pe->failed)
            return "a kernel has failed";
        if (!is_idle(pe))
            return "a command waits";
    }
    return ipcq_under_way();
}

const char *machine_state_save(struct state_image *image)
{
    const char *why = under_way();
    image->bytes.count = 0;
    image->restores = false;
    if (!why)
        carry_machine(image);
    return why;
}

const char *machine_state_restore(struct state_image *image)
{
    const char *why = under_way();
    image->at = 0;
    image->restores = true;
    if (!why)
        carry_machine(image);
    return why;
}

void state_image_free(struct state_image *image)
{
    array_free(&image->bytes);
}
