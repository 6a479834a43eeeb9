/* state.c: the machine's state as a whole: the tables that emitted code defines, and the pools of what is under way. */
#include "state.h"

#include <string.h>

#include "command.h"
#include "dma.h"
#include "emitted.h"
#include "ipcq.h"
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
#define DATA_EACH STATE_LISTED_ARRAY
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

/* ---- reset */

void machine_reset(void)
{
    memset(kb_pe, 0, pe_count() * sizeof *kb_pe);
    memset(kb_servers, 0, pe_count() * kb_pe_servers * sizeof *kb_servers);
    memset(kb_sram, 0, cube_count() * sizeof *kb_sram);
    memset(kb_hbm, 0, pe_count() * sizeof *kb_hbm);
    memset(kb_pseudo_channels, 0, pe_count() * kb_attrs.hbm_ctrl_pcs * sizeof *kb_pseudo_channels);
    memset(kb_nodes, 0, node_count() * sizeof *kb_nodes);
    memset(kb_links, 0, link_count() * sizeof *kb_links);
    memories_reset();
    tokens_reset();
    transfers_reset();
    ipcq_reset();
    commands_reset();
}
