/* reset.c: everything that a run leaves behind, put back: what kernels hold first, for their PEs know it. */
#include "reset.h"

#include "store/array.h"
#include "machine/command.h"
#include "sim/coroutine.h"
#include "device/device.h"
#include "machine/emitted.h"
#include "datapass/exec.h"
#include "launch/fanout.h"
#include "report/commands.h"
#include "host/figure.h"
#include "host/host_program.h"
#include "launch/host_request.h"
#include "launch/launch.h"
#include "oplog/oplog.h"
#include "base/ops.h"
#include "races/race.h"
#include "reference/reference.h"
#include "machine/ipcq.h"
#include "store/allocator.h"
#include "machine/stats.h"
#include "store/store.h"
#include "store/tensor.h"
#include "machine/token.h"
#include "report/util.h"

static void reset_machine(void)
{
    event_reset();
    machine_reset();
    memories_reset();
    tokens_reset();
    transfers_reset();
    rings_reset();
    stats = (struct stats){0};
}

static void reset_host(void)
{
    launches_reset();
    memory_requests_reset();
    util_reset();
    fanout_reset();
    host_launch_reset();
    programs_reset();
    figures_reset();
    verifications_reset();
    references_reset();
    arrays_reset();
}

static void reset_data(void)
{
    store_reset();                                      /* it holds calls of the op log */
    commands_reset();
    finished_reset();
    races_reset();
    oplog_reset();
    exec_reset();
    room_reset();
    tensors_reset();
    ops_reset();
}

void sim_reset(void)
{
    buffers_reset();
    coro_reset();
    reset_machine();
    reset_host();
    reset_data();
}
