/* slurm.c: rounds of a search as jobs of Slurm.
 *
 * Slurm runs a task at least once, and a task goes on where it was: its store has each point once. Jobs are found by a name
 * that is unique, so that an empty list means that they have ended; a list that cannot be had means nothing. */
#include "slurm.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <errno.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "../../rt/common/fail.h"
#include "../build/home.h"
#include "../build/process.h"
#include "file_out.h"
#include "repeat.h"
#include "shard.h"

enum { POLL_MS = 1000, SUBMIT_TRIES = 60, EMPTY_LISTS = 2 };              /* a controller that has just begun may list nothing */

static const char no_slurm[] = "this host has no Slurm; any engine can run kbgen search with --shard auto";

static const char *folder_of(const struct slurm *slurm)
{
    return arena_printf("%s.slurm", slurm->store);
}

/* ---- scripts */

static const char *array_script(const struct slurm *slurm)
{
    return arena_printf("#!/bin/sh\n"
                        "# Task I evaluates the points whose number leaves remainder I, of %" PRIu64 " parts. Run again, it goes on where it was.\n"
                        "exec %s search %s -o %s --shard \"$SLURM_ARRAY_TASK_ID/%" PRIu64 "\" -j \"${SLURM_CPUS_PER_TASK:-1}\"%s\n",
                        slurm->tasks, repeat_quoted(home_program()), repeat_quoted(slurm->space), repeat_quoted(slurm->store),
                        slurm->tasks, slurm->options);
}

/* A text that is being written; text_end returns it, in the arena. */
struct text_out {
    FILE *file;
    char *text;
    size_t length;
};

static void text_begin(struct text_out *out)
{
    out->file = open_memstream(&out->text, &out->length);
    if (!out->file)
        die("out of memory");
}

static const char *text_end(struct text_out *out)
{
    if (fclose(out->file))
        die("out of memory");
    const char *kept = arena_text(out->text, out->length);
    free(out->text);
    return kept;
}

/* A task that has not begun has no store. */
static const char *merge_script(const struct slurm *slurm)
{
    struct text_out out;
    text_begin(&out);
    fputs("#!/bin/sh\n# Adds to the store what the stores of all shards have.\nfor shard in", out.file);
    for (uint64_t i = 0; i < slurm->tasks; i++)
        fprintf(out.file, " \\\n    %s", repeat_quoted(shard_store(slurm->store, (struct shard){i, slurm->tasks})));
    fprintf(out.file, "\ndo [ -e \"$shard\" ] && set -- \"$@\" \"$shard\"\ndone\n"
                      "[ $# = 0 ] || exec %s merge %s \"$@\"\n", repeat_quoted(home_program()), repeat_quoted(slurm->store));
    return text_end(&out);
}

static void write_script(const char *path, const char *text)
{
    struct file_out out = file_out_open(path, NULL);
    fputs(text, out.file);
    file_out_close(&out);
}

void slurm_prepare(const struct slurm *slurm)
{
    const char *folder = folder_of(slurm);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        die("make folder %s:", folder);
    write_script(arena_printf("%s/array.sh", folder), array_script(slurm));
    write_script(arena_printf("%s/merge.sh", folder), merge_script(slurm));
}

/* ---- commands */

/* "0-63", "3,17-19" */
static const char *array_text(const struct slurm_round *round)
{
    struct text_out out;
    text_begin(&out);
    for (size_t i = 0, last; i < round->count; i = last + 1) {
        for (last = i; last + 1 < round->count && round->tasks[last + 1] == round->tasks[last] + 1; last++)
            continue;
        fprintf(out.file, "%s%" PRIu64, i ? "," : "", round->tasks[i]);
        if (last > i)
            fprintf(out.file, "-%" PRIu64, round->tasks[last]);
    }
    return text_end(&out);
}

/* Adds the words of --sbatch, which come behind ours, so that they can replace them. */
static void add_given(struct words *words, const char *given)
{
    for (size_t length; given && *(given += strspn(given, " \t\n")); given += length) {
        length = strcspn(given, " \t\n");
        words_add(words, arena_text(given, length));
    }
}

/* The command that submits a script. A path with % would be a pattern of Slurm. */
static struct words sbatch(const struct slurm *slurm, const char *name, const char *script, const char *log, const char *way)
{
    const char *folder = folder_of(slurm);
    char *here = getcwd(NULL, 0);
    struct words words = {0};
    words_add(&words, "sbatch");
    words_add(&words, "--parsable");
    words_add(&words, arena_printf("--job-name=%s", name));
    words_add(&words, arena_printf("--output=%s/%s", folder, log));
    words_add(&words, arena_printf("--chdir=%s", here ? here : "/"));
    words_add(&words, "--open-mode=append");
    words_add(&words, "--requeue");
    words_add(&words, way);
    add_given(&words, slurm->sbatch);
    words_add(&words, arena_printf("%s/%s", folder, script));
    free(here);
    return words;
}

static struct words sbatch_array(const struct slurm *slurm, const char *name, const struct slurm_round *round)
{
    return sbatch(slurm, name, "array.sh", "task-%a.log", arena_printf("--array=%s", array_text(round)));
}

