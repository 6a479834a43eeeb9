/* injection.c: the processes of --inject, what becomes of each defect, and the report. */
#define _GNU_SOURCE                                     /* memfd_create */
#include "injection.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/human.h"
#include "base/progress.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/command_line.h"
#include "common/fail.h"
#include "datapass/exec.h"
#include "datapass/defect.h"
#include "launch/watchdog.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "process.h"
#include "reference/error.h"
#include "reference/expect.h"
#include "session/simulation.h"
#include "store/fill.h"

uint64_t injection_count;

/* A defect is in the interval of the op log with its number; what became of it, in memory that the processes share. */
struct injected {
    struct defect defect;
    uint64_t interval;
    struct outcome {
        bool ended;                                     /* the run has, with an exit status */
        int status;
        double change;                                  /* of results at most, in units of their dtype's last place */
        char tensor[64];                                /* where */
        enum dtype dtype;
    } outcome;
};

enum role { ROLE_USER, ROLE_REHEARSAL, ROLE_DEFECTIVE };

/* What a result begins with in `results`, before the elements of all its shards. */
struct result_head {
    uint64_t tensor, bytes;
};

static struct {
    enum role role;
    bool rehearsed;
    uint64_t interval;                                  /* data passes that have begun */
    int counts_file, results_file;                      /* of the rehearsal: places of each interval; results */
    const uint8_t *results;
    uint64_t results_bytes, compared;                   /* compared: of them */
    struct injected *defects;
    uint64_t count, next;                               /* next: of those whose interval is to come */
    struct injected *mine;                              /* ROLE_DEFECTIVE */
    int rehearsal_status;
    double rehearsal_seconds;                           /* of CPU */
} injection;

/* ---- results */

static void write_fully(int file, const void *bytes, uint64_t count)
{
    for (const uint8_t *at = bytes; count > 0;) {
        ssize_t wrote = write(file, at, count);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            die("cannot keep the results of a run without a defect:");
        at += wrote, count -= (uint64_t)wrote;
    }
}

static const uint8_t *row_bytes(const struct tensor *tensor, struct tensor_row row, uint64_t *bytes)
{
    *bytes = row.count * dtype_bytes[tensor->dtype];
    return store_at(row.memory, row.offset);
}

static void write_row(struct tensor_row row, void *tensor)
{
    uint64_t bytes;
    const uint8_t *at = row_bytes(tensor, row, &bytes);
    write_fully(injection.results_file, at, bytes);
}

static uint64_t all_bytes(const struct tensor *tensor)
{
    uint64_t elements = 0;
    for (uint32_t i = 0; i < tensor->shards; i++)
        elements += tensor->shard[i].elements;
    return elements * dtype_bytes[tensor->dtype];
}

static void changed_by(const struct tensor *tensor, double change)
{
    struct outcome *outcome = &injection.mine->outcome;
    if (!(change > outcome->change))
        return;
    outcome->change = change;
    snprintf(outcome->tensor, sizeof outcome->tensor, "%s", tensor->name);
    outcome->dtype = tensor->dtype;
}

/* The distance of two elements in units of the last place, of the larger one or of a value of the size `least`; of
 * integers, infinite. */
static double distance(enum dtype dtype, double a, double b, double least)
{
    if (a == b || (isnan(a) && isnan(b)))
        return 0;
    double units = fabs(a - b) / (2 * rounding_bound(dtype, fmax(least, fmax(fabs(a), fabs(b)))));
    return dtype_is_float(dtype) && isfinite(units) ? units : INFINITY;
}

/* The RMS of a tensor without a defect. */
static double rms_of(enum dtype dtype, const uint8_t *elements, uint64_t bytes)
{
    double squares = 0;
    for (uint64_t i = 0; i < bytes; i += dtype_bytes[dtype]) {
        double value = dtype_value(dtype, elements + i);
        squares += isfinite(value) ? value * value : 0;
    }
    return sqrt(squares / ((double)bytes / dtype_bytes[dtype]));
}

struct comparing {
    const struct tensor *tensor;
    double rms;
};

