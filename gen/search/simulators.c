/* simulators.c: which process runs which point, and which structure is built next.
 *
 * Structures are served in the order in which they were met, so that a search over structures builds the next ones while
 * the points of the first ones run. */
#include "simulators.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/fail.h"
#include "../../rt/common/hash.h"
#include "../build/build_key.h"
#include "../build/output.h"
#include "../words.h"
#include "node_copy.h"

enum { IDLE_MOST = 16, CRASHES_MOST = 2 };

enum site_state { SITE_NEW, SITE_BUILDING, SITE_READY, SITE_BROKEN };

/* A structure, and its runs that wait for a process. */
struct site {
    struct structure *structure;
    enum site_state state;
    const char *program;
    char *why;                                          /* SITE_BROKEN: what the build has said */
    pid_t builder;
    int end, said;                                      /* SITE_BUILDING: its pidfd, its standard error */
    struct run_list *waiting;                           /* by workload */
    struct site *next;                                  /* in the list of those with runs that wait */
    bool is_listed;
    bool is_wanted;                                     /* it is to be built, even without a run */
};

/* A process, on a site. */
struct seat {
    struct worker *worker;
    struct site *site;
    unsigned workload;
    uint64_t used;                                      /* when it was idle last, in turns */
    bool is_late;                                       /* it was killed for that */
};

struct simulators {
    const struct simulators_options *options;
    struct site **sites;                                /* by number of the structure; NULL: not met yet */
    size_t site_count, waiting, builds, unbuilt;
    struct site *first, **end;                          /* with runs that wait, or a build */
    struct seat *seats;
    size_t seat_count, seat_room;
    struct pollfd *polls;
    uint64_t turns;
    bool drains;
    const char *inputs;                                 /* a hash of what simulators of this search have in common */
};

static void *or_die(void *memory)
{
    if (!memory)
        die("out of memory");
    return memory;
}

/* Simulators of one folder that have equal structures, and take the same numbers from lines, have one name. */
static const char *inputs_hash(const struct simulators_options *options)
{
    const struct space *space = options->space;
    struct number topology = machines_topology(options->machines);
    struct hash *hash = hash_begin();
    hash_text(hash, fingerprint_of_home());
    hash_add(hash, topology.bytes, topology.length);
    for (size_t i = 0; i < space->kernel_count; i++)
        hash_file(hash, space->kernels[i]);
    for (size_t i = 0; i < space->impl_count; i++)
        hash_file(hash, space->impls[i]);
    for (size_t i = 0; i < space->axis_count; i++)
        hash_text(hash, space->axes[i].name);
    return hash_end(hash);
}

struct simulators *simulators_begin(const struct simulators_options *options)
{
    struct simulators *simulators = arena_alloc(1, sizeof *simulators);
    simulators->options = options;
    simulators->inputs = inputs_hash(options);
    simulators->end = &simulators->first;
    return simulators;
}

/* ---- sites */

static const char *program_of(const struct simulators *simulators, const struct structure *structure)
{
    struct hash *hash = hash_begin();
    hash_text(hash, simulators->inputs);
    hash_text(hash, structure->name);
    return arena_printf("%s/%s", simulators->options->folder, hash_end(hash));
}

static struct site *new_site(struct simulators *simulators, struct structure *structure)
{
    arena_keep_begin();
    struct site *site = arena_alloc(1, sizeof *site);
    site->structure = structure;
    site->program = program_of(simulators, structure);
    site->waiting = arena_alloc(simulators->options->space->workload_count, sizeof *site->waiting);
    site->state = access(site->program, X_OK) == 0 ? SITE_READY : SITE_NEW;
    arena_keep_end();
    return site;
}

static struct site *site_of(struct simulators *simulators, struct structure *structure)
{
    size_t number = structure->number;
    while (simulators->site_count <= number) {
        size_t count = simulators->site_count;
        if (!(count & (count - 1)))
            simulators->sites = or_die(realloc(simulators->sites, 2 * (count + 1) * sizeof *simulators->sites));
        simulators->sites[simulators->site_count++] = NULL;
    }
    if (!simulators->sites[number])
        simulators->sites[number] = new_site(simulators, structure);
    return simulators->sites[number];
}