static struct words sbatch_merge(const struct slurm *slurm, const char *name, const char *array)
{
    return sbatch(slurm, name, "merge.sh", "merge.log", arena_printf("--dependency=afterany:%s", array));
}

static void print_command(const struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        printf("%s%s", i ? " " : "", repeat_quoted(words->word[i]));
    printf("\n");
}

void slurm_print(const struct slurm *slurm)
{
    uint64_t *tasks = arena_alloc(slurm->tasks, sizeof *tasks);
    for (uint64_t i = 0; i < slurm->tasks; i++)
        tasks[i] = i;
    struct words array = sbatch_array(slurm, "kbgen", &(struct slurm_round){tasks, slurm->tasks});
    struct words merge = sbatch_merge(slurm, "kbgen", "JOB");
    const char *folder = printable(folder_of(slurm));
    printf("# %s/array.sh\n%s\n# %s/merge.sh\n%s\n", folder, array_script(slurm), folder, merge_script(slurm));
    print_command(&array);
    print_command(&merge);
}

/* ---- jobs */

static void run_quietly(const char *program, const char *verb, const char *job)
{
    struct process process = {.what = program, .needs = no_slurm};
    words_add(&process.words, program);
    if (verb)
        words_add(&process.words, verb);
    words_add(&process.words, job);
    processes_run(&process, 1, 1);
}

/* Slurm holds a task that it could not start, as after its controller was killed, until somebody releases it. */
static void release_if_held(const char *line, size_t length)
{
    const char *text = arena_text(line, length), *job = strchr(text, ' '), *reason = job ? strchr(job + 1, ' ') : NULL;
    if (reason && !strcmp(reason, " launch failed requeued held"))
        run_quietly("scontrol", "release", arena_text(job + 1, (size_t)(reason - job - 1)));
}

/* Counts tasks that wait and run. Returns false if their list cannot be had. */
static bool list_jobs(const char *name, size_t *waiting, size_t *running)
{
    struct process job = {.what = "squeue", .needs = no_slurm};
    size_t length;
    words_add(&job.words, "squeue");
    words_add(&job.words, "--noheader");
    words_add(&job.words, "--array");
    words_add(&job.words, "--format=%T %i %r");         /* "PENDING 12_3 Dependency" */
    words_add(&job.words, arena_printf("--name=%s", name));
    const char *text = process_output(&job, &length);
    *waiting = *running = 0;
    for (; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        (*(strncmp(text, "PENDING ", 8) ? running : waiting))++;
        release_if_held(text, length);
    }
    return job.status == 0;
}

/* Waits a moment; returns a signal that has come, or 0. */
static int wait_for_signal(int signals)
{
    struct signalfd_siginfo info;
    poll(&(struct pollfd){.fd = signals, .events = POLLIN}, 1, POLL_MS);
    return read(signals, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

/* Submits a script; returns the number of the job. While no controller answers, it tries again; returns NULL if a signal
 * comes meanwhile, *ended_by. */
static const char *submit(struct words words, int signals, int *ended_by)
{
    struct process job = {.words = words, .what = "sbatch", .needs = no_slurm};
    size_t length, waiting, running;
    const char *said = process_output(&job, &length);
    for (unsigned tries = 0; job.status && tries < SUBMIT_TRIES && !list_jobs("kbgen", &waiting, &running); tries++) {
        if (tries == 0)
            message("%s: no controller of Slurm answers; sbatch is tried %u times more\n", program_name, (unsigned)SUBMIT_TRIES);
        if ((*ended_by = wait_for_signal(signals)))
            return NULL;
        said = process_output(&job, &length);
    }
    size_t digits = strspn(said, "0123456789");         /* with several clusters, "JOB;CLUSTER" */
    if (job.status || !digits)
        die("sbatch has refused a job");
    return arena_text(said, digits);
}

static void show(const char *array, bool is_known, size_t waiting, size_t running)
{
    if (!isatty(STDERR_FILENO))
        return;
    if (is_known)
        fprintf(stderr, "\r\033[Kjob %s and its merge: %zu running, %zu waiting", array, running, waiting);
    else
        fprintf(stderr, "\r\033[Kjob %s and its merge: Slurm does not answer", array);
}

int slurm_run(const struct slurm *slurm, const struct slurm_round *round, int signals)
{
    static unsigned rounds;
    struct arena_mark mark = arena_mark();
    const char *name = arena_printf("kbgen-%ld-%u", (long)getpid(), rounds++);
    int ended_by = 0;
    const char *array = submit(sbatch_array(slurm, name, round), signals, &ended_by);
    if (!array || !submit(sbatch_merge(slurm, name, array), signals, &ended_by)) {
        if (array)
            run_quietly("scancel", NULL, array);
        arena_release(mark);
        return ended_by;
    }
    unsigned empty = 0;
    for (size_t waiting, running;;) {
        int signal = wait_for_signal(signals);
        if (signal && ended_by)
            break;
        if (signal) {
            ended_by = signal;
            run_quietly("scancel", NULL, array);
        }
        bool is_known = list_jobs(name, &waiting, &running);
        show(array, is_known, waiting, running);
        empty = is_known && !waiting && !running ? empty + 1 : 0;
        if (empty == EMPTY_LISTS)
            break;
    }
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    arena_release(mark);
    return ended_by;
}
