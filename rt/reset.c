/* reset.c: everything that a run leaves behind, put back: what kernels hold first, for their PEs know it. */
#include "reset.h"

#include "array.h"
#include "command.h"
#include "coro.h"
#include "device.h"
#include "emitted.h"
#include "exec.h"
#include "fanout.h"
#include "finished.h"
#include "figure.h"
#include "host_program.h"
#include "host_request.h"
#include "launch.h"
#include "oplog.h"
#include "ops.h"
#include "race.h"
#include "reference.h"
#include "ring.h"
#include "room.h"
#include "stats.h"
#include "store.h"
#include "tensor.h"
#include "token.h"
#include "util.h"

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