static void list_site(struct simulators *simulators, struct site *site)
{
    if (site->is_listed)
        return;
    site->is_listed = true;
    site->next = NULL;
    *simulators->end = site;
    simulators->end = &site->next;
}

static size_t site_waiting(const struct simulators *simulators, const struct site *site)
{
    size_t count = 0;
    for (size_t i = 0; i < simulators->options->space->workload_count; i++)
        count += site->waiting[i].count;
    return count;
}

void simulators_add(struct simulators *simulators, struct structure *structure, unsigned workload, struct run *run)
{
    struct site *site = site_of(simulators, structure);
    run_list_add(&site->waiting[workload], run);
    simulators->waiting++;
    list_site(simulators, site);
}

void simulators_prepare(struct simulators *simulators, struct structure *structure)
{
    struct site *site = site_of(simulators, structure);
    if (site->state != SITE_NEW || site->is_wanted)
        return;
    site->is_wanted = true;
    simulators->unbuilt++;
    list_site(simulators, site);
}

/* ---- builds */

static _Noreturn void build(const struct simulators *simulators, const struct site *site, size_t jobs)
{
    structure_build(simulators->options->machines, site->structure, site->program, jobs);
    exit(STATUS_GOOD);
}

static void begin_build(struct simulators *simulators, struct site *site)
{
    site->builder = child_fork(&site->said);
    if (!site->builder)
        build(simulators, site, 1);
    site->end = pidfd_open(site->builder, 0);
    if (site->end < 0)
        die("watch a build:");
    site->state = SITE_BUILDING;
    simulators->builds++;
    simulators->unbuilt -= site->is_wanted;
}

static void end_build(struct simulators *simulators, struct site *site)
{
    int status;
    while (waitpid(site->builder, &status, 0) < 0 && errno == EINTR)
        continue;
    close(site->end);
    simulators->builds--;
    bool is_good = WIFEXITED(status) && WEXITSTATUS(status) == STATUS_GOOD;
    const char *said = child_said(site->said);
    if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_HOST_FAILED)
        die("a simulator cannot be built: %s", said);
    site->state = is_good ? SITE_READY : SITE_BROKEN;
    if (!is_good)
        site->why = or_die(strdup(*said ? on_one_line(said) : "its build was killed"));
}

const char *simulators_program(struct simulators *simulators, struct structure *structure)
{
    struct site *site = site_of(simulators, structure);
    if (site->state == SITE_NEW) {
        int said, status;
        pid_t builder = child_fork(&said);
        if (!builder)
            build(simulators, site, simulators->options->jobs);
        while (waitpid(builder, &status, 0) < 0 && errno == EINTR)
            continue;
        message("%s%s", child_said(said), status ? "\n" : "");
        if (status)
            fail_exit(WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_HOST_FAILED);
        site->state = SITE_READY;
    }
    return site->program;
}

static void give_up(struct simulators *simulators, struct site *site, struct run_list *done)
{
    for (size_t i = 0; i < simulators->options->space->workload_count; i++)
        for (struct run *run; (run = run_list_take(&site->waiting[i]));) {
            simulators->waiting--;
            run->status = or_die(strdup("not built"));
            run->why = or_die(strdup(site->why));
            run->exit = -1;
            run_list_add(done, run);
        }
}

/* ---- processes */

/* The path of a file, or of its copy on this node. */
static const char *copied(const struct simulators_options *options, const char *path, const char *name)
{
    return options->copies ? node_copy(options->copies, path, name) : path;
}

static char *const *command(const struct simulators *simulators, const struct site *site, unsigned workload)
{
    const struct simulators_options *options = simulators->options;
    const struct workload *what = &options->space->workloads[workload];
    struct words words = {0};
    size_t count;
    char **arguments = workload_arguments(options->workloads, workload, &count);
    const char *const both[] = {"--points", "-", "--metrics"};
    const char *const of_bench[] = {"--threads", "1", "--data", options->verifies ? "verify" : "off"};
    words_add(&words, copied(options, site->program, strrchr(site->program, '/') + 1));
    words_add(&words, what->bench ? "run" : "replay");
    words_add(&words, what->bench ? what->bench : copied(options, what->stream, workload_stream(options->workloads, workload)));
    for (size_t i = 0; i < count; i++)
        words_add(&words, arguments[i]);
    for (size_t i = 0; i < COUNT_OF(both); i++)
        words_add(&words, both[i]);
    for (size_t i = 0; what->bench && i < COUNT_OF(of_bench); i++)
        words_add(&words, of_bench[i]);
    if (!what->bench && options->verifies)
        words_add(&words, "--exact-events");
    if (options->time_limit) {
        words_add(&words, "--time-limit");
        words_add(&words, options->time_limit);
    }
    if (options->memory_limit) {
        words_add(&words, "--mem-limit");
        words_add(&words, options->memory_limit);
    }
    words_add(&words, NULL);
    return (char *const *)words.word;
}

