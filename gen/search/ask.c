/* ask.c: points asked for line by line, answered as they end.
 *
 * Neither program waits for the other one to read: answers that the pipe does not take stay in memory, and lines are read
 * while they do. */
#include "ask.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/array.h"
#include "../../rt/common/json.h"
#include "../../rt/common/read.h"
#include "../../rt/common/yaml.h"
#include "vector.h"

/* A pipe that poll reports takes PIPE_PART bytes at once (pipe(7)). LINE_MOST: longer lines are refused. */
enum { PROTOCOL = 1, PENDING_MOST = 4096, BUCKETS = 4096, LISTED_MOST = 4096, PIPE_PART = 4096, READ_PART = 1 << 16,
       LINE_MOST = 1 << 20, WAIT_MS = 1000 };

/* A point under way. */
struct question {
    struct question *next;                              /* in its bucket */
    uint64_t number;
    char id[];                                          /* as JSON has it */
};

static struct {
    struct space *space;
    struct evaluator *evaluator;
    uint64_t next;                                      /* number of a trial */
    unsigned lines;                                     /* read so far */
    struct ARRAY(char) input, output;
    size_t written;                                     /* of the output */
    bool skips;                                         /* the rest of a line that is too long */
    bool has_ended, is_unread;                          /* the input; the output has no reader */
    struct question *buckets[BUCKETS];
} asked;

/* ---- answers */

struct answer {
    FILE *out;
    struct json json;
    char *text;
    size_t length;
};

static void answer_begin(struct answer *answer)
{
    *answer = (struct answer){0};
    answer->out = open_memstream(&answer->text, &answer->length);
    if (!answer->out)
        die("out of memory");
    json_open(&answer->json, answer->out);
    answer->json.one_line = true;
    json_object(&answer->json, NULL);
}

static void answer_end(struct answer *answer)
{
    json_object_end(&answer->json);
    json_close(&answer->json);
    if (fclose(answer->out))
        die("out of memory");
    array_reserve(&asked.output, asked.output.count + answer->length);
    memcpy(asked.output.at + asked.output.count, answer->text, answer->length);
    asked.output.count += answer->length;
    free(answer->text);
}

/* Writes a text as the value that it is in JSON: a number, true, false, null, or a text. */
static void write_text(struct json *json, const char *key, const char *text)
{
    char *end;
    errno = 0;
    uint64_t whole = strtoull(text, &end, 10);
    if (strspn(text, "0123456789") == strlen(text) && *text && !errno)
        return json_u64(json, key, whole);
    double real = strtod(text, &end);
    if (*text && !*end && strspn(text, "0123456789+-.eE") == strlen(text))
        return json_double(json, key, real);
    if (!strcmp(text, "~") || !strcmp(text, "null"))
        return json_null(json, key);
    if (!strcmp(text, "true") || !strcmp(text, "false"))
        return json_bool(json, key, *text == 't');
    json_string(json, key, text);
}

static void write_id(struct json *json, const char *id)
{
    if (!id)
        json_null(json, "id");
    else if (*id == '"')
        json_string(json, "id", id + 1);
    else
        json_u64(json, "id", strtoull(id, NULL, 10));
}

static void write_axis(struct json *json, const struct axis *axis)
{
    if (axis->count <= LISTED_MOST) {
        json_array(json, axis->name);
        for (uint64_t i = 0; i < axis->count; i++)
            write_text(json, NULL, axis_text(axis, i));
        json_array_end(json);
        return;
    }
    json_object(json, axis->name);
    write_text(json, "from", axis_text(axis, 0));
    write_text(json, "next", axis_text(axis, 1));
    write_text(json, "to", axis_text(axis, axis->count - 1));
    json_u64(json, "count", axis->count);
    json_object_end(json);
}

static void say_hello(void)
{
    const struct space *space = asked.space;
    struct answer answer;
    answer_begin(&answer);
    json_string(&answer.json, "hello", "kbgen");
    json_u64(&answer.json, "protocol", PROTOCOL);
    json_object(&answer.json, "space");
    for (size_t i = 0; i < space->axis_count; i++)
        write_axis(&answer.json, &space->axes[i]);
    json_object_end(&answer.json);
    json_object(&answer.json, "objectives");
    for (size_t i = 0; i < space->objective_count; i++)
        json_string(&answer.json, space->objectives[i].name, space->objectives[i].largest ? "max" : "min");
    json_object_end(&answer.json);
    answer_end(&answer);
}

static void refuse(const char *id, const char *why)
{
    struct answer answer;
    answer_begin(&answer);
    write_id(&answer.json, id);
    json_string(&answer.json, "status", "error");
    json_u64(&answer.json, "line", asked.lines);
    json_string(&answer.json, "why", why);
    answer_end(&answer);
}

