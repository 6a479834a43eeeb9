/* process.c: runs in a process that is the simulator's. */
#include "process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/leave.h"
#include "base/progress.h"
#include "base/threads.h"
#include "common/fail.h"
#include "launch/trap.h"
#include "session/simulation.h"
#include "sim/loop.h"

/* What fail_exit does. A run that has failed still reports, and a sweep goes on with its next point. */
static void ends(int status, void *arg)
{
    (void)arg;
    simulation_fails(status);
    leave_process(status);
}

/* Writes messages, and keeps the last line for the result. */
static void take(const char *text, void *arg)
{
    (void)arg;
    fputs(text, stderr);
    simulation_said(text);
}

/* At the exit of the process: a run that did not end must not look like a good one, whatever has ended the process. */
static void at_exit(int status, void *arg)
{
    (void)arg;
    if (!simulation_is_under_way() || status)
        return;
    leave_watch(NULL);
    message("%s: the process ends at %" PRIu64 " ps; the run did not\n", program_name, sim_now_ps());
    _exit(STATUS_RUN_FAILED);
}

void process_prepare(void)
{
    on_exit(at_exit, NULL);
    traps_catch(simulation_bench_fault);
    fail_set_exit(ends, NULL);
    message_set_take(take, NULL);
    progress_attend = simulation_attend;
}

static void silence(int stream)
{
    int null = open("/dev/null", O_WRONLY);
    if (null < 0 || dup2(null, stream) < 0)
        die("cannot open /dev/null:");
    close(null);
}

pid_t process_fork(void)
{
    pid_t parent = getpid(), child = traps_fork();
    if (child < 0)
        die("cannot fork:");
    if (child)
        return child;
    /* SIGKILL: a run takes other signals as its own end, and the process would go on. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
        raise(SIGKILL);
    silence(STDOUT_FILENO);
    silence(STDERR_FILENO);
    simulation_forked();
    threads_forked();
    return 0;
}
