/* observers.c: all observers of the machine, in the order in which they are told of a moment. */
#include "observers.h"

#include <stddef.h>

#include "fault_stop.h"
#include "fastforward/fastforward.h"
#include "fastforward/open_rows.h"
#include "fastforward/symmetry.h"
#include "oplog/oplog.h"
#include "probe/account.h"
#include "races/race.h"
#include "report/activity.h"
#include "report/command_log.h"
#include "report/demand.h"
#include "report/plan_dump.h"
#include "report/profile.h"
#include "report/result.h"
#include "report/summary.h"
#include "report/trace.h"
#include "report/usage.h"
#include "sim/observer.h"
#include "timeline/timeline.h"
#include "timeline/waves.h"
#include "why/causes.h"

static struct observer *const all[] = {
    &why_observer,                                      /* --why; first: it knows the cause of what the others see */
    &profile_observer,                                  /* --profile */
    &symmetry_observer,                                 /* while PEs sleep */
    &fastforward_observer,                              /* unless --exact-events */
    &open_rows_observer,                                /* while the requests of a period are recorded */
    &plan_observer,                                     /* --dump plan */
    &trace_observer,                                    /* --trace */
    &components_observer,                               /* --trace-all with --trace */
    &command_log_observer,                              /* --command-log */
    &usage_observer,                                    /* --stats, --report */
    &activity_observer,                                 /* --report */
    &timeline_observer,                                 /* --timeline */
    &timeline_end_observer,                             /* instead of it, after the last slice */
    &waves_observer,                                    /* --waves */
    &account_observer,                                  /* probe */
    &oplog_observer,                                    /* always */
    &services_observer,                                 /* --oplog */
    &reservations_observer,                                 /* --trace-all with --oplog */
    &race_observer,                                     /* --races, --data debug */
    &command_rows_observer,                             /* --json, --points */
    &summary_observer,                                  /* always */
    &demand_observer,                                   /* always */
    &fault_stop_observer,                               /* while another program asks for it */
    &comparison_observer,                               /* last: it may change the machine at the end of an instant */
    NULL,
};

void observers_init(void)
{
    observers_use(all);
    observer_watch(&oplog_observer, true);
    observer_watch(&summary_observer, true);
    observer_watch(&demand_observer, true);
}