static void write_value(struct json *json, const char *name, const struct sql_value *value)
{
    switch (value->type) {
    case SQL_INTEGER:
        if (value->integer >= 0)
            json_u64(json, name, (uint64_t)value->integer);
        else
            json_double(json, name, (double)value->integer);
        break;
    case SQL_REAL: json_double(json, name, value->real); break;
    case SQL_TEXT: json_string(json, name, value->text); break;
    case SQL_NULL: json_null(json, name); break;
    }
}

/* The metrics that the store has, derived values, and objectives that are neither. */
static void write_metrics(struct json *json, const struct result *result)
{
    const struct space *space = asked.space;
    const struct judgement *judgement = result->judgement;
    size_t kept_count;
    const size_t *kept = evaluator_kept(asked.evaluator, &kept_count);
    const char **names = arena_alloc(kept_count + space->derive_count, sizeof *names);
    json_object(json, "metrics");
    for (size_t i = 0; i < kept_count; i++) {
        names[i] = evaluator_metric(asked.evaluator, kept[i]);
        json_u64(json, names[i], (uint64_t)result->metrics[kept[i]]);
    }
    for (size_t i = 0; i < space->derive_count; i++) {
        names[kept_count + i] = space->derive[i].name;
        write_value(json, space->derive[i].name, &judgement->derived[i]);
    }
    for (size_t i = 0; i < space->objective_count; i++) {
        const struct objective *objective = &space->objectives[i];
        size_t known = 0;
        while (known < kept_count + space->derive_count && strcmp(names[known], objective->name))
            known++;
        if (known == kept_count + space->derive_count)
            json_double(json, objective->name, objective->largest ? -judgement->objectives[i] : judgement->objectives[i]);
    }
    json_object_end(json);
}

static void answer_result(const struct result *result, void *arg)
{
    (void)arg;
    struct question **at = &asked.buckets[result->number % BUCKETS], *question;
    while ((*at)->number != result->number)
        at = &(*at)->next;
    question = *at;
    *at = question->next;
    struct answer answer;
    struct json *json = &answer.json;
    answer_begin(&answer);
    write_id(json, question->id);
    json_string(json, "status", result->status);
    if (result->why)
        json_string(json, "why", result->why);
    if (result->judgement && result->judgement->violated)
        json_u64(json, "violated", result->judgement->violated);
    if (result->metrics && result->judgement && !result->judgement->failed)
        write_metrics(json, result);
    if (result->hash) {
        json_string(json, "hash", result->hash);
        json_bool(json, "cached", result->is_known);
    }
    answer_end(&answer);
    free(question);
}

/* ---- questions */

/* The id of a line: a whole number as its digits, or a text behind a quotation mark. Returns NULL if it has none. */
static const char *id_of(const struct node *line)
{
    const struct node *id = node_get(line, "id");
    if (!id || id->type != NODE_SCALAR)
        return NULL;
    if (!id->plain)
        return arena_printf("\"%s", id->text);
    size_t length = strlen(id->text);
    return length > 0 && length < 20 && strspn(id->text, "0123456789") == length ? id->text : NULL;
}

static void begin_trial(const char *id, const uint32_t *levels)
{
    struct question *question = malloc(sizeof *question + strlen(id) + 1);
    if (!question)
        die("out of memory");
    struct question **bucket = &asked.buckets[asked.next % BUCKETS];
    *question = (struct question){*bucket, asked.next};
    strcpy(question->id, id);
    *bucket = question;
    evaluator_add(asked.evaluator, asked.next++, levels);
}

static void ignore_message(const char *text, void *arg)
{
    (void)text, (void)arg;
}

/* Reads a line and begins its trial, or answers what is wrong with it. */
static void read_line(const char *text, size_t length)
{
    static const char *const keys[] = {"id", "point"};
    struct arena_mark mark = arena_mark();
    asked.lines++;
    if (strspn(text, " \t\r\n") >= length)
        return;
    struct source line = {STANDARD_INPUT, arena_text(text, length), length, asked.lines - 1};
    uint32_t *levels = arena_alloc(asked.space->axis_count, sizeof *levels);
    const char *id = NULL;
    message_set_take(ignore_message, NULL);             /* messages are answers here */
    const struct node *node = yaml_document(&line);
    if (node && node_is(node, NODE_MAPPING, "a line")) {
        const struct node *point = node_get(node, "point");
        node_check_keys(node, "a line", keys, COUNT_OF(keys));
        id = id_of(node);
        if (!id)
            error_at(node->where, "a line needs an id: a whole number or a text in quotes");
        if (point)
            vector_read(asked.space, point, levels);
        else
            error_at(node->where, "a line needs a point: {\"id\": 1, \"point\": {...}}");
    }
    message_set_take(NULL, NULL);
    if (error_count())
        refuse(id, errors_forget());
    else if (node)
        begin_trial(id, levels);
    arena_release(mark);
}