static void compare_row(struct tensor_row row, void *arg)
{
    const struct comparing *c = arg;
    enum dtype dtype = c->tensor->dtype;
    uint64_t bytes;
    const uint8_t *got = row_bytes(c->tensor, row, &bytes), *without = injection.results + injection.compared;
    injection.compared += bytes;
    if (!memcmp(got, without, bytes))
        return;
    for (uint64_t i = 0; i < bytes; i += dtype_bytes[dtype])
        changed_by(c->tensor, distance(dtype, dtype_value(dtype, got + i), dtype_value(dtype, without + i), c->rms));
}

static void compare_result(const struct tensor *tensor, struct result_head head)
{
    struct result_head without = {0};
    if (injection.compared + sizeof without <= injection.results_bytes)
        memcpy(&without, injection.results + injection.compared, sizeof without);
    if (memcmp(&without, &head, sizeof head)) {         /* the bench itself goes another way */
        changed_by(tensor, INFINITY);
        injection.results_bytes = 0;
        return;
    }
    injection.compared += sizeof head;
    double rms = rms_of(tensor->dtype, injection.results + injection.compared, head.bytes);
    tensor_each_row(tensor, true, compare_row, &(struct comparing){tensor, rms});
}

static void compared(const struct verification *v)
{
    struct result_head head = {v->tensor->number, all_bytes(v->tensor)};
    if (injection.role == ROLE_REHEARSAL) {
        write_fully(injection.results_file, &head, sizeof head);
        tensor_each_row(v->tensor, true, write_row, (void *)v->tensor);
    } else if (injection.role == ROLE_DEFECTIVE) {
        compare_result(v->tensor, head);
    }
}

/* ---- defects are drawn */

static uint64_t random_next(uint64_t *state)            /* splitmix64 */
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static int in_order(const void *x, const void *y)
{
    const struct injected *a = x, *b = y;
    if (a->interval != b->interval)
        return a->interval < b->interval ? -1 : 1;
    if (a->defect.kind != b->defect.kind)
        return a->defect.kind < b->defect.kind ? -1 : 1;
    return a->defect.place < b->defect.place ? -1 : a->defect.place > b->defect.place;
}

/* Draws the kind among those that the run has, then the place among all intervals. Returns false if it has none. */
static bool draw(struct injected *drawn, uint64_t (*counts)[DEFECTS], uint64_t intervals, uint64_t *state)
{
    uint64_t all[DEFECTS] = {0};
    unsigned had = 0, fit[DEFECTS];
    for (uint64_t i = 0; i < intervals; i++)
        for (unsigned kind = 0; kind < DEFECTS; kind++)
            all[kind] += counts[i][kind];
    for (unsigned kind = 0; kind < DEFECTS; kind++)
        if (all[kind])
            fit[had++] = kind;
    if (!had)
        return false;
    unsigned kind = fit[random_next(state) % had];
    uint64_t place = random_next(state) % all[kind], interval = 0;
    for (; place >= counts[interval][kind]; interval++)
        place -= counts[interval][kind];
    *drawn = (struct injected){.defect = {.kind = kind, .place = place, .random = random_next(state)},
                               .interval = interval};
    return true;
}

static void draw_all(void)
{
    struct stat stat;
    if (fstat(injection.counts_file, &stat))
        die("fstat:");
    uint64_t (*counts)[DEFECTS] = arena_alloc((uint64_t)stat.st_size / sizeof *counts + 1, sizeof *counts);
    if (pread(injection.counts_file, counts, (size_t)stat.st_size, 0) != stat.st_size)
        die("cannot read the places of defects back:");
    uint64_t state = fill_seed;
    while (injection.count < injection_count &&
           draw(&injection.defects[injection.count], counts, (uint64_t)stat.st_size / sizeof *counts, &state))
        injection.count++;
    qsort(injection.defects, injection.count, sizeof *injection.defects, in_order);
}

/* ---- processes */

/* Waits for a process; returns how it ended, as waitpid says, and sets the seconds of CPU that it took. */
static int wait_for(pid_t child, double *seconds)
{
    int ended;
    struct rusage usage;
    threads_at_work = true;                             /* this process must not be left where it waits */
    while (wait4(child, &ended, 0, &usage) < 0)
        if (errno != EINTR)
            die("wait4:");
    threads_at_work = false;
    *seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
               + 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    return ended;
}

