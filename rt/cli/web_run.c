/* web_run.c: starts this program again for each run, with a terminal for its standard error, on which a run shows its
 * progress. */
#define _GNU_SOURCE
#include "web_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/fail.h"
#include "common/temporary.h"
#include "report/page.h"

enum { KEPT_MOST = 32, SAID_MOST = 4096, ARGUMENTS_MOST = 64 };

extern char **environ;

static struct {
    char folder[sizeof "/tmp/kbgen-web-XXXXXX"], path[64];
    pid_t process;                                      /* 0: no run is under way */
    int terminal;                                       /* the master side of its terminal; -1: none */
    uint32_t number;                                    /* of the last run that was started */
    char said[SAID_MOST];                               /* by it; the oldest text is given up */
    size_t said_bytes;
    char line[256];
    struct web_run kept[KEPT_MOST];                     /* by number, modulo KEPT_MOST */
} session = {.folder = "/tmp/kbgen-web-XXXXXX", .terminal = -1};

void web_runs_begin(void)
{
    if (!mkdtemp(session.folder))
        die("cannot make %s:", session.folder);
    temporary_add(session.folder);
    snprintf(session.path, sizeof session.path, "%s/report.html", session.folder);
    temporary_add(session.path);
}

/* ---- what a run writes */

static void said_add(const char *text, size_t length)
{
    if (length > SAID_MOST - 1)
        text += length - (SAID_MOST - 1), length = SAID_MOST - 1;
    size_t over = session.said_bytes + length > SAID_MOST - 1 ? session.said_bytes + length - (SAID_MOST - 1) : 0;
    memmove(session.said, session.said + over, session.said_bytes - over);
    session.said_bytes -= over;
    memcpy(session.said + session.said_bytes, text, length);
    session.said_bytes += length;
    session.said[session.said_bytes] = '\0';
}

static void terminal_read(void)
{
    char text[1024];
    for (ssize_t length; session.terminal >= 0 && (length = read(session.terminal, text, sizeof text)) != 0;) {
        if (length > 0) {
            said_add(text, (size_t)length);
        } else if (errno != EINTR) {
            break;                                      /* EAGAIN: nothing now; EIO: the run has closed it */
        }
    }
}

static bool ends_line(char c)
{
    return c == '\n' || c == '\r';
}

/* Copies a line without the sequences by which a terminal moves. */
static void line_copy(char *to, size_t room, const char *from, size_t length)
{
    size_t used = 0;
    for (size_t i = 0; i < length && used + 1 < room; i++) {
        if (from[i] == '\033') {
            while (i < length && !((from[i] >= 'A' && from[i] <= 'Z') || (from[i] >= 'a' && from[i] <= 'z')))
                i++;
            continue;
        }
        if ((unsigned char)from[i] >= ' ')
            to[used++] = from[i];
    }
    to[used] = '\0';
}

const char *web_run_line(void)
{
    *session.line = '\0';
    for (size_t end = session.said_bytes; end > 0 && !*session.line;) {
        size_t begin = end;
        while (begin > 0 && !ends_line(session.said[begin - 1]))
            begin--;
        line_copy(session.line, sizeof session.line, session.said + begin, end - begin);
        end = begin ? begin - 1 : 0;
    }
    return session.line;
}

/* ---- start */

static bool terminal_open(char *slave, size_t room)
{
    session.terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    return session.terminal >= 0 && !grantpt(session.terminal) && !unlockpt(session.terminal)
           && !ptsname_r(session.terminal, slave, room);
}

static void spawn(char *const *words)
{
    char slave[64];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    if (!terminal_open(slave, sizeof slave))
        die("a terminal for a run:");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, slave, O_WRONLY | O_NOCTTY, 0);
    sigemptyset(&none);                                 /* the session blocks the signals that end a run */
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    errno = posix_spawn(&session.process, "/proc/self/exe", &actions, &attributes, words, environ);
    if (errno)
        die("cannot start a run:");
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
}

uint32_t web_run_start(char *const *arguments, size_t count)
{
    char *words[ARGUMENTS_MOST + 8] = {(char *)program_name, "run"};
    size_t used = 2;
    if (session.process)
        return 0;
    for (size_t i = 0; i < count && i < ARGUMENTS_MOST; i++)
        words[used++] = arguments[i];
    words[used++] = "--report";                         /* its result has no long lists, as that of --json has */
    words[used++] = session.path;
    session.said_bytes = 0;
    *session.said = '\0';
    unlink(session.path);
    spawn(words);
    return ++session.number;
}

/* ---- end */

static void keep_result(void)
{
    struct web_run *run = &session.kept[session.number % KEPT_MOST];
    size_t length;
    char *text = read_file(session.path, &length);
    free(run->result);
    free(run->said);
    *run = (struct web_run){session.number, text ? page_result(text) : NULL, strdup(session.said)};
    unlink(session.path);
}

void web_run_attend(void)
{
    terminal_read();
    if (!session.process || waitpid(session.process, NULL, WNOHANG) != session.process)
        return;
    session.process = 0;
    terminal_read();
    close(session.terminal);
    session.terminal = -1;
    keep_result();
}

uint32_t web_run_current(void)
{
    return session.process ? session.number : 0;
}

void web_run_stop(void)
{
    if (session.process)
        kill(session.process, SIGTERM);
}

const struct web_run *web_run_find(uint32_t number)
{
    const struct web_run *run = &session.kept[number % KEPT_MOST];
    return number && run->number == number ? run : NULL;
}

/* A run that is killed leaves the files that it was writing. */
static void folder_clear(void)
{
    DIR *folder = opendir(session.folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
}

void web_runs_end(void)
{
    if (!session.process)
        return;
    kill(session.process, SIGKILL);
    waitpid(session.process, NULL, 0);
    session.process = 0;
    folder_clear();
}
