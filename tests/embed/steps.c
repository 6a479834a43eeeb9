/* steps.c: runs a command stream in an instance of a library, and writes the result and, unless TRACE is "", the trace:
 * LIBRARY MODE INPUT JSON TRACE [SEED]
 *
 *     whole    INPUT is a stream: kb_sim_replay, and one kb_sim_run to its end
 *     slices   the same in random slices, with looks at kb_sim_next_ps, which must be tight
 *     forks    the same, but at a random time the process is forked 1,000 times; each child goes on in slices of its own, to
 *              the same result as this process, which goes on last
 *     looks    the same in slices, of which every second one is traced, and only those
 *     saves    the same in slices; at random times the state is saved, something else is done, and the state is restored
 *     steps    INPUT is a list of calls (tests/embed_steps.t): what the stream's host does, done from outside, and the
 *              commands of its programs one at a time */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kb/sim.h>

static void *library;
static kb_sim *sim;
static uint64_t random_state;

#define CALL(name) ((__typeof__(&name))dlsym(library, #name))

static void check(enum kb_status status, const char *what)
{
    if (status == KB_OK)
        return;
    printf("%s: status %d: %s\n", what, (int)status, CALL(kb_last_error)(sim));
    exit(1);
}

#define TRY(name, ...) check(CALL(name)(__VA_ARGS__), #name)

static uint64_t random_below(uint64_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (random_state >> 33) % n;
}

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 22);
    if (!file || !text || fread(text, 1, (1 << 22) - 1, file) == 0)
        exit(2);
    fclose(file);
    return text;
}

static bool astray;                                     /* what happens is to be undone */

static void write_event(void *trace, const struct kb_sim_event *event)
{
    if (!astray)
        fprintf(trace, "%s\n", event->line);
}

/* Requests that are complete and were not attended to, in the order of their ends. */
enum { NUMBERS = 4096 };
static uint64_t completed[NUMBERS];
static bool completed_well[NUMBERS];
static unsigned completions;

static void is_complete(void *user, const struct kb_sim_result *result)
{
    (void)user;
    completed[completions] = result->request;
    completed_well[completions++] = result->outcome == KB_SIM_OK;
}

/* ---- slices */

static uint64_t events(void)
{
    uint64_t count;
    TRY(kb_sim_stat, sim, "events", &count);
    return count;
}

static uint64_t now(void)
{
    uint64_t now_ps;
    TRY(kb_sim_now_ps, sim, &now_ps);
    return now_ps;
}

/* Lets time pass up to the next event, and checks that nothing happens before. */
static void check_next(uint64_t next_ps)
{
    if (completions || next_ps == UINT64_MAX || next_ps == now())
        return;
    uint64_t before = events();
    TRY(kb_sim_run, sim, next_ps - 1, 0, NULL);
    if (events() != before)
        printf("something happens before %" PRIu64 " ps\n", next_ps);
    TRY(kb_sim_run, sim, next_ps, 0, NULL);
    if (events() == before)
        printf("nothing happens at %" PRIu64 " ps\n", next_ps);
}

static void run_in_slices(void)
{
    struct kb_sim_stop why = {.struct_size = sizeof why};
    for (unsigned slices = 0; slices < 4000; slices++) {
        uint64_t next_ps, slice_ps = random_below(UINT64_C(1) << random_below(28));
        TRY(kb_sim_next_ps, sim, &next_ps);
        if (random_below(4) == 0)
            check_next(next_ps);
        if (completions)
            return;
        TRY(kb_sim_run, sim, now() + slice_ps, KB_STOP_COMPLETED | KB_STOP_DEADLOCK, &why);
        if (why.reason != KB_STOP_UNTIL)
            return;
    }
    TRY(kb_sim_run, sim, UINT64_MAX, KB_STOP_COMPLETED | KB_STOP_DEADLOCK, &why);
}

/* ---- results */

static char *result(void)
{
    uint64_t needed;
    TRY(kb_sim_result_json, sim, NULL, 0, &needed);
    char *json = malloc(needed);
    TRY(kb_sim_result_json, sim, json, needed, &needed);
    return json;
}

