/* worker.c: simulators as processes that answer points, one line for each.
 *
 * All pipes are non-blocking: neither a simulator that reads no more nor one that says very much holds up the others. Each
 * is the leader of a process group, so that Ctrl-C at a terminal reaches kbgen alone. */
#define _GNU_SOURCE                                     /* pipe2, memfd_create */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "../../rt/common/fail.h"
#include "../build/timing.h"

enum { ROOM_LEAST = 2, ROOM_MOST = 256, AHEAD_MS = 50, LAST_WORDS = 400, CHUNK = 65536 };

const char *const metric_names[METRICS] = {
#define METRIC(name, unit, what, expression) #name,
#include "../../rt/report/metrics.def"
#undef METRIC
};

struct text {
    char *bytes;
    size_t length, room;
};

struct worker {
    pid_t pid;
    int input, output, errors;                          /* this side of its pipes; -1: closed */
    struct run_list runs;
    struct text unsent, received;
    char last_words[LAST_WORDS + 1];                    /* the end of its standard error */
    double since_ms;                                    /* its first run has begun then, about */
    double mean_ms;                                     /* of a run; 0: none has been answered */
    int status;                                         /* of waitpid, once it is `ended` */
    bool ended, is_broken;                              /* broken: it does not answer as simulators do */
};

/* ---- lists of runs */

void run_list_add(struct run_list *list, struct run *run)
{
    if (!list->first)
        list->end = &list->first;
    run->next = NULL;
    *list->end = run;
    list->end = &run->next;
    list->count++;
}

void run_list_add_first(struct run_list *list, struct run *run)
{
    if (!list->first)
        list->end = &run->next;
    run->next = list->first;
    list->first = run;
    list->count++;
}

struct run *run_list_take(struct run_list *list)
{
    struct run *run = list->first;
    if (!run)
        return NULL;
    list->first = run->next;
    list->count--;
    return run;
}

/* ---- texts that grow */

static void *or_die(void *memory)
{
    if (!memory)
        die("out of memory");
    return memory;
}

