/* reset.c: puts back everything that a run leaves behind, room by room.
 *
 * Each room has one reset, named after it, which nobody else calls. It puts the room's variables back to what they are
 * before the first run, and releases what is not the arena's: memory of malloc, pools, files, stacks. The arena itself
 * goes back afterwards. Rooms are reset from the last to the first: what a room releases may still refer to those
 * before it. What a run keeps in variables of a file is best one struct, which one assignment puts back. */
#include "reset.h"

#include "base/ops.h"
#include "datapass/exec.h"
#include "device/device.h"
#include "fastforward/periodic.h"
#include "host/host.h"
#include "launch/launch.h"
#include "machine/state.h"
#include "oplog/oplog.h"
#include "races/race.h"
#include "reference/reference.h"
#include "report/result.h"
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
    launch_reset();
    machine_reset();
    sim_reset();
    base_reset();
}