/* ---- forks */

enum { FORKS = 1000, SLICES_BEFORE = 40 };

static void run_forked(const char *text)
{
    char *results = mmap(NULL, strlen(text) + (1 << 20), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status, forked = 0, differ = 0;
    for (unsigned i = 0; i < SLICES_BEFORE && !completions; i++)
        TRY(kb_sim_run, sim, now() + random_below(1 << 16), KB_STOP_COMPLETED | KB_STOP_DEADLOCK, NULL);
    for (unsigned i = 0; i < FORKS && !completions; i++) {
        pid_t child = fork();
        if (child == 0) {
            random_state = i;
            run_in_slices();
            char *json = result();
            if (i == 0)
                strcpy(results, json);                  /* the first child says what the others have to get */
            _exit(strcmp(results, json) != 0);
        }
        waitpid(child, &status, 0);
        forked++;
        differ += status != 0;
    }
    run_in_slices();
    if (completions && strcmp(results, result()) != 0)
        differ++;
    printf("%d of %d continuations differ\n", differ, forked);
}

/* ---- saves */

enum { SAVES = 120 };

static void *save(uint64_t *bytes)
{
    TRY(kb_sim_save, sim, NULL, 0, bytes);
    void *state = malloc(*bytes);
    TRY(kb_sim_save, sim, state, *bytes, bytes);
    return state;
}

/* Goes on for a while or to the end, begins something else, or begins anew. */
static void stray(const char *text)
{
    uint64_t request;
    astray = true;
    switch (random_below(4)) {
    case 0: TRY(kb_sim_run, sim, now() + random_below(1 << 20), 0, NULL); break;
    case 1: run_in_slices(); break;
    case 2:
        TRY(kb_sim_write, sim, &(uint64_t){0}, 1, 64, NULL, &request);
        TRY(kb_sim_run, sim, now() + random_below(1 << 20), 0, NULL);
        break;
    case 3:
        TRY(kb_sim_reset, sim);
        TRY(kb_sim_replay, sim, text, strlen(text), &request);
        TRY(kb_sim_run, sim, random_below(1 << 24), 0, NULL);
        break;
    }
    astray = false;
    completions = 0;
}

/* What is saved is that of before, byte by byte. */
static bool is_same(const void *state, uint64_t bytes)
{
    uint64_t again;
    void *now_is = save(&again);
    bool same = again == bytes && !memcmp(state, now_is, bytes);
    free(now_is);
    return same;
}

static void run_saved(const char *text, FILE *trace)
{
    struct kb_sim_stop why = {.struct_size = sizeof why};
    uint64_t bytes;
    unsigned saved = 0, differ = 0;
    while (!completions && saved < SAVES) {
        void *state = save(&bytes);
        stray(text);
        if (trace)                                      /* a reset has ended it */
            TRY(kb_sim_trace, sim, write_event, trace);
        TRY(kb_sim_restore, sim, state, bytes);
        differ += !is_same(state, bytes);
        saved++;
        free(state);
        TRY(kb_sim_run, sim, now() + random_below(UINT64_C(1) << random_below(18)), KB_STOP_COMPLETED | KB_STOP_DEADLOCK, &why);
        if (why.reason != KB_STOP_UNTIL)
            break;
    }
    if (!completions)
        run_in_slices();
    printf("%u states, %u differ when restored\n", saved, differ);
}

/* ---- looks */

enum { LOOKS = 400 };

static void run_looked_at(FILE *trace)
{
    struct kb_sim_stop why = {.struct_size = sizeof why};
    for (unsigned slice = 0; slice < LOOKS && !completions; slice++) {
        bool looks = slice % 2;
        uint64_t from_ps = now();
        TRY(kb_sim_trace, sim, looks ? write_event : NULL, trace);
        TRY(kb_sim_run, sim, from_ps + random_below(UINT64_C(1) << random_below(20)), KB_STOP_COMPLETED | KB_STOP_DEADLOCK, &why);
        if (looks)
            printf("looked from %" PRIu64 " to %" PRIu64 "\n", from_ps, now());
        if (why.reason != KB_STOP_UNTIL)
            return;
    }
    TRY(kb_sim_trace, sim, NULL, NULL);
    if (!completions)
        run_in_slices();
}

/* ---- steps */

enum { STEPS = 4096 };

static struct step {
    char kind;                                          /* of a call, w: a wait, d: a delay */
    bool async, complete;
    char *text;                                         /* its lines */
    uint64_t request;
} steps[STEPS];

static unsigned step_count, at;
static bool begun, stopped;
static uint64_t delay_end_ps = UINT64_MAX;
static unsigned numbers(char **line, uint64_t *out)
{
    unsigned count = 0;
    char *end = *line + strcspn(*line, "\n");
    while (*line < end) {
        out[count++] = strtoull(*line, line, 0);
        *line += strspn(*line, " ");
    }
    *line = *end ? end + 1 : end;
    return count;
}

/* "NAME\nSTART FAIL_FAST TIMEOUT PE ...\n" and, for each command, "PE STEP\n". */
static uint64_t launch(char *text)
{
    uint64_t n[NUMBERS], request;
    uint32_t pes[NUMBERS];
    char *name = text, *line = strchr(text, '\n') + 1;
    line[-1] = '\0';
    unsigned count = numbers(&line, n) - 3;
    for (unsigned i = 0; i < count; i++)
        pes[i] = (uint32_t)n[3 + i];
    struct kb_sim_launch ask = {.struct_size = sizeof ask, .kernel = name, .pes = pes, .pe_count = count,
                                .start = (uint32_t)n[0], .fail_fast = (uint32_t)n[1], .timeout_ps = n[2]};
    TRY(kb_sim_program, sim, &ask, &request);
    while (*line) {
        uint32_t pe = (uint32_t)strtoul(line, &line, 10);
        size_t length = strcspn(line, "\n");
        TRY(kb_sim_command, sim, request, pe, line, length);
        line += length + 1;
    }
    TRY(kb_sim_program_end, sim, request);
    line[-1] = '\n';
    return request;
}

/* "UNMAPS VA PAGES PE ADDRESS PE ADDRESS ...\n". */
static uint64_t map(char *text)
{
    uint64_t n[NUMBERS], addresses[NUMBERS], request;
    uint32_t pes[NUMBERS];
    unsigned count = (numbers(&text, n) - 3) / 2;
    for (unsigned i = 0; i < count; i++) {
        pes[i] = (uint32_t)n[3 + 2 * i];
        addresses[i] = n[4 + 2 * i];
    }
    if (!count)
        return 0;
    if (n[0])
        TRY(kb_sim_unmap, sim, pes, count, n[1], n[2], &request);
    else
        TRY(kb_sim_map, sim, pes, addresses, count, n[1], n[2], &request);
    return request;
}

/* "WRITES BYTES ADDRESS ...\n". */
static uint64_t transfer(char *text)
{
    uint64_t n[NUMBERS], request;
    unsigned count = numbers(&text, n) - 2;
    if (n[0])
        TRY(kb_sim_write, sim, n + 2, count, n[1], NULL, &request);
    else
        TRY(kb_sim_read, sim, n + 2, count, n[1], NULL, &request);
    return request;
}

static bool all_awaited(char *text)
{
    uint64_t n[NUMBERS];
    unsigned count = numbers(&text, n);
    for (unsigned i = 0; i < count; i++)
        if (!steps[n[i]].complete)
            return false;
    return true;
}

static void begin(struct step *step)
{
    switch (step->kind) {
    case 'l': step->request = launch(step->text); break;
    case 'm': step->request = map(step->text); break;
    case 't': step->request = transfer(step->text); break;
    case 'd': delay_end_ps = now() + strtoull(step->text, NULL, 10); break;
    }
    if (step->kind == 'm' && !step->request)
        step->complete = true;
}

static void host_acts(void)
{
    for (; !stopped && at < step_count; at++, begun = false) {
        struct step *step = &steps[at];
        if (!begun)
            begin(step);
        begun = true;
        if (step->kind == 'w' ? !all_awaited(step->text) : !step->async && !step->complete)
            return;
    }
}

static bool running(void)
{
    for (unsigned i = 0; i < step_count; i++)
        if (steps[i].request && !steps[i].complete)
            return true;
    return false;
}

static void take_completions(void)
{
    for (unsigned i = 0; i < completions; i++) {
        for (unsigned j = 0; j < step_count; j++)
            steps[j].complete |= steps[j].request == completed[i];
        stopped |= !completed_well[i];
        host_acts();
    }
    completions = 0;
}

static void run_steps(char *text)
{
    struct kb_sim_stop why = {.struct_size = sizeof why};
    for (char *line = text; *line; step_count++) {      /* each begins with "#KIND ASYNC" */
        char *end = strstr(line + 1, "\n#");
        steps[step_count] = (struct step){.kind = line[1], .async = line[3] == '1', .text = strchr(line, '\n') + 1};
        line = end ? end + 1 : line + strlen(line);
        if (end)
            *end = '\n';
    }
    for (unsigned i = 0; i + 1 < step_count; i++) {     /* each text ends where the next begins */
        size_t length = (size_t)(steps[i + 1].text - steps[i].text);
        char *own = calloc(1, length + 1);
        memcpy(own, steps[i].text, length);
        *(strstr(own, "#") ? strstr(own, "#") : own + length) = '\0';
        steps[i].text = own;
    }
    host_acts();
    for (;;) {
        if ((at == step_count || stopped) && !running())
            return;
        uint64_t until_ps = stopped ? UINT64_MAX : delay_end_ps;
        bool waits = until_ps != UINT64_MAX;            /* who does something later may yet wake who waits now */
        TRY(kb_sim_run, sim, until_ps, KB_STOP_COMPLETED | (waits ? 0 : KB_STOP_DEADLOCK), &why);
        take_completions();
        if (why.reason == KB_STOP_UNTIL && !stopped) {
            delay_end_ps = UINT64_MAX;
            steps[at].complete = true;
            host_acts();
        } else if (why.reason == KB_STOP_IDLE) {
            return;
        }
    }
}

/* ---- the program */

int main(int argc, char **argv)
{
    if (argc < 6)
        return 2;
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        return 2;
    }
    const char *mode = argv[2];
    char *input = read_all(argv[3]);
    uint64_t request;
    random_state = argc > 6 ? strtoull(argv[6], NULL, 10) : 0;
    struct kb_sim_config config = {.struct_size = sizeof config, .completed = is_complete, .data = KB_SIM_DATA_OFF,
                                   .exact_events = getenv("EXACT") != NULL};
    check(CALL(kb_sim_create)(&config, &sim), "kb_sim_create");
    FILE *trace = *argv[5] ? fopen(argv[5], "w") : NULL;
    if (trace && strcmp(mode, "looks"))
        TRY(kb_sim_trace, sim, write_event, trace);
    if (!strcmp(mode, "steps")) {
        run_steps(input);
    } else {
        TRY(kb_sim_replay, sim, input, strlen(input), &request);
        if (!strcmp(mode, "slices"))
            run_in_slices();
        else if (!strcmp(mode, "looks"))
            run_looked_at(trace);
        else if (!strcmp(mode, "forks"))
            run_forked(input);
        else if (!strcmp(mode, "saves"))
            run_saved(input, trace);
        else
            TRY(kb_sim_run, sim, UINT64_MAX, KB_STOP_COMPLETED | KB_STOP_DEADLOCK, NULL);
    }
    char *json = result();
    FILE *out = fopen(argv[4], "w");
    if (!out || !json)
        return 2;
    fputs(json, out);
    fclose(out);
    if (trace)
        fclose(trace);
    free(json);
    TRY(kb_sim_destroy, sim);
    return 0;
}
