/* process.c: runs other programs, without a shell.
 *
 * They run in the root folder with absolute paths, so that no file they write contains the name of the folder where
 * kbgen was called. Each is the leader of a process group, so that it can be ended together with the programs that it
 * has started itself: a compiler's driver does not end the compiler proper. */
#define _GNU_SOURCE                                     /* pipe2, addchdir_np, memfd_create */

#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "timing.h"

enum { PATIENCE = 1000 };                               /* moments of 2 ms */

extern char **environ;

/* For the signal handler: the processes that may be running. */
static struct process *volatile watched;
static volatile size_t watched_count;

/* Ends all processes of a group and waits for them: those whose parent has ended are this process's children now. */
static void stop_group(pid_t leader)
{
    static const struct timespec moment = {.tv_nsec = 2000000};
    if (kill(-leader, SIGTERM) != 0)
        return;
    kill(-leader, SIGCONT);
    for (unsigned moments = 0; moments < PATIENCE; moments++) {
        pid_t ended = waitpid(-leader, NULL, WNOHANG);
        if (ended < 0)
            return;
        if (ended == 0)
            nanosleep(&moment, NULL);
    }
    kill(-leader, SIGKILL);
    while (waitpid(-leader, NULL, 0) > 0)
        ;
}

void processes_stop(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (size_t i = 0; i < watched_count; i++) {
        pid_t pid = watched[i].pid;
        if (pid > 0 && !watched[i].run)
            stop_group(pid);
        else if (pid > 0 && kill(pid, SIGTERM) == 0)
            waitpid(pid, NULL, 0);
    }
}

static void watch(struct process *jobs, size_t count)
{
    watched_count = 0;
    watched = jobs;
    watched_count = count;
}

sigset_t signals_hold(void)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    return before;
}

/* A file in memory with this content, positioned at its beginning. */
static int file_of(const char *text)
{
    int file = memfd_create("input", MFD_CLOEXEC);
    size_t left = strlen(text);
    for (ssize_t put; left; text += put, left -= (size_t)put)
        if (file < 0 || (put = write(file, text, left)) < 0)
            die("hand over a text:");
    if (lseek(file, 0, SEEK_SET) != 0)
        die("hand over a text:");
    return file;
}

/* Starts a program. If `output` is not negative it becomes the program's `stream`, standard output or error. */
static void start(struct process *job, int output, int stream)
{
    int input = job->input ? file_of(job->input) : -1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    if (input >= 0)
        posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    else
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (output >= 0)
        posix_spawn_file_actions_adddup2(&actions, output, stream);
    struct words args = {0};
    words_add_all(&args, &job->words);
    words_add(&args, NULL);
    job->ms = now_ms();
    sigset_t before = signals_hold();                   /* until `pid` tells of it; the program gets these signals */
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &before);
    errno = posix_spawnp(&job->pid, args.word[0], &actions, &attributes, (char *const *)args.word, environ);
    if (errno)
        die("run %s (%s):", args.word[0], job->needs ? job->needs : "install a C compiler, or name one with --cc");
    sigprocmask(SIG_SETMASK, &before, NULL);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (input >= 0)
        close(input);
}

/* Starts a function in a child process whose standard error goes to a file in memory. */
static void start_own(struct process *job)
{
    job->errors = memfd_create("errors", MFD_CLOEXEC);
    if (job->errors < 0)
        die("keep what is said:");
    job->ms = now_ms();
    pid_t parent = getpid();
    sigset_t before = signals_hold();
    job->pid = fork();
    if (job->pid < 0)
        die("start a process:");
    if (job->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);               /* a killed kbgen leaves no process behind */
        if (getppid() != parent)
            _exit(3);
        watch(NULL, 0);
        dup2(job->errors, STDERR_FILENO);
        sigprocmask(SIG_SETMASK, &before, NULL);
        exit(job->run(job));
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static void ended(struct process *job, int status)
{
    job->status = status;
    job->ms = now_ms() - job->ms;
    job->pid = 0;
}

/* Waits until one of the processes has ended. Its pid is not given to another process before it is reaped below. */
static void wait_one(struct process *jobs, size_t count)
{
    siginfo_t end;
    int failed, status;
    do
        failed = waitid(P_ALL, 0, &end, WEXITED | WNOWAIT);
    while (failed && errno == EINTR);
    if (failed)
        die("wait for %s:", jobs->what);
    sigset_t before = signals_hold();
    if (waitpid(end.si_pid, &status, 0) != end.si_pid)
        die("wait for %s:", jobs->what);
    struct process *job = jobs;
    while (job < jobs + count && job->pid != end.si_pid)
        job++;
    if (job < jobs + count)
        ended(job, status);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (job < jobs + count && job->ended)
        job->ended(job);
}

static void start_any(struct process *job)
{
    if (job->run)
        start_own(job);
    else
        start(job, -1, -1);
}

struct process *processes_run(struct process *jobs, size_t count, size_t most)
{
    watch(jobs, count);
    for (size_t started = 0, running = 0; started < count || running; running--) {
        for (; started < count && running < most; running++)
            start_any(&jobs[started++]);
        wait_one(jobs, started);
    }
    watch(NULL, 0);
    for (size_t i = 0; i < count; i++)
        if (jobs[i].status != 0)
            return &jobs[i];
    return NULL;
}

static const char *run_for(struct process *job, int stream, size_t *length)
{
    int ends[2];
    char *text = NULL, buffer[1 << 16];
    FILE *out = open_memstream(&text, length);
    if (!out || pipe2(ends, O_CLOEXEC) != 0)
        die("make a pipe:");
    watch(job, 1);
    start(job, ends[1], stream);
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
        fwrite(buffer, 1, (size_t)got, out);
    close(ends[0]);
    wait_one(job, 1);
    watch(NULL, 0);
    if (fclose(out) != 0)
        die("out of memory");
    const char *kept = arena_text(text, *length);
    free(text);
    return kept;
}

const char *process_output(struct process *job, size_t *length)
{
    return run_for(job, STDOUT_FILENO, length);
}

const char *process_errors(struct process *job, size_t *length)
{
    return run_for(job, STDERR_FILENO, length);
}