static void remove_seat(struct simulators *simulators, struct seat *seat)
{
    worker_end(seat->worker);
    *seat = simulators->seats[--simulators->seat_count];
}

/* Ends the processes that have been idle for longest. */
static void bound_idle(struct simulators *simulators)
{
    for (;;) {
        struct seat *oldest = NULL;
        size_t idle = 0;
        for (size_t i = 0; i < simulators->seat_count; i++) {
            struct seat *seat = &simulators->seats[i];
            if (worker_load(seat->worker))
                continue;
            idle++;
            if (!oldest || seat->used < oldest->used)
                oldest = seat;
        }
        if (idle <= IDLE_MOST)
            return;
        remove_seat(simulators, oldest);
    }
}

static struct seat *idle_seat(struct simulators *simulators, const struct site *site, unsigned workload)
{
    for (size_t i = 0; i < simulators->seat_count; i++) {
        struct seat *seat = &simulators->seats[i];
        if (seat->site == site && seat->workload == workload && !worker_load(seat->worker))
            return seat;
    }
    return NULL;
}

static struct seat *new_seat(struct simulators *simulators, struct site *site, unsigned workload)
{
    if (simulators->seat_count == simulators->seat_room) {
        simulators->seat_room = 2 * simulators->seat_room + 8;
        simulators->seats = or_die(realloc(simulators->seats, simulators->seat_room * sizeof *simulators->seats));
    }
    struct seat *seat = &simulators->seats[simulators->seat_count++];
    struct arena_mark mark = arena_mark();
    *seat = (struct seat){worker_start(command(simulators, site, workload)), site, workload, simulators->turns, false};
    arena_release(mark);
    return seat;
}

/* Gives a process the runs that it has room for. */
static void fill(struct simulators *simulators, struct seat *seat)
{
    struct run_list *waiting = &seat->site->waiting[seat->workload];
    for (size_t room = worker_room(seat->worker); room && waiting->count && !seat->is_late; room--) {
        worker_give(seat->worker, run_list_take(waiting));
        simulators->waiting--;
    }
    seat->used = simulators->turns;
}

static size_t busy(const struct simulators *simulators)
{
    size_t count = simulators->builds;
    for (size_t i = 0; i < simulators->seat_count; i++)
        count += worker_load(simulators->seats[i].worker) > 0;
    return count;
}

/* Gives work to processors that have none, in the order of the list, and drops from it what has no runs any more. */
static void assign(struct simulators *simulators, struct run_list *done)
{
    for (size_t i = 0; i < simulators->seat_count; i++)
        if (worker_load(simulators->seats[i].worker))
            fill(simulators, &simulators->seats[i]);
    size_t free = simulators->options->jobs, used = busy(simulators);
    free = free > used ? free - used : 0;
    simulators->end = &simulators->first;
    for (struct site *site = simulators->first, *next; site; site = next) {
        next = site->next;
        if (site->state == SITE_BROKEN)
            give_up(simulators, site, done);
        if (site->state == SITE_NEW && free && (site->is_wanted || site_waiting(simulators, site))) {
            begin_build(simulators, site);
            free--;
        }
        for (unsigned w = 0; site->state == SITE_READY && w < simulators->options->space->workload_count; w++)
            for (; free && site->waiting[w].count; free--) {
                struct seat *seat = idle_seat(simulators, site, w);
                fill(simulators, seat ? seat : new_seat(simulators, site, w));
            }
        site->is_listed = site->state == SITE_BUILDING || (site->state == SITE_NEW && site->is_wanted) || site_waiting(simulators, site);
        if (!site->is_listed)
            continue;
        *simulators->end = site;
        simulators->end = &site->next;
    }
    *simulators->end = NULL;
    bound_idle(simulators);
}