static int memory_file(const char *name)
{
    int file = memfd_create(name, MFD_CLOEXEC);
    if (file < 0)
        die("cannot make a file without a name for --inject:");
    return file;
}

static void map_results(void)
{
    struct stat stat;
    if (fstat(injection.results_file, &stat))
        die("fstat:");
    injection.results_bytes = (uint64_t)stat.st_size;
    if (!stat.st_size)
        return;
    void *at = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, injection.results_file, 0);
    if (at == MAP_FAILED)
        die("cannot map the results of a run without a defect:");
    injection.results = at;
}

/* The run without a defect. Returns false in its process. */
static bool rehearse(void)
{
    injection.rehearsed = true;
    injection.counts_file = memory_file("places");
    injection.results_file = memory_file("results");
    pid_t child = process_fork();
    if (child == 0) {
        injection.role = ROLE_REHEARSAL;
        return false;
    }
    int ended = wait_for(child, &injection.rehearsal_seconds);
    injection.rehearsal_status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    if (injection.rehearsal_status == STATUS_GOOD) {
        map_results();
        draw_all();
    }
    return true;
}

/* The system ends a run that takes far more CPU time than the one without a defect: it may never end by itself. */
static void limit_time(void)
{
    rlim_t seconds = (rlim_t)(2 + 10 * injection.rehearsal_seconds);
    if (setrlimit(RLIMIT_CPU, &(struct rlimit){seconds, seconds + 1}))
        die("setrlimit:");
}

/* The run with a defect. Returns false in its process. */
static bool run_with(struct injected *injected)
{
    pid_t child = process_fork();
    if (child) {
        double seconds;
        int ended = wait_for(child, &seconds);
        if (WIFSIGNALED(ended) && WTERMSIG(ended) == SIGXCPU)
            injected->outcome = (struct outcome){.ended = true, .status = STATUS_RUN_FAILED, .change = INFINITY};
        return true;
    }
    limit_time();
    injection.role = ROLE_DEFECTIVE;
    injection.mine = injected;
    defect_put_in(&injected->defect);
    return false;
}

static void count_places(void)
{
    uint64_t counts[DEFECTS];
    defects_find(counts, NULL, 0);
    write_fully(injection.counts_file, counts, sizeof counts);
}

/* Runs the defects of the interval that begins its data pass. */
static void run_defects(void)
{
    struct defect *defects = arena_alloc(injection.count + 1, sizeof *defects);
    uint64_t counts[DEFECTS], first = injection.next, end = first;
    for (; end < injection.count && injection.defects[end].interval == injection.interval; end++)
        defects[end - first] = injection.defects[end].defect;
    if (end == first)
        return;
    defects_find(counts, defects, end - first);
    for (uint64_t i = first; i < end; i++)
        injection.defects[i].defect = defects[i - first];
    for (; injection.next < end && !watchdog_ended(); injection.next++) {
        if (!run_with(&injection.defects[injection.next]))
            return;
        progress("defects", injection.next, injection.count);
    }
}

static void pass_begins(void)
{
    double began = clock_seconds();
    if (injection.role == ROLE_USER && !injection.rehearsed)
        rehearse();
    if (injection.role == ROLE_REHEARSAL)
        count_places();
    else if (injection.role == ROLE_USER)
        run_defects();
    injection.interval++;
    simulation_extras.seconds += clock_seconds() - began;
}

void injection_option(const char *text)
{
    injection_count = option_whole("inject", text, 1, 1000000);
}

