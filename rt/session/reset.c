/* reset.c: removes everything that a run leaves behind, room by room.
 *
 * Each room has one reset, named after it, which nobody else calls. It sets the room's variables to what they are
 * before the first run, and releases what does not belong to the arena: memory of malloc, pools, files, stacks. The
 * arena itself is released afterwards. Rooms are reset from the last to the first: what a room releases may still refer
 * to rooms before it. Best are all variables of a file in one struct, which one assignment resets. */
#include "reset.h"

#include "base/ops.h"
#include "datapass/exec.h"
#include "device/device.h"
#include "fastforward/fastforward.h"
#include "host/host.h"
#include "launch/launch.h"
#include "machine/state.h"
#include "oplog/oplog.h"
#include "races/race.h"
#include "reference/reference.h"
#include "report/summary.h"
#include "sim/loop.h"
#include "store/store.h"

void simulator_reset(void)
{
    report_reset();
    reference_reset();
    host_reset();
    device_reset();
    races_reset();
    datapass_reset();
    oplog_reset();
    store_reset();
    fastforward_reset();
    sim_reset();                                        /* empties the queue while what waits in it is still there */
    launch_reset();
    machine_reset();
    base_reset();
}
