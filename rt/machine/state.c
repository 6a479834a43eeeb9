/* state.c: the machine's state as a whole: the tables that emitted code defines, and the pools of what is under way. */
#include "state.h"

#include <string.h>

#include "command.h"
#include "emitted.h"
#include "ipcq.h"
#include "token.h"

void machine_reset(void)
{
    uint32_t cubes = kb_shape.sips * kb_shape.cubes;
    memset(kb_pe, 0, pe_count() * sizeof *kb_pe);
    memset(kb_servers, 0, pe_count() * kb_pe_servers * sizeof *kb_servers);
    memset(kb_sram, 0, cubes * sizeof *kb_sram);
    memset(kb_hbm, 0, pe_count() * sizeof *kb_hbm);
    memset(kb_pseudo_channels, 0, pe_count() * kb_attrs.hbm_ctrl_pcs * sizeof *kb_pseudo_channels);
    memset(kb_node_free_ps, 0, node_count() * sizeof *kb_node_free_ps);
    memset(kb_link_free_ps, 0, link_count() * sizeof *kb_link_free_ps);
    memories_reset();
    tokens_reset();
    transfers_reset();
    rings_reset();
    commands_reset();
}