static void text_add(struct text *text, const char *bytes, size_t length)
{
    if (text->length + length + 1 > text->room) {
        text->room = 2 * (text->length + length + 1);
        text->bytes = or_die(realloc(text->bytes, text->room));
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

static void text_drop(struct text *text, size_t length)
{
    text->length -= length;
    memmove(text->bytes, text->bytes + length, text->length);
}

/* ---- processes */

/* In a child: ends with kbgen, takes signals again, and writes its errors to a file. */
static void become_child(pid_t parent, int death, int errors, const sigset_t *mask)
{
    prctl(PR_SET_PDEATHSIG, death);
    if (getppid() != parent)
        _exit(STATUS_HOST_FAILED);
    setpgid(0, 0);
    dup2(errors, STDERR_FILENO);
    sigprocmask(SIG_SETMASK, mask, NULL);
}

/* Blocks all signals while a child is what its parent was; returns the mask that the child is to have. */
static sigset_t hold(void)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    return before;
}

static sigset_t none(void)
{
    sigset_t set;
    sigemptyset(&set);
    return set;
}

pid_t child_fork(int *errors)
{
    pid_t parent = getpid();
    *errors = memfd_create("errors", MFD_CLOEXEC);
    if (*errors < 0)
        die("keep what is said:");
    sigset_t before = hold(), nothing = none();
    pid_t pid = fork();
    if (pid < 0)
        die("start a process:");
    if (!pid)
        become_child(parent, SIGTERM, *errors, &nothing);
    else
        sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

const char *child_said(int errors)
{
    enum { SAID_MOST = 16384 };
    char *text = arena_alloc(SAID_MOST + 1, 1);
    ssize_t length = pread(errors, text, SAID_MOST, 0);
    close(errors);
    for (; length > 0 && text[length - 1] == '\n'; length--)
        text[length - 1] = '\0';
    return text;
}

const char *on_one_line(const char *text)
{
    enum { LINE_MOST = 1000 };
    char *line = arena_text(text, strlen(text) < LINE_MOST ? strlen(text) : LINE_MOST);
    for (char *c = line; *c; c++)
        if (*c == '\n')
            *c = ';';
    return printable(line);
}

static void pipe_or_die(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0)
        die("make a pipe:");
}

static int own_end(int end)
{
    fcntl(end, F_SETFL, O_NONBLOCK);
    return end;
}

struct worker *worker_start(char *const *words)
{
    struct worker *worker = or_die(calloc(1, sizeof *worker));
    int input[2], output[2], errors[2];
    pid_t parent = getpid();
    pipe_or_die(input);
    pipe_or_die(output);
    pipe_or_die(errors);
    sigset_t before = hold(), nothing = none();
    worker->pid = fork();
    if (worker->pid < 0)
        die("start a simulator:");
    if (!worker->pid) {
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        become_child(parent, SIGKILL, errors[1], &nothing);
        signal(SIGPIPE, SIG_DFL);
        execv(words[0], words);
        fprintf(stderr, "cannot run %s: %s\n", words[0], strerror(errno));
        _exit(STATUS_HOST_FAILED);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(input[0]);
    close(output[1]);
    close(errors[1]);
    worker->input = own_end(input[1]);
    worker->output = own_end(output[0]);
    worker->errors = own_end(errors[0]);
    return worker;
}

void worker_kill(struct worker *worker)
{
    if (!worker->ended)
        kill(worker->pid, SIGKILL);
}

static void reap(struct worker *worker)
{
    while (!worker->ended && waitpid(worker->pid, &worker->status, 0) < 0 && errno == EINTR)
        continue;
    worker->ended = true;
}

void worker_end(struct worker *worker)
{
    const int ends[] = {worker->input, worker->output, worker->errors};
    worker_kill(worker);
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (ends[i] >= 0)
            close(ends[i]);
    reap(worker);
    free(worker->unsent.bytes);
    free(worker->received.bytes);
    free(worker);
}

const char *worker_epitaph(struct worker *worker)
{
    const char *words = worker->last_words;
    size_t length = strlen(words);
    while (length && words[length - 1] == '\n')
        length--;
    words = arena_text(words, length);
    const char *newline = strrchr(words, '\n');
    words = printable(newline ? newline + 1 : words);
    const char *how = worker->is_broken ? "an answer that is none"
                    : WIFSIGNALED(worker->status) ? arena_printf("signal %d", WTERMSIG(worker->status))
                    : arena_printf("status %d", WEXITSTATUS(worker->status));
    return *words ? arena_printf("%s: %s", how, words) : how;
}

/* ---- runs */

static void send_lines(struct worker *worker)
{
    struct text *unsent = &worker->unsent;
    ssize_t put = unsent->length && worker->input >= 0 ? write(worker->input, unsent->bytes, unsent->length) : 0;
    if (put > 0)
        text_drop(unsent, (size_t)put);
    else if (put < 0 && errno != EAGAIN && errno != EINTR)
        unsent->length = 0;                             /* it has ended, as its output will tell */
}

void worker_give(struct worker *worker, struct run *run)
{
    if (!worker->runs.first)
        worker->since_ms = now_ms();
    run_list_add(&worker->runs, run);
    text_add(&worker->unsent, run->line, strlen(run->line));
    text_add(&worker->unsent, "\n", 1);
}

size_t worker_load(const struct worker *worker)
{
    return worker->runs.count;
}

size_t worker_room(const struct worker *worker)
{
    size_t most = ROOM_LEAST;
    if (worker->mean_ms > 0 && worker->mean_ms < (double)AHEAD_MS / ROOM_LEAST)
        most = worker->mean_ms * ROOM_MOST < AHEAD_MS ? ROOM_MOST : (size_t)(AHEAD_MS / worker->mean_ms);
    return most > worker->runs.count ? most - worker->runs.count : 0;
}

bool worker_is_late(const struct worker *worker, double seconds)
{
    return worker->runs.first && now_ms() - worker->since_ms > seconds * 1e3;
}

/* ---- answers: one object of integers and texts a line, as rt/report/metrics.c writes it */

/* Reads a JSON string behind its first quote, in place; *at is moved behind the last one. */
static char *read_string(char **at)
{
    char *text = *at, *to = text, *from = text;
    for (; *from && *from != '"'; from++) {
        if (*from != '\\' || !from[1])
            *to++ = *from;
        else if (*++from == 'u' && strlen(from) > 4)    /* of control characters alone */
            *to++ = '?', from += 4;
        else
            *to++ = *from == 'n' || *from == 't' ? ' ' : *from;
    }
    *at = from + (*from == '"');
    *to = '\0';
    return text;
}

static void set_text(char **to, const char *text)
{
    free(*to);
    *to = or_die(strdup(text));
}

/* Takes one member of an answer. */
static void take_number(struct run *run, const char *key, int64_t number)
{
    static size_t next;                                 /* the metrics come in their order */
    for (size_t i = 0; i < METRICS; i++, next++) {
        next %= METRICS;
        if (!strcmp(key, metric_names[next])) {
            run->metrics[next++] = number;
            return;
        }
    }
    if (!strcmp(key, "status"))
        run->exit = (int)number;
    else if (!strcmp(key, "host_us"))
        run->host_us = (uint64_t)number;
}

/* Reads the object "used" behind its brace, in place. */
static bool read_used(struct run *run, char **line)
{
    char text[1024] = "";
    while (**line == '"') {
        ++*line;
        const char *name = read_string(line);
        if (strncmp(*line, ": ", 2))
            return false;
        uint64_t number = strtoull(*line + 2, line, 10);
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s=%" PRIu64 ",", name, number);
        *line += strspn(*line, ", ");
    }
    set_text(&run->used, text);
    return *(*line)++ == '}';
}

/* Returns whether the line is an answer. */
static bool read_answer(struct run *run, char *line)
{
    run->exit = -1;
    run->max_err = NAN;
    if (*line++ != '{')
        return false;
    while (*line == '"' || *line == ',' || *line == ' ') {
        if (*line != '"') {
            line++;
            continue;
        }
        line++;
        const char *key = read_string(&line);
        if (strncmp(line, ": ", 2))
            return false;
        line += 2;
        if (*line == '"') {
            line++;
            const char *text = read_string(&line);
            if (!strcmp(key, "ended"))
                set_text(&run->status, text);
            else if (!strcmp(key, "why"))
                set_text(&run->why, text);
        } else if (*line == '{') {
            line++;
            if (!read_used(run, &line))
                return false;
        } else if (!strncmp(line, "null", 4)) {
            line += 4;
        } else {
            char *end;
            if (!strcmp(key, "max_err"))
                run->max_err = strtod(line, &end);
            else
                take_number(run, key, (int64_t)strtoull(line, &end, 10));
            if (end == line)
                return false;
            line = end;
        }
    }
    return *line == '}' && run->status && run->exit >= 0;
}

/* Keeps the end of what is said. Returns whether something was. */
static bool hear(struct worker *worker)
{
    static char chunk[CHUNK];
    ssize_t got = read(worker->errors, chunk, sizeof chunk);
    if (got == 0) {
        close(worker->errors);
        worker->errors = -1;
    }
    if (got <= 0)
        return false;
    size_t kept = strlen(worker->last_words), new = (size_t)got < LAST_WORDS ? (size_t)got : LAST_WORDS;
    size_t over = kept + new > LAST_WORDS ? kept + new - LAST_WORDS : 0;
    memmove(worker->last_words, worker->last_words + over, kept - over);
    memcpy(worker->last_words + kept - over, chunk + got - new, new);
    worker->last_words[kept - over + new] = '\0';
    return true;
}

static void answer(struct worker *worker, char *line, struct run_list *answered)
{
    struct run *run = worker->runs.first;
    if (!run || !read_answer(run, line)) {
        worker->is_broken = true;
        worker_kill(worker);
        return;
    }
    if (strcmp(run->status, "ok")) {                    /* what it has said is not of the next run, which may crash */
        while (worker->errors >= 0 && hear(worker))
            continue;
        worker->last_words[0] = '\0';
    }
    run_list_add(answered, run_list_take(&worker->runs));
    double now = now_ms(), took = now - worker->since_ms;
    worker->mean_ms = worker->mean_ms > 0 ? 0.9 * worker->mean_ms + 0.1 * took : took;
    worker->since_ms = now;
}

/* Returns false at the end of the output. */
static bool receive(struct worker *worker, struct run_list *answered)
{
    static char chunk[CHUNK];
    ssize_t got = read(worker->output, chunk, sizeof chunk);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    text_add(&worker->received, chunk, (size_t)got);
    size_t done = 0;
    for (char *newline; !worker->is_broken &&
         (newline = memchr(worker->received.bytes + done, '\n', worker->received.length - done));) {
        *newline = '\0';
        answer(worker, worker->received.bytes + done, answered);
        done = (size_t)(newline + 1 - worker->received.bytes);
    }
    text_drop(&worker->received, done);
    return got > 0;
}

void worker_polls(const struct worker *worker, struct pollfd *polls)
{
    polls[0] = (struct pollfd){worker->output, POLLIN, 0};
    polls[1] = (struct pollfd){worker->errors, POLLIN, 0};
    polls[2] = (struct pollfd){worker->unsent.length ? worker->input : -1, POLLOUT, 0};
}

bool worker_work(struct worker *worker, const struct pollfd *polls, struct run_list *answered)
{
    if (polls[2].revents)
        send_lines(worker);
    if (polls[1].revents && worker->errors >= 0)
        hear(worker);
    if (!polls[0].revents || receive(worker, answered))
        return true;
    reap(worker);
    if (worker->errors >= 0)
        hear(worker);
    for (struct run *run; (run = run_list_take(&worker->runs));) {
        free(run->status);
        free(run->why);
        run->status = run->why = NULL;
        run_list_add(answered, run);
    }
    return false;
}