void injection_begin(void)
{
    if (!injection_count)
        return;
    exec_begins = pass_begins;
    expect_compared = compared;
    injection.defects = mmap(NULL, injection_count * sizeof *injection.defects, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (injection.defects == MAP_FAILED)
        die("no memory for %" PRIu64 " defects:", injection_count);
}

void injection_run_ended(int status)
{
    if (injection.role == ROLE_USER)
        return;
    if (injection.role == ROLE_DEFECTIVE) {
        struct outcome *outcome = &injection.mine->outcome;
        if (injection.compared != injection.results_bytes)
            outcome->change = INFINITY;                 /* it has not come to all comparisons */
        outcome->status = status;
        outcome->ended = true;
    }
    _exit(status);
}

/* ---- the report */

/* Units of the last place by which a result may change without harm: rounded before and after, it may be off by one of
 * them although it has changed by no more than another one. */
enum { ROUNDINGS = 2 };

enum fate { FATE_DETECTED, FATE_HARMLESS, FATE_MISSED, FATE_NOT_RUN, FATES };

static enum fate fate_of(const struct injected *injected)
{
    const struct outcome *outcome = &injected->outcome;
    if (!outcome->ended)
        return FATE_NOT_RUN;
    if (outcome->change <= ROUNDINGS)
        return FATE_HARMLESS;
    return outcome->status == STATUS_GOOD ? FATE_MISSED : FATE_DETECTED;
}

static void count_fates(uint64_t fates[FATES])
{
    for (uint64_t i = 0; i < injection.count; i++)
        fates[fate_of(&injection.defects[i])]++;
}

static void print_missed(FILE *out, const struct injected *injected)
{
    const struct defect *f = &injected->defect;
    fprintf(out, "  missed: %s: operation %" PRIu64 ", %s of kernel %s on %s, called at %s:%u;\n    %s changes by %.3g "
            "units of the last place of %s\n", defect_words[f->kind], f->op, f->name, f->kernel, pe_name(&kb_pe[f->pe]),
            f->file, (unsigned)f->line, injected->outcome.tensor, injected->outcome.change,
            dtype_words[injected->outcome.dtype]);
}

void injection_print(FILE *out)
{
    uint64_t fates[FATES] = {0};
    if (!injection_count)
        return;
    if (!injection.count) {
        fprintf(out, "injected     no defect: %s\n", injection.rehearsed && injection.rehearsal_status
                ? "the run fails without one" : "the run has no operation to put one in");
        return;
    }
    count_fates(fates);
    fprintf(out, "injected     %" PRIu64 " defects: %" PRIu64 " detected, %" PRIu64 " missed, %" PRIu64
            " harmless: no result changes by more than its rounding; in %s\n", injection.count, fates[FATE_DETECTED],
            fates[FATE_MISSED], fates[FATE_HARMLESS], human_seconds(simulation_extras.seconds));
    if (fates[FATE_NOT_RUN])
        fprintf(out, "  %" PRIu64 " defects did not come to an end\n", fates[FATE_NOT_RUN]);
    for (uint64_t i = 0; i < injection.count; i++)
        if (fate_of(&injection.defects[i]) == FATE_MISSED)
            print_missed(out, &injection.defects[i]);
}

static void write_defect(struct json *json, const struct injected *injected)
{
    static const char *const words[FATES] = {"detected", "harmless", "missed", "not run"};
    const struct defect *f = &injected->defect;
    json_object(json, NULL);
    json_string(json, "defect", defect_names[f->kind]);
    json_string(json, "fate", words[fate_of(injected)]);
    json_u64(json, "op", f->op);
    json_string(json, "name", f->name);
    json_string(json, "pe", f->name ? pe_name(&kb_pe[f->pe]) : NULL);
    json_string(json, "kernel", f->kernel);
    json_string(json, "file", f->file);
    json_u64(json, "line", f->line);
    if (injected->outcome.change > 0) {
        json_string(json, "tensor", *injected->outcome.tensor ? injected->outcome.tensor : NULL);
        json_double(json, "change", injected->outcome.change);
    }
    json_object_end(json);
}

void injection_write(struct json *json)
{
    uint64_t fates[FATES] = {0};
    if (!injection_count)
        return;
    count_fates(fates);
    json_object(json, "inject");
    json_u64(json, "detected", fates[FATE_DETECTED]);
    json_u64(json, "missed", fates[FATE_MISSED]);
    json_u64(json, "harmless", fates[FATE_HARMLESS]);
    json_u64(json, "not_run", fates[FATE_NOT_RUN]);
    json_array(json, "defects");
    for (uint64_t i = 0; i < injection.count; i++)
        write_defect(json, &injection.defects[i]);
    json_array_end(json);
    json_object_end(json);
}