/* Takes the lines that are complete from the input; at its end also one without a newline. */
static void take_lines(void)
{
    char *at = asked.input.at, *end = at + asked.input.count, *newline;
    for (; at < end && (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1) {
        if (!asked.skips)
            read_line(at, (size_t)(newline - at));
        asked.skips = false;
    }
    if (at < end && asked.has_ended && !asked.skips) {
        read_line(at, (size_t)(end - at));
        at = end;
    }
    if (end - at > LINE_MOST && !asked.skips) {
        asked.lines++;
        refuse(NULL, "a line has more than 1 MiB");
        asked.skips = true;
    }
    if (asked.skips)
        at = end;
    memmove(asked.input.at, at, (size_t)(end - at));
    asked.input.count = (size_t)(end - at);
}

static void read_input(void)
{
    array_reserve(&asked.input, asked.input.count + READ_PART);
    ssize_t count = read(STDIN_FILENO, asked.input.at + asked.input.count, READ_PART);
    if (count < 0 && errno == EINTR)
        return;
    if (count <= 0)
        asked.has_ended = true;
    else
        asked.input.count += (size_t)count;
    take_lines();
}

/* Writes what the reader takes without waiting for it; `waits`: all of it. */
static void write_output(bool waits)
{
    while (asked.written < asked.output.count && !asked.is_unread) {
        struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};
        if (poll(&out, 1, waits ? -1 : 0) <= 0 && !waits)
            break;
        size_t left = asked.output.count - asked.written;
        ssize_t count = write(STDOUT_FILENO, asked.output.at + asked.written, left < PIPE_PART ? left : PIPE_PART);
        if (count < 0 && errno != EINTR)
            asked.is_unread = true;
        asked.written += count > 0 ? (size_t)count : 0;
    }
    if (asked.written == asked.output.count)
        asked.written = asked.output.count = 0;
}

/* ---- the loop */

/* Numbers of trials go on behind those of the store. */
static void number_seen(const struct stored_trial *trial, void *arg)
{
    (void)arg;
    asked.next = trial->number + 1;
}

struct waiting {
    int all, signals;                                   /* an epoll of what is waited for; signals */
    bool in, out;                                       /* what the epoll has */
};

static struct waiting wait_begin(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct waiting wait = {epoll_create1(EPOLL_CLOEXEC), signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC), false, false};
    if (wait.all < 0 || wait.signals < 0
        || epoll_ctl(wait.all, EPOLL_CTL_ADD, wait.signals, &(struct epoll_event){.events = EPOLLIN}) < 0)
        die("watch standard input:");
    return wait;
}

/* Adds a file to what is waited for, or removes it. Returns false for one that never makes wait, a regular file. */
static bool wait_for(const struct waiting *wait, int file, uint32_t events, bool wanted, bool *is_there)
{
    bool good = true;
    if (wanted != *is_there)
        good = epoll_ctl(wait->all, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, file, &(struct epoll_event){.events = events}) == 0;
    *is_there = wanted && good;
    return good;
}

/* Waits until a line or a result comes. Returns the signal that has come, or 0. */
static int turn(struct waiting *wait)
{
    bool reads = !asked.has_ended && evaluator_pending(asked.evaluator) < PENDING_MOST;
    bool writes = asked.written < asked.output.count;
    int wait_ms = WAIT_MS;
    if (!wait_for(wait, STDIN_FILENO, EPOLLIN, reads, &wait->in) || !wait_for(wait, STDOUT_FILENO, EPOLLOUT, writes, &wait->out))
        wait_ms = 0;
    evaluator_turn(asked.evaluator, wait->all, wait_ms);
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};
    if (reads && poll(&in, 1, 0) > 0)
        read_input();
    write_output(false);
    struct signalfd_siginfo info;
    return read(wait->signals, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

int ask(const struct evaluator_options *options)
{
    struct evaluator_options own = *options;
    own.ended = answer_result;
    asked.space = options->space;
    asked.evaluator = evaluator_begin(&own);
    struct evaluator_store store = evaluator_store(asked.evaluator);
    store_trials(store.store, store.search, NULL, 0, number_seen, NULL);
    struct waiting wait = wait_begin();
    int ended_by = 0;
    say_hello();
    write_output(false);
    while (!asked.has_ended || evaluator_pending(asked.evaluator)) {
        int signal = turn(&wait);
        if (signal && ended_by)
            break;                                      /* at once */
        if (signal)
            ended_by = signal;
        asked.has_ended |= signal || asked.is_unread;
    }
    write_output(!ended_by);
    evaluator_end(asked.evaluator);
    if (asked.is_unread)
        fputs("kbgen: nobody reads the answers any more; what was under way is stored\n", stderr);
    return ended_by ? 128 + ended_by : asked.is_unread ? STATUS_RUN_FAILED : STATUS_GOOD;
}
