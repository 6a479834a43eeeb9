/* fault_stop.c: faults of kernels, for whoever drives a run. */
#include "fault_stop.h"

#include <stddef.h>

#include "launch/kernel.h"
#include "sim/observer.h"

static void (*tell)(const struct tl *tl);

static void kernel_ends(const struct tl *tl)
{
    if (tl->failure.set)
        tell(tl);
}

struct observer fault_stop_observer = {
    .name = "stops at faults",
    .kernel_ends = kernel_ends,
};

void fault_stop_set(void (*failed)(const struct tl *tl))
{
    tell = failed;
    observer_watch(&fault_stop_observer, failed);
}
