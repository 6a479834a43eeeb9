/* batch.c: many topologies in one call: one process for each, a limited number at a time.
 *
 * Each process does what kbgen does with one topology; the processes share the topologies' names only. If several
 * topologies have the same structure, the first one is linked and the others wait in the cache (cache.h) and reuse it.
 */
#include "batch.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/hash.h"
#include "build_key.h"
#include "cache.h"
#include "process.h"

enum { NAME_BYTES = 33 };

/* What a process tells all others about its topology, in shared memory. */
struct claim {
    atomic_bool settled;                                /* the name is known, or the topology has errors */
    char name[NAME_BYTES];                              /* a hash of the name; "": it has none */
};

/* One topology of many. */
struct one {
    struct options options;
    int (*make)(struct options *options);
    char *said;                                         /* its messages, once the process has ended */
};

static struct {
    char *const *topologies;
    struct claim *claims;
    struct one *ones;
    size_t count, printed, own;                         /* own: in a process, the index of its topology */
} many;

/* Waits for the process of an earlier topology, which has been started and knows its name within milliseconds. */
static void wait_for(const struct claim *claim)
{
    while (!atomic_load(&claim->settled))
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

void claim_name(const struct model *model)
{
    if (!many.claims)
        return;
    struct hash *hash = hash_begin();
    hash_text(hash, model->name);
    const char *name = hash_end(hash);
    struct claim *own = &many.claims[many.own];
    for (size_t i = 0; i < many.own; i++) {
        wait_for(&many.claims[i]);
        if (strcmp(many.claims[i].name, name))
            continue;
        error_at(model->system_name.where, "'%s' is the name of %s and of %s; they would be made at one place",
                 model->name, many.topologies[i], many.topologies[many.own]);
        break;
    }
    memcpy(own->name, name, NAME_BYTES);
    atomic_store(&own->settled, true);
}

static int make_one(struct process *job)
{
    struct one *one = &many.ones[job->number];
    many.own = job->number;
    return one->make(&one->options);
}

static char *read_said(int file)
{
    off_t length = lseek(file, 0, SEEK_END);
    char *said = arena_alloc((size_t)length + 1, 1);
    if (length < 0 || pread(file, said, (size_t)length, 0) != length)
        die("read what was said:");
    close(file);
    return said;
}

static void print_said(const struct one *one)
{
    if (one->options.verbose)
        fprintf(stderr, "%s\n", one->options.topology);
    fputs(one->said, stderr);
}

/* Called when a process has ended: prints its messages once those of all earlier ones are printed. */
static void ended(struct process *job)
{
    struct one *one = &many.ones[job->number];
    one->said = read_said(job->errors);
    if (WIFSIGNALED(job->status))
        one->said = arena_printf("%skbgen: %s: ended by signal %d\n", one->said, one->options.topology,
                                 WTERMSIG(job->status));
    atomic_store(&many.claims[job->number].settled, true);
    for (; many.printed < many.count && many.ones[many.printed].said; many.printed++)
        print_said(&many.ones[many.printed]);
}

static int worst_of(const struct process *jobs)
{
    int worst = 0;
    for (size_t i = 0; i < many.count; i++) {
        int status = WIFEXITED(jobs[i].status) ? WEXITSTATUS(jobs[i].status) : 3;
        worst = status > worst ? status : worst;
    }
    return worst;
}

int make_batch(const struct options *options, int (*make)(struct options *options))
{
    fingerprint_of_home();                              /* computed before the processes start: all of them have it */
    if (!options->check && !options->emit_c)
        cache_prepare();
    many.count = options->topology_count;
    many.topologies = options->topologies;
    many.ones = arena_alloc(many.count, sizeof *many.ones);
    many.claims = mmap(NULL, many.count * sizeof *many.claims, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                       0);
    if (many.claims == MAP_FAILED)
        die("share memory:");
    struct process *jobs = arena_alloc(many.count, sizeof *jobs);
    for (size_t i = 0; i < many.count; i++) {
        many.ones[i] = (struct one){.options = *options, .make = make};
        many.ones[i].options.topology = options->topologies[i];
        many.ones[i].options.jobs = options->jobs > many.count ? options->jobs / many.count : 1;
        jobs[i] = (struct process){.number = i, .what = options->topologies[i], .run = make_one, .ended = ended};
    }
    processes_run(jobs, many.count, options->jobs);
    return worst_of(jobs);
}
