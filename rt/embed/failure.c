/* failure.c: from the one failure exit of the runtime to the caller of the API. */
#include "failure.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/threads.h"
#include "common/fail.h"
#include "session/simulation.h"

enum { LINE_BYTES = 1024 };

static struct {
    struct image_host *host;
    void (*log)(void *user, const char *line);
    void *user;
    bool machine_works;
    char line[LINE_BYTES];                              /* of messages: what has come of it */
    size_t length;
} failure;

enum kb_status refuse(enum kb_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(failure.host->text, sizeof failure.host->text, format, args);
    va_end(args);
    return status;
}

void failure_machine_works(void)
{
    failure.machine_works = true;
}

void failure_machine_rests(void)
{
    failure.machine_works = false;
}

void failure_ends(void)
{
    failure.host->ended = true;
}

void failure_leave(enum kb_status status)
{
    threads_leave();
    failure.host->ended |= failure.machine_works;
    failure.machine_works = false;
    failure.host->failed = status;
    longjmp(failure.host->out, 1);
}

/* Adds a line to the text of the call, as far as there is a place for it. */
static void text_add(const char *line)
{
    char *text = failure.host->text;
    size_t length = strlen(text), size = sizeof failure.host->text;
    snprintf(text + length, size - length, "%s%s", length ? "\n" : "", line);
}

/* Adds the last line, and makes room for it: the lines of many kernels that fail at once can fill the text. */
static void text_end(const char *line)
{
    char *text = failure.host->text;
    size_t most = sizeof failure.host->text - strlen(line) - 2;
    if (strlen(text) > most)
        text[most] = '\0';
    text_add(line);
}

enum kb_status failure_status(int status)
{
    if (failure.host->exhausted) {
        char line[LINE_BYTES];
        snprintf(line, sizeof line, "the instance has %" PRIu64 " bytes of memory: memory_bytes of its configuration",
                 failure.host->memory_bytes);
        text_end(line);
        return KB_NO_MEMORY;
    }
    return status == STATUS_GOOD ? KB_OK : status == STATUS_RUN_FAILED ? KB_RUN_FAILED
         : status == STATUS_WRONG_USE ? KB_WRONG : KB_HOST_FAILED;
}

/* What fail_exit does. */
static void leave(int status, void *arg)
{
    (void)arg;
    threads_give_up(status);
    simulation_fails(status);
    failure_leave(failure_status(status));
}

static void line_ends(void)
{
    failure.line[failure.length] = '\0';
    failure.length = 0;
    text_add(failure.line);
    if (failure.log)
        failure.log(failure.user, failure.line);
}

static void take(const char *text, void *arg)
{
    (void)arg;
    if (threads_take_message(text))
        return;
    simulation_said(text);
    for (; *text; text++)
        if (*text == '\n')
            line_ends();
        else if (failure.length + 1 < LINE_BYTES)
            failure.line[failure.length++] = *text;
}

void failure_begin(struct image_host *host, const struct kb_sim_config *config)
{
    failure.host = host;
    failure.log = config->log;
    failure.user = config->user;
    fail_set_exit(leave, NULL);
    message_set_take(take, NULL);
}
