/* web.c: `SIM web`: serves the report page, with a form for benches and the runs of this session.
 *
 *     GET  (nothing)      the page
 *     GET  state          what runs: {"current", "line", "last"}; the number of the last run that has ended
 *     GET  runs/N         a run that has ended: {"number", "result", "said"}
 *     POST run            begins a run. The body is a line for the bench, then NAME=VALUE lines; --data=off leaves data out
 *     POST stop           ends the run that is under way, in order
 *
 * Requests are answered on the server's thread while the main thread attends to the run; a lock lets one of them act. */
#include "web.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/arena.h"
#include "common/command_line.h"
#include "common/fail.h"
#include "common/json.h"
#include "host/bench.h"
#include "host/param.h"
#include "http_server.h"
#include "machine/emitted.h"
#include "report/page.h"
#include "web_run.h"

static int web_main(int argc, char **argv);

static const struct cli_option options[] = {
    {'p', "port", "N", "the port (one that is free)"},
    {0},
};

const struct subcommand web_subcommand = {
    "web", "", "runs benches from a page in the browser",
    "Serves a page with the benches as forms, for a browser on this computer: run them, see their progress and their\n"
    "reports, compare them. It prints the address of the page, which has a secret: whoever has it can run benches. SIGINT\n"
    "ends it.",
    options, web_main,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- JSON of answers */

struct answer {
    struct json json;
    struct http_response *response;
    FILE *memory;
};

static void answer_begin(struct answer *answer, struct http_response *response, unsigned status)
{
    *response = (struct http_response){.status = status, .type = "application/json"};
    answer->response = response;
    if (!(answer->memory = open_memstream(&response->text, &response->length)))
        die("an answer:");
    json_open(&answer->json, answer->memory);
    answer->json.one_line = true;
    json_object(&answer->json, NULL);
}

static void answer_end(struct answer *answer)
{
    json_object_end(&answer->json);
    if (fclose(answer->memory))
        die("an answer:");
}

static void answer_error(struct http_response *response, unsigned status, const char *why)
{
    struct answer answer;
    answer_begin(&answer, response, status);
    json_string(&answer.json, "error", why);
    answer_end(&answer);
}

/* ---- the page */

static void write_param(struct json *json, const struct kb_param *param)
{
    struct kb_value value = param_default(param);
    json_object(json, NULL);
    json_string(json, "name", param->name);
    json_string(json, "help", param->help);
    json_string(json, "domain", param_domain(param));
    param_write(json, &(struct kb_param){.name = "initial", .type = param->type}, &value);
    if (param->type == KB_PARAM_WORD)
        json_string(json, "words", param->words);
    json_object_end(json);
}

static void write_benches(struct json *json)
{
    const struct kb_bench **all;
    size_t count = bench_all(&all);
    json_array(json, "benches");
    for (size_t i = 0; i < count; i++) {
        json_object(json, NULL);
        json_string(json, "name", all[i]->name);
        json_string(json, "what", all[i]->what);
        json_array(json, "params");
        for (uint32_t j = 0; j < all[i]->count; j++)
            write_param(json, &all[i]->params[j]);
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
}

static void serve_page(struct http_response *response)
{
    struct answer members;
    struct http_response web;
    answer_begin(&members, &web, 0);
    json_string(&members.json, "machine", kb_machine_name);
    write_benches(&members.json);
    answer_end(&members);
    *response = (struct http_response){.status = 200, .type = "text/html; charset=utf-8"};
    FILE *memory = open_memstream(&response->text, &response->length);
    char *safe = page_object(web.text, web.length);
    if (!memory || !safe)
        die("a page:");
    page_begin(memory, true);
    page_end(memory, arena_printf("\"web\":%s", safe));
    if (fclose(memory))
        die("a page:");
    free(safe);
    free(web.text);
}

/* ---- state and results */

static void serve_state(struct http_response *response)
{
    struct answer answer;
    web_run_attend();
    answer_begin(&answer, response, 200);
    json_u64(&answer.json, "current", web_run_current());
    json_string(&answer.json, "line", web_run_line());
    answer_end(&answer);
}

static void serve_run(const char *digits, struct http_response *response)
{
    size_t length = strspn(digits, "0123456789");
    const struct web_run *run = NULL;
    struct answer answer;
    if (length && length < 9 && !digits[length])
        run = web_run_find((uint32_t)strtoul(digits, NULL, 10));
    if (!run)
        return;
    answer_begin(&answer, response, 200);
    json_u64(&answer.json, "number", run->number);
    json_string(&answer.json, "said", run->said);
    if (run->result)
        fprintf(answer.memory, ", \"result\": %s", run->result);
    else
        json_null(&answer.json, "result");
    answer_end(&answer);
}

/* ---- runs */

static const struct kb_bench *find_bench(const char *name)
{
    const struct kb_bench **all;
    size_t count = bench_all(&all);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(all[i]->name, name))
            return all[i];
    return NULL;
}

/* Whether a line is NAME=VALUE of a parameter. Returns NULL, or what is wrong. A text may be the name of a file: none with
 * a slash is taken. */
static const char *wrong_value(const struct kb_bench *bench, const char *line)
{
    const char *equals = strchr(line, '=');
    struct kb_value value;
    for (uint32_t i = 0; equals && i < bench->count; i++) {
        const struct kb_param *param = &bench->params[i];
        if (strlen(param->name) != (size_t)(equals - line) || strncmp(param->name, line, (size_t)(equals - line)))
            continue;
        if (param->type == KB_PARAM_TEXT && strchr(equals, '/'))
            return arena_printf("%s has a slash, which the page does not send", line);
        const char *wrong = param_parse(param, equals + 1, &value);
        return wrong ? arena_printf("%s %s", line, wrong) : NULL;
    }
    return arena_printf("%s is not a parameter of %s", line, bench->name);
}

enum { LINES_MOST = 48 };

/* Takes the words of a run from the lines of a body. Returns NULL, or what is wrong. */
static const char *read_lines(char *body, char **words, size_t *count)
{
    char *rest = body;
    const struct kb_bench *bench = find_bench(strsep(&rest, "\n"));
    if (!bench)
        return "there is no such bench";
    words[(*count)++] = (char *)bench->name;
    for (char *line; (line = strsep(&rest, "\n"));) {
        bool is_option = !strcmp(line, "--data=off");
        const char *wrong = !*line || is_option ? NULL : wrong_value(bench, line);
        if (wrong || *count == LINES_MOST)
            return wrong ? wrong : "too many lines";
        if (*line)
            words[(*count)++] = line;
    }
    return NULL;
}

static void serve_start(const struct http_request *request, struct http_response *response)
{
    char *words[LINES_MOST];
    size_t count = 0;
    struct answer answer;
    if (strlen(request->body) != request->body_bytes) {
        answer_error(response, 400, "a zero in a text");
        return;
    }
    web_run_attend();
    const char *wrong = read_lines(arena_text(request->body, request->body_bytes), words, &count);
    uint32_t number = wrong ? 0 : web_run_start(words, count);
    if (wrong || !number) {
        answer_error(response, wrong ? 400 : 409, wrong ? wrong : "another run is under way");
        return;
    }
    answer_begin(&answer, response, 202);
    json_u64(&answer.json, "number", number);
    answer_end(&answer);
}

static void serve(const struct http_request *request, struct http_response *response)
{
    pthread_mutex_lock(&lock);
    struct arena_mark mark = arena_mark();
    if (!request->posts && !*request->path)
        serve_page(response);
    else if (!request->posts && !strcmp(request->path, "state"))
        serve_state(response);
    else if (!request->posts && !strncmp(request->path, "runs/", 5))
        serve_run(request->path + 5, response);
    else if (request->posts && !strcmp(request->path, "run"))
        serve_start(request, response);
    else if (request->posts && !strcmp(request->path, "stop")) {
        web_run_stop();
        serve_state(response);
    }
    arena_release(mark);
    pthread_mutex_unlock(&lock);
}

/* ---- the subcommand */

/* Attends to the run until a signal ends the session. */
static void attend(const sigset_t *signals)
{
    const struct timespec tick = {.tv_nsec = 200000000};
    while (sigtimedwait(signals, NULL, &tick) < 0) {
        pthread_mutex_lock(&lock);
        struct arena_mark mark = arena_mark();
        web_run_attend();
        arena_release(mark);
        pthread_mutex_unlock(&lock);
    }
}

static int web_main(int argc, char **argv)
{
    uint16_t port = 0;
    sigset_t signals;
    while (subcommand_option(&web_subcommand, argc, argv) != -1)
        port = (uint16_t)option_whole("port", optarg, 0, UINT16_MAX);
    if (optind < argc)
        usage_error("web takes no arguments: '%s'", argv[optind]);
    web_runs_begin();
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);         /* before there is another thread */
    printf("%s\n", http_begin(port, serve));
    fflush(stdout);
    attend(&signals);
    http_end();
    web_runs_end();
    return STATUS_GOOD;
}