/* A run whose process has ended is tried once more. */
static void after_crash(struct seat *seat, struct run *run)
{
    const char *epitaph = worker_epitaph(seat->worker);
    if (++run->crashes < CRASHES_MOST && !seat->is_late)
        return;
    run->status = or_die(strdup(seat->is_late ? "hung" : "crashed"));
    run->why = or_die(strdup(seat->is_late ? "the simulator has not answered in time" : epitaph));
    run->exit = -1;
}

/* Takes the runs of a process that has ended: the first was under way, the others have not begun. */
static void bury(struct simulators *simulators, struct seat *seat, struct run_list *left, struct run_list *done)
{
    struct run_list *waiting = &seat->site->waiting[seat->workload];
    struct run *first = run_list_take(left);
    if (first)
        after_crash(seat, first);
    if (first && first->status)
        run_list_add(done, first);
    else if (first)
        run_list_add_first(left, first);
    simulators->waiting += left->count;
    for (struct run *run; (run = run_list_take(waiting));)
        run_list_add(left, run);
    *waiting = *left;
    list_site(simulators, seat->site);
    remove_seat(simulators, seat);
}

static void work(struct simulators *simulators, const struct pollfd *polls, struct run_list *done)
{
    for (size_t i = simulators->seat_count; i-- > 0;) { /* the last one takes the place of one that is removed */
        struct seat *seat = &simulators->seats[i];
        struct run_list answered = {0}, left = {0};
        bool is_alive = worker_work(seat->worker, &polls[i * WORKER_POLLS], &answered);
        for (struct run *run; (run = run_list_take(&answered));)
            run_list_add(run->status ? done : &left, run);
        double patience_s = simulators->options->patience_s;
        if (!is_alive) {
            bury(simulators, seat, &left, done);
        } else if (patience_s > 0 && !seat->is_late && worker_is_late(seat->worker, patience_s)) {
            seat->is_late = true;
            worker_kill(seat->worker);
        }
    }
}

void simulators_turn(struct simulators *simulators, int other, int wait_ms, struct run_list *done)
{
    struct arena_mark mark = arena_mark();
    simulators->turns++;
    if (!simulators->drains)
        assign(simulators, done);
    size_t seats = simulators->seat_count, count = seats * WORKER_POLLS;
    struct pollfd *polls = arena_alloc(count + simulators->builds + 1, sizeof *polls);
    for (size_t i = 0; i < seats; i++)
        worker_polls(simulators->seats[i].worker, &polls[i * WORKER_POLLS]);
    size_t first_build = count;
    for (struct site *site = simulators->first; site; site = site->next)
        if (site->state == SITE_BUILDING)
            polls[count++] = (struct pollfd){site->end, POLLIN, 0};
    polls[count++] = (struct pollfd){other, POLLIN, 0};
    if (poll(polls, count, done->count ? 0 : wait_ms) < 0 && errno != EINTR)
        die("wait for simulators:");
    work(simulators, polls, done);
    size_t build = first_build;
    for (struct site *site = simulators->first; site && build < count - 1; site = site->next)
        if (site->state == SITE_BUILDING && polls[build].fd == site->end && polls[build++].revents)
            end_build(simulators, site);
    arena_release(mark);
}

struct simulators_load simulators_load(const struct simulators *simulators)
{
    struct simulators_load load = {simulators->waiting, 0, simulators->builds, simulators->unbuilt, simulators->seat_count};
    for (size_t i = 0; i < simulators->seat_count; i++)
        load.running += worker_load(simulators->seats[i].worker);
    return load;
}

void simulators_drain(struct simulators *simulators)
{
    simulators->drains = true;
}

void simulators_end(struct simulators *simulators)
{
    while (simulators->seat_count)
        remove_seat(simulators, &simulators->seats[simulators->seat_count - 1]);
    for (struct site *site = simulators->first; site; site = site->next)
        if (site->state == SITE_BUILDING) {
            kill(site->builder, SIGTERM);
            waitpid(site->builder, NULL, 0);
            close(site->end);
            close(site->said);
        }
    simulators->first = NULL;
    simulators->builds = 0;
    free(simulators->seats);
    free(simulators->sites);
}
