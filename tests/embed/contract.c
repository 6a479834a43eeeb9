/* contract.c: what every instance of a library holds to (kb/sim.h): each check is a line "ok WHAT" or "not ok WHAT: WHY". */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <kb/sim.h>

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1                                     /* it keeps what was freed for a while */
#else
#define SANITIZED 0
#endif
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The machines of the two libraries that the program is linked with. */
extern const struct kb_machine kb_machine_small, kb_machine_ref_sip;

static void check(bool good, const char *what, const char *why)
{
    printf("%sok %s", good ? "" : "not ", what);
    for (printf(good ? "" : ": "); !good && *why; why++)
        putchar(*why == '\n' ? ' ' : *why);
    putchar('\n');
}

static struct kb_sim_config config_of(const struct kb_machine *machine)
{
    return (struct kb_sim_config){.struct_size = sizeof(struct kb_sim_config), .machine = machine};
}

static kb_sim *make(const struct kb_sim_config *config)
{
    kb_sim *sim;
    if (kb_sim_create(config, &sim) != KB_OK) {
        printf("not ok kb_sim_create: %s\n", kb_last_error(NULL));
        exit(1);
    }
    return sim;
}

static char *result_of(kb_sim *sim)
{
    uint64_t bytes = 0;
    if (kb_sim_result_json(sim, NULL, 0, &bytes) != KB_OK)
        return strdup("");
    char *text = malloc(bytes);
    return kb_sim_result_json(sim, text, bytes, &bytes) == KB_OK ? text : strdup("");
}

static void save(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    fputs(text, out);
    fclose(out);
}

/* ---- many instances on several threads */

enum { INSTANCES = 64, THREADS = 8 };

static struct {
    kb_sim *sim;
    enum kb_status status;
    char *text;
} many[INSTANCES];

static const char *const sizes[] = {"m=64", "m=96", "m=160", "m=224"};

/* Every second quarter of the instances replays the stream of the test's folder, the others run benches. */
static bool has_stream(size_t i)
{
    return i / 16 % 2;
}

static char stream[4096];
static size_t stream_length;

/* The streams of a thread's instances in slices, one slice of each after the other. */
static void slices(size_t first)
{
    uint64_t slice_ps = 1000 * (first + 1);
    for (size_t i = first; i < INSTANCES; i += THREADS) {
        uint64_t request;
        if (has_stream(i) && many[i].status == KB_OK)
            many[i].status = kb_sim_replay(many[i].sim, stream, stream_length, &request);
    }
    bool goes_on = true;
    for (uint64_t until_ps = slice_ps; goes_on; until_ps += slice_ps) {
        goes_on = false;
        for (size_t i = first; i < INSTANCES; i += THREADS) {
            struct kb_sim_stop why = {.struct_size = sizeof why};
            if (!has_stream(i) || many[i].status != KB_OK)
                continue;
            many[i].status = kb_sim_run(many[i].sim, until_ps, KB_STOP_IDLE, &why);
            goes_on |= why.reason == KB_STOP_UNTIL;
        }
    }
}

/* The instances of a thread take turns: all are made, each runs, each is asked. */
static void *turns(void *arg)
{
    size_t first = (size_t)arg;
    for (size_t i = first; i < INSTANCES; i += THREADS) {
        struct kb_sim_config config = config_of(i % 2 ? &kb_machine_ref_sip : &kb_machine_small);
        config.seed = i / 2 % 2;
        many[i].status = kb_sim_create(&config, &many[i].sim);
    }
    for (size_t i = first; i < INSTANCES; i += THREADS)
        if (many[i].status == KB_OK && !has_stream(i))
            many[i].status = kb_sim_run_bench(many[i].sim, "gemm", (const char *[]){sizes[i / 4 % 4], "n=64", "k=64"}, 3);
    slices(first);
    return NULL;
}

/* The same instances, by other threads than those that have made them. */
static void *ask(void *arg)
{
    for (size_t i = (size_t)arg; i < INSTANCES; i += THREADS) {
        many[i].text = many[i].status == KB_OK ? result_of(many[i].sim) : strdup(kb_status_name(many[i].status));
        kb_sim_destroy(many[i].sim);
    }
    return NULL;
}

static void on_threads(void *(*body)(void *))
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static int run_many(void)
{
    FILE *in = fopen("stream.yaml", "r");
    stream_length = in ? fread(stream, 1, sizeof stream, in) : 0;
    if (in)
        fclose(in);
    on_threads(turns);
    on_threads(ask);
    for (size_t i = 0; i < INSTANCES; i++) {
        char path[64];
        snprintf(path, sizeof path, "many-%zu.json", i);
        save(path, many[i].text);
        free(many[i].text);
    }
    return 0;
}

/* ---- wrong calls */

static kb_sim *in_callback;
static enum kb_status of_callback;
static char text_of_callback[256];

static void log_calls(void *user, const char *line)
{
    (void)user, (void)line;
    uint64_t bytes;
    of_callback = kb_sim_result_json(in_callback, NULL, 0, &bytes);
    snprintf(text_of_callback, sizeof text_of_callback, "%s", kb_last_error(in_callback));
}

static void *other_thread(void *arg)
{
    uint64_t bytes;
    enum kb_status *status = arg;
    *status = kb_sim_describe(in_callback, NULL, 0, &bytes);
    return NULL;
}

static void log_threads(void *user, const char *line)
{
    pthread_t thread;
    (void)line;
    pthread_create(&thread, NULL, other_thread, user);
    pthread_join(thread, NULL);
}

static void is(enum kb_status got, enum kb_status wanted, const kb_sim *sim, const char *said, const char *what)
{
    char why[512];
    const char *text = kb_last_error(sim);
    snprintf(why, sizeof why, "%s, '%s', wanted %s, '%s'", kb_status_name(got), text, kb_status_name(wanted), said);
    check(got == wanted && (got == KB_OK || (*said && strstr(text, said))), what, why);
}

/* A configuration of a later version: one field more. */
struct later_config {
    struct kb_sim_config config;
    uint64_t field;
};

static void wrong_configurations(void)
{
    kb_sim *sim = (kb_sim *)1;
    struct kb_sim_config config = config_of(NULL);
    is(kb_sim_create(NULL, &sim), KB_WRONG, NULL, "the configuration is NULL", "kb_sim_create without a configuration");
    check(!sim, "after a failure there is no instance", "sim is not NULL");
    is(kb_sim_create(&config, NULL), KB_WRONG, NULL, "is NULL", "kb_sim_create without a place for the instance");
    config.struct_size = 4;
    is(kb_sim_create(&config, &sim), KB_WRONG, NULL, "struct_size 4", "a struct_size that is too small");
    config.struct_size = UINT64_MAX;
    is(kb_sim_create(&config, &sim), KB_WRONG, NULL, "struct_size", "a struct_size that is too large");
    struct later_config later = {config_of(NULL), 0};
    later.config.struct_size = sizeof later;
    check(kb_sim_create(&later.config, &sim) == KB_OK && kb_sim_destroy(sim) == KB_OK,
          "a struct of a later version whose fields are 0 is taken", kb_last_error(NULL));
    later.field = 1;
    is(kb_sim_create(&later.config, &sim), KB_WRONG, NULL, "does not have", "a struct of a later version that asks for more");
    config = config_of(NULL);
    config.data = 7;
    is(kb_sim_create(&config, &sim), KB_WRONG, NULL, "data 7", "an unknown data mode");
    config = config_of(NULL);
    config.threads = 2;
    is(kb_sim_create(&config, &sim), KB_WRONG, NULL, "threads 2: 0 or 1", "a data pass on several threads");
    config = config_of(NULL);
    config.memory_bytes = 65536;
    is(kb_sim_create(&config, &sim), KB_WRONG, NULL, "memory_bytes 65536: at least", "less memory than an instance needs");
    config.memory_bytes = UINT64_MAX;
    is(kb_sim_create(&config, &sim), KB_WRONG, NULL, "memory_bytes", "more memory than there are addresses");
    config = config_of(NULL);
    config.set_count = 1;
    is(kb_sim_create(&config, &sim), KB_WRONG, NULL, "set is NULL", "a count of settings without settings");
    config.set = (const char *[]){NULL};
    is(kb_sim_create(&config, &sim), KB_WRONG, NULL, "set[0] is NULL", "a setting that is NULL");
    config.set = (const char *[]){"cube.noc.link_bw_gb=1"};
    is(kb_sim_create(&config, &sim), KB_WRONG, NULL, "did you mean 'link_bw_gbs'", "a setting of an unknown key");
    config.set = (const char *[]){"sip.cubes.rows=2"};
    is(kb_sim_create(&config, &sim), KB_WRONG, NULL, "sip.cubes.rows", "a setting that needs a build");
}

static void wrong_handles(void)
{
    struct kb_sim_config config = config_of(NULL);
    kb_sim *sim = make(&config), *other = make(&config);
    uint64_t bytes;
    is(kb_sim_destroy(NULL), KB_WRONG, NULL, "the instance is NULL", "a handle that is NULL");
    is(kb_sim_reset((kb_sim *)0x1234), KB_WRONG, NULL, "no instance", "a handle that is none");
    is(kb_sim_reset((kb_sim *)((char *)sim + 8)), KB_WRONG, NULL, "no instance", "an address within a handle's slot");
    check(kb_sim_destroy(sim) == KB_OK, "an instance is destroyed", kb_last_error(sim));
    is(kb_sim_destroy(sim), KB_WRONG, NULL, "destroyed", "a handle of a destroyed instance");
    kb_sim *next = make(&config);
    is(kb_sim_describe(sim, NULL, 0, &bytes), KB_WRONG, NULL, "destroyed", "the same when its slot is in use again");
    check(kb_sim_describe(next, NULL, 0, &bytes) == KB_OK, "the instance in that slot is not concerned", kb_last_error(next));
    is(kb_sim_describe(other, NULL, 0, NULL), KB_WRONG, other, "needed is NULL", "a place for a size that is NULL");
    check(!*kb_last_error(next), "an error of one instance is not that of another", kb_last_error(next));
    kb_sim_destroy(other);
    kb_sim_destroy(next);
}

static int no_visitor(void *user, const char *name, uint64_t value)
{
    (void)user, (void)name, (void)value;
    return 0;
}

static void wrong_arguments(void)
{
    struct kb_sim_config config = config_of(NULL);
    kb_sim *sim = make(&config);
    char text[8];
    uint64_t bytes;
    is(kb_sim_run_bench(sim, NULL, NULL, 0), KB_WRONG, sim, "bench is NULL", "a bench that is NULL");
    is(kb_sim_run_bench(sim, "gem", NULL, 0), KB_WRONG, sim, "no bench 'gem'; did you mean 'gemm'?", "an unknown bench");
    is(kb_sim_run_bench(sim, "gemm", NULL, 2), KB_WRONG, sim, "params is NULL", "a count of parameters without parameters");
    is(kb_sim_run_bench(sim, "gemm", (const char *[]){NULL}, 1), KB_WRONG, sim, "is NULL", "a parameter that is NULL");
    is(kb_sim_run_bench(sim, "gemm", (const char *[]){"m=x"}, 1), KB_WRONG, sim, "m=x", "a parameter with a wrong value");
    is(kb_sim_result_json(sim, text, sizeof text, NULL), KB_WRONG, sim, "needed is NULL", "a result without a place for its size");
    is(kb_sim_stat(sim, "end_ps", &bytes), KB_WRONG, sim, "nothing has run", "a number of the result before anything has run");
    is(kb_sim_stats(sim, no_visitor, NULL), KB_WRONG, sim, "nothing has run", "all numbers before anything has run");
    enum kb_status status = kb_sim_run_bench(sim, "gemm", (const char *[]){"m=64", "n=64", "k=64"}, 3);
    check(status == KB_OK, "after refusals a bench runs", kb_last_error(sim));
    memset(text, 'x', sizeof text);
    is(kb_sim_result_json(sim, text, sizeof text, &bytes), KB_TOO_SMALL, sim, "the buffer 8", "a buffer that is too small");
    is(kb_sim_run_bench(sim, "gemm", NULL, 0), KB_WRONG, sim, "kb_sim_reset", "a second bench without a reset");
    check(kb_sim_reset(sim) == KB_OK, "a reset", kb_last_error(sim));
    status = kb_sim_run_bench(sim, "gemm", (const char *[]){"m=64", "n=64", "k=64"}, 3);
    check(status == KB_OK, "after it a bench runs", kb_last_error(sim));
    kb_sim_destroy(sim);
}

/* Every call with a handle that is NULL, and with each pointer that must not be NULL. */
static void wrong_pointers(void)
{
    struct kb_sim_config config = config_of(NULL);
    kb_sim *sim = make(&config);
    uint64_t n = 0, at[1] = {0}, beyond[1] = {UINT64_MAX};
    uint32_t pe[1] = {0};
    char text[8];
    const char *param[1] = {NULL};
    struct tensor *tensor = NULL, *none = (struct tensor *)at;
    struct kb_sim_result result = {.struct_size = sizeof result};
    struct kb_sim_pe_result of_pe = {.struct_size = sizeof of_pe};
    struct kb_sim_stop stop = {.struct_size = 1};
    struct kb_sim_launch nameless = {.struct_size = sizeof nameless, .pes = pe, .pe_count = 1}, launch = nameless;
    struct kb_sim_tensor untitled = {.struct_size = sizeof untitled, .pes = pe, .pe_count = 1}, of = untitled;
    launch.kernel = "gemm", of.name = "t";
    struct kb_sim_launch nowhere = launch, unknown = launch;
    struct kb_sim_tensor nowhere_of = of;
    nowhere.pes = NULL, nowhere_of.pes = NULL, unknown.kernel = "gem";
#define NONE(call) is(call, KB_WRONG, NULL, "the instance is NULL", #call)
#define WRONG(call, said) is(call, KB_WRONG, sim, said, #call)
    NONE(kb_sim_reset(NULL));
    NONE(kb_sim_destroy(NULL));
    NONE(kb_sim_run(NULL, 0, 0, NULL));
    NONE(kb_sim_now_ps(NULL, &n));
    NONE(kb_sim_next_ps(NULL, &n));
    NONE(kb_sim_poll(NULL, 1, &result));
    NONE(kb_sim_poll_pe(NULL, 1, 0, &of_pe));
    NONE(kb_sim_launch(NULL, &launch, &n));
    NONE(kb_sim_program(NULL, &launch, &n));
    NONE(kb_sim_replay(NULL, "", 0, &n));
    NONE(kb_sim_command(NULL, 1, 0, "", 0));
    NONE(kb_sim_program_end(NULL, 1));
    NONE(kb_sim_map(NULL, pe, at, 1, 0, 1, &n));
    NONE(kb_sim_unmap(NULL, pe, 1, 0, 1, &n));
    NONE(kb_sim_write(NULL, at, 1, 8, at, &n));
    NONE(kb_sim_read(NULL, at, 1, 8, at, &n));
    NONE(kb_sim_poke(NULL, 0, at, 8));
    NONE(kb_sim_peek(NULL, 0, at, 8));
    NONE(kb_sim_tensor(NULL, &of, &tensor));
    NONE(kb_sim_tensor_set(NULL, none, at, 8));
    NONE(kb_sim_tensor_get(NULL, none, at, 8));
    NONE(kb_sim_tensor_shard(NULL, none, 0, &n, &n));
    NONE(kb_sim_run_bench(NULL, "gemm", NULL, 0));
    NONE(kb_sim_result_json(NULL, text, 8, &n));
    NONE(kb_sim_describe(NULL, text, 8, &n));
    NONE(kb_sim_stat(NULL, "end_ps", &n));
    NONE(kb_sim_stats(NULL, no_visitor, NULL));
    NONE(kb_sim_trace(NULL, NULL, NULL));
    WRONG(kb_sim_run(sim, 0, 0, &stop), "why has struct_size 1:");
    WRONG(kb_sim_now_ps(sim, NULL), "now_ps is NULL");
    WRONG(kb_sim_next_ps(sim, NULL), "next_ps is NULL");
    WRONG(kb_sim_poll(sim, 1, NULL), "result is NULL");
    WRONG(kb_sim_poll(sim, 1, &result), "there is no request 1;");
    WRONG(kb_sim_poll_pe(sim, 1, 0, NULL), "result is NULL");
    WRONG(kb_sim_poll_pe(sim, 1, 0, &of_pe), "there is no request 1;");
    WRONG(kb_sim_launch(sim, NULL, &n), "launch is NULL");
    WRONG(kb_sim_launch(sim, &nameless, &n), "kernel is NULL");
    WRONG(kb_sim_launch(sim, &launch, NULL), "request is NULL");
    WRONG(kb_sim_launch(sim, &nowhere, &n), "pes is NULL, and pe_count is not 0");
    WRONG(kb_sim_launch(sim, &launch, &n), "kernel gemm has arguments of");
    WRONG(kb_sim_launch(sim, &unknown, &n), "no kernel 'gem'");
    WRONG(kb_sim_program(sim, NULL, &n), "launch is NULL");
    WRONG(kb_sim_program(sim, &launch, NULL), "request is NULL");
    WRONG(kb_sim_program(sim, &nowhere, &n), "pes is NULL, and pe_count is not 0");
    WRONG(kb_sim_replay(sim, NULL, 0, &n), "text is NULL");
    WRONG(kb_sim_replay(sim, "", 0, NULL), "request is NULL");
    WRONG(kb_sim_replay(sim, "x: [", 4, &n), "did not find expected node content");
    WRONG(kb_sim_command(sim, 1, 0, NULL, 0), "text is NULL");
    WRONG(kb_sim_command(sim, 1, 0, "{}", 2), "there is no request 1;");
    WRONG(kb_sim_program_end(sim, 1), "there is no request 1;");
    WRONG(kb_sim_map(sim, NULL, at, 1, 0, 1, &n), "pes is NULL");
    WRONG(kb_sim_map(sim, pe, NULL, 1, 0, 1, &n), "addresses is NULL");
    WRONG(kb_sim_map(sim, pe, at, 1, 0, 1, NULL), "request is NULL");
    WRONG(kb_sim_unmap(sim, NULL, 1, 0, 1, &n), "pes is NULL");
    WRONG(kb_sim_unmap(sim, pe, 1, 0, 1, NULL), "request is NULL");
    WRONG(kb_sim_write(sim, NULL, 1, 8, at, &n), "addresses is NULL");
    WRONG(kb_sim_write(sim, at, 1, 8, at, NULL), "request is NULL");
    WRONG(kb_sim_read(sim, NULL, 1, 8, at, &n), "addresses is NULL");
    WRONG(kb_sim_read(sim, at, 1, 8, at, NULL), "request is NULL");
    WRONG(kb_sim_write(sim, (uint64_t[]){0, 0}, 2, UINT64_C(1) << 62, NULL, &n), "cannot be moved");
    WRONG(kb_sim_read(sim, beyond, 1, 8, NULL, &n), "there is no sip255.cube255");
    WRONG(kb_sim_poke(sim, 0, NULL, 8), "data is NULL, and bytes is not 0");
    WRONG(kb_sim_peek(sim, 0, NULL, 8), "data is NULL, and bytes is not 0");
    WRONG(kb_sim_peek(sim, UINT64_MAX, at, 8), "there is no such SIP");
    WRONG(kb_sim_tensor(sim, NULL, &tensor), "tensor is NULL");
    WRONG(kb_sim_tensor(sim, &untitled, &tensor), "name is NULL");
    WRONG(kb_sim_tensor(sim, &of, NULL), "made is NULL");
    WRONG(kb_sim_tensor(sim, &nowhere_of, &tensor), "pes is NULL, and pe_count is not 0");
    WRONG(kb_sim_tensor_set(sim, NULL, at, 8), "tensor is NULL");
    WRONG(kb_sim_tensor_set(sim, none, NULL, 8), "data is NULL");
    WRONG(kb_sim_tensor_set(sim, none, at, 8), "that is no tensor of the instance");
    WRONG(kb_sim_tensor_get(sim, NULL, at, 8), "tensor is NULL");
    WRONG(kb_sim_tensor_get(sim, none, NULL, 8), "data is NULL");
    WRONG(kb_sim_tensor_get(sim, none, at, 8), "that is no tensor of the instance");
    WRONG(kb_sim_tensor_shard(sim, NULL, 0, &n, &n), "tensor is NULL");
    WRONG(kb_sim_tensor_shard(sim, none, 0, NULL, &n), "address is NULL");
    WRONG(kb_sim_tensor_shard(sim, none, 0, &n, NULL), "bytes is NULL");
    WRONG(kb_sim_tensor_shard(sim, none, 0, &n, &n), "that is no tensor of the instance");
    WRONG(kb_sim_run_bench(sim, NULL, NULL, 0), "bench is NULL");
    WRONG(kb_sim_run_bench(sim, "gemm", NULL, 1), "params is NULL, and count is not 0");
    WRONG(kb_sim_run_bench(sim, "gemm", param, 1), "one of params is NULL");
    WRONG(kb_sim_result_json(sim, text, 8, NULL), "needed is NULL");
    WRONG(kb_sim_result_json(sim, NULL, 8, &n), "buffer is NULL, and size is not 0");
    WRONG(kb_sim_describe(sim, text, 8, NULL), "needed is NULL");
    WRONG(kb_sim_describe(sim, NULL, 8, &n), "buffer is NULL, and size is not 0");
    WRONG(kb_sim_stat(sim, NULL, &n), "name is NULL");
    WRONG(kb_sim_stat(sim, "end_ps", NULL), "value is NULL");
    WRONG(kb_sim_stat(sim, "nothing", &n), "the result has no number 'nothing'");
    WRONG(kb_sim_stats(sim, NULL, NULL), "visitor is NULL");
    check(kb_sim_stats(sim, no_visitor, NULL) == KB_OK && kb_sim_run(sim, 1000, 0, NULL) == KB_OK && kb_sim_now_ps(sim, &n) == KB_OK
          && n == 1000, "after all of these time passes", kb_last_error(sim));
    kb_sim_destroy(sim);
}

/* The address of the first HBM slice in the description. */
static uint64_t hbm_of(kb_sim *sim)
{
    uint64_t bytes = 0;
    kb_sim_describe(sim, NULL, 0, &bytes);
    char *text = malloc(bytes);
    kb_sim_describe(sim, text, bytes, &bytes);
    const char *name = strstr(text, "hbm"), *address = name ? strstr(name, "\"address\": ") : NULL;
    uint64_t hbm = address ? strtoull(address + strlen("\"address\": "), NULL, 10) : UINT64_MAX;
    free(text);
    return hbm;
}

static void ended(void)
{
    struct kb_sim_config config = config_of(NULL);
    config.memory_bytes = 1 << 20;
    kb_sim *sim = make(&config);
    uint64_t bytes;
    is(kb_sim_run_bench(sim, "gemm", NULL, 0), KB_NO_MEMORY, sim, "1048576 bytes of memory: memory_bytes", "a run that needs more memory than the limit");
    is(kb_sim_describe(sim, NULL, 0, &bytes), KB_ENDED, sim, "has ended", "the instance has ended");
    check(kb_sim_reset(sim) == KB_OK && kb_sim_describe(sim, NULL, 0, &bytes) == KB_OK, "a reset makes it new", kb_last_error(sim));
    check(kb_sim_destroy(sim) == KB_OK, "and it can be destroyed", kb_last_error(sim));
}

/* The limit of memory, met before the machine works and while it does. */
static void exhausted(void)
{
    enum { LARGE_BYTES = 200 << 20 };
    static const char *const params[] = {"m=64", "n=64", "k=64"};
    struct kb_sim_config config = config_of(&kb_machine_ref_sip);
    config.memory_bytes = (SANITIZED ? 192 : 64) << 20;         /* its stacks are larger */
    kb_sim *sim = make(&config);
    uint64_t n = 0, request, hbm = hbm_of(sim);
    char *data = calloc(1, LARGE_BYTES);
    is(kb_sim_run_bench(sim, "gemm", params, 3), KB_OK, NULL, "", "a run within the limit of memory");
    is(kb_sim_reset(sim), KB_OK, NULL, "", "a reset after it");
    is(kb_sim_replay(sim, data, LARGE_BYTES, &request), KB_NO_MEMORY, sim, "bytes of memory: memory_bytes",
       "a stream beyond the limit");
    is(kb_sim_now_ps(sim, &n), KB_OK, NULL, "", "the instance has not ended by it");
    is(kb_sim_poke(sim, hbm, data, 64), KB_OK, NULL, "", "a poke within the limit");
    is(kb_sim_reset(sim), KB_OK, NULL, "", "a reset after a call without memory");
    is(kb_sim_run_bench(sim, "gem", params, 3), KB_WRONG, sim, "no bench 'gem'", "a wrong bench is wrong");
    is(kb_sim_run_bench(sim, "gemm", params, 3), KB_OK, NULL, "", "the run again");
    is(kb_sim_now_ps(sim, &n), KB_OK, NULL, "", "and its time");
    is(kb_sim_reset(sim), KB_OK, NULL, "", "a reset after the run again");
    is(kb_sim_poke(sim, hbm, data, LARGE_BYTES), KB_NO_MEMORY, sim, "bytes of memory: memory_bytes", "a poke beyond the limit");
    is(kb_sim_poke(sim, hbm, data, 64), KB_ENDED, sim, "has ended", "the bytes have not all been written: the instance has ended");
    is(kb_sim_reset(sim), KB_OK, NULL, "", "a reset after the poke");
    is(kb_sim_run_bench(sim, "gemm", params, 3), KB_OK, NULL, "", "the run once more");
    free(data);
    kb_sim_destroy(sim);
}

/* Copies for a full memory, again and again, and then a tensor for the other memory. */
static void refused_tensor(void)
{
    enum { TCM = 1, WHOLE = 0, COPIES = 4 };            /* of kb/host.h */
    struct kb_sim_config config = config_of(&kb_machine_ref_sip);
    kb_sim *sim = make(&config);
    struct tensor *made;
    struct kb_sim_tensor full = {.struct_size = sizeof full, .name = "t", .rank = 1, .size = {1 << 14}, .space = TCM,
                                 .split = WHOLE, .pes = (uint32_t[]){1}, .pe_count = 1}, copies = full, other = full;
    copies.split = COPIES, copies.pes = (uint32_t[]){0, 1}, copies.pe_count = 2;
    other.pes = copies.pes;
    while (kb_sim_tensor(sim, &full, &made) == KB_OK)
        continue;
    for (int i = 0; i < 4096; i++)
        kb_sim_tensor(sim, &copies, &made);
    is(kb_sim_tensor(sim, &copies, &made), KB_WRONG, sim, "no room for tensor 't' at sip0.cube0.pe1", "copies for a full memory");
    is(kb_sim_tensor(sim, &other, &made), KB_OK, NULL, "", "refused copies hold nothing in other memories");
    kb_sim_destroy(sim);
}

static void close_files(void)
{
    for (int file = 3; file < 256; file++)
        close(file);
}

/* A program that closes all files from 3 on, as daemons do: each instance still has an image for itself. */
static void closed_files(void)
{
    struct kb_sim_config config = config_of(NULL);
    kb_sim *first = make(&config);
    uint64_t n = 0;
    is(kb_sim_run(first, 1000, 0, NULL), KB_OK, NULL, "", "time passes in an instance");
    close_files();
    kb_sim *second = make(&config);
    check(kb_sim_now_ps(second, &n) == KB_OK && n == 0, "an instance whose file has the number of one that was closed is new", "");
    is(kb_sim_run(second, 5000, 0, NULL), KB_OK, NULL, "", "time passes in it");
    check(kb_sim_now_ps(first, &n) == KB_OK && n == 1000, "and not in the first one", "");
    close_files();
    int file = dup(STDOUT_FILENO), other = dup(STDOUT_FILENO);
    kb_sim_destroy(first);
    kb_sim_destroy(second);
    check(close(file) == 0 && close(other) == 0, "files of the program are left open", strerror(errno));
}

static void wrong_callers(void)
{
    struct kb_sim_config config = config_of(NULL);
    enum kb_status of_thread = KB_OK;
    config.log = log_calls;
    in_callback = make(&config);
    kb_sim_run_bench(in_callback, "gem", NULL, 0);
    check(of_callback == KB_BUSY && strstr(text_of_callback, "another call"), "a call from a callback of the instance",
          text_of_callback);
    kb_sim_destroy(in_callback);
    config.log = log_threads;
    config.user = &of_thread;
    in_callback = make(&config);
    kb_sim_run_bench(in_callback, "gem", NULL, 0);
    check(of_thread == KB_BUSY, "a call from another thread at the same time", kb_status_name(of_thread));
    kb_sim_destroy(in_callback);
}

/* ---- many requests */

enum { FAILED = 2, REQUESTS = 4000 };

static struct kb_sim_result failed[FAILED];
static size_t failures;

static void keep_failed(void *user, const struct kb_sim_result *result)
{
    (void)user;
    if (result->outcome == KB_SIM_FAILED && failures < FAILED)
        failed[failures++] = *result;
}

/* Failures of two requests in one call of kb_sim_run. */
static void two_failures(void)
{
    struct kb_sim_config config = config_of(&kb_machine_ref_sip);
    config.completed = keep_failed;
    kb_sim *sim = make(&config);
    struct kb_sim_result polled = {.struct_size = sizeof polled};
    uint64_t request, beyond = UINT64_C(0xffffffffff);
    char why[256];
    for (uint64_t cube = 0; cube < FAILED; cube++)
        kb_sim_read(sim, (uint64_t[]){cube << 40 | beyond}, 1, 64, NULL, &request);
    check(kb_sim_run(sim, UINT64_MAX, 0, NULL) == KB_OK && failures == FAILED, "two requests fail in one call", kb_last_error(sim));
    kb_sim_poll(sim, request, &polled);
    snprintf(why, sizeof why, "%s, %s, %s", failed[0].failure_node, failed[1].failure_node, polled.failure_node);
    check(strcmp(failed[0].failure_node, failed[1].failure_node) && !strcmp(failed[1].failure_node, polled.failure_node),
          "each keeps the name of its node", why);
    kb_sim_destroy(sim);
}

static double seconds(void);

struct totals {
    uint64_t end_ps, events;
};

static int keep_total(void *user, const char *name, uint64_t value)
{
    struct totals *totals = user;
    if (!strcmp(name, "end_ps"))
        totals->end_ps = value;
    else if (!strcmp(name, "events"))
        totals->events = value;
    return 0;
}

static void many_requests(void)
{
    struct kb_sim_config config = config_of(&kb_machine_small);
    kb_sim *sim = make(&config);
    struct totals totals = {0};
    uint64_t request, end_ps = 0, events = 0, wanted = 0, hbm = hbm_of(sim);
    char why[64];
    for (int i = 0; i < REQUESTS; i++)
        kb_sim_write(sim, &hbm, 1, 64, NULL, &request);
    kb_sim_run(sim, 10000000, 0, NULL);
    kb_sim_stats(sim, keep_total, &totals);
    check(kb_sim_stat(sim, "end_ps", &end_ps) == KB_OK && kb_sim_stat(sim, "events", &events) == KB_OK && end_ps && events
          && end_ps == totals.end_ps && events == totals.events, "totals asked by name are those of the whole result", "");
    kb_sim_run(sim, UINT64_MAX, 0, NULL);
    kb_sim_now_ps(sim, &wanted);
    double began = seconds();
    for (int i = 0; i < REQUESTS / 10; i++)
        kb_sim_stat(sim, "end_ps", &end_ps);
    double took = seconds() - began;
    snprintf(why, sizeof why, "%f s, %llu and %llu ps", took, (unsigned long long)end_ps, (unsigned long long)wanted);
    check(took < 1 && end_ps && end_ps == wanted, "end_ps after thousands of requests is one number", why);
    kb_sim_destroy(sim);
}

static int run_wrong(void)
{
    wrong_configurations();
    wrong_handles();
    wrong_arguments();
    wrong_callers();
    wrong_pointers();
    ended();
    exhausted();
    refused_tensor();
    closed_files();
    two_failures();
    many_requests();
    return 0;
}

/* ---- kernels and benches that would end the process */

static int run_ends(void)
{
    static const char *const ways[] = {"exit", "_exit", "_Exit", "quick_exit", "exit_7", "pthread_exit", "abort", "assert",
                                       "free", "jump_kernel", "jump_bench"};
    static const char *const benches[] = {"ends", "bench_ends"};
    struct kb_sim_config config = config_of(&kb_machine_small);
    kb_sim *sim = make(&config);
    for (size_t i = 0; i < COUNT_OF(ways); i++)
        for (size_t j = 0; j < COUNT_OF(benches) && (j == 0 || strncmp(ways[i], "jump", 4)); j++) {
            char what[32], path[64];
            snprintf(what, sizeof what, "what=%s", ways[i]);
            enum kb_status status = kb_sim_run_bench(sim, benches[j], (const char *[]){what}, 1);
            snprintf(path, sizeof path, "%s-%s.json", benches[j], ways[i]);
            char *text = result_of(sim);
            save(path, text);
            free(text);
            is(status, KB_RUN_FAILED, sim, "fault:", what);
            is(kb_sim_reset(sim), KB_OK, NULL, "", "and a reset makes the instance new");
        }
    char why[64];
    enum kb_status status = kb_sim_run_bench(sim, "gemm", (const char *[]){"m=64", "n=64", "k=64"}, 3);
    snprintf(why, sizeof why, "%s", kb_status_name(status));
    check(status == KB_OK, "after all of these a bench runs", why);
    kb_sim_destroy(sim);
    return 0;
}

/* ---- what it asks of the system */

/* From now on calls of the system other than those for memory end the process. */
static void allow_memory_alone(void)
{
    static const int allowed[] = {SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_mremap, SYS_brk, SYS_getpid,
                                  SYS_gettid, SYS_clock_gettime, SYS_exit_group, SYS_write};
    struct sock_filter filter[2 * COUNT_OF(allowed) + 3];
    size_t count = 0;
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < COUNT_OF(allowed); i++) {
        filter[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
        filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    const struct sock_fprog program = {(unsigned short)count, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        printf("skip no seccomp: %s\n", strerror(errno));
        exit(0);
    }
}

static int run_quiet(void)
{
    struct kb_sim_config config = config_of(&kb_machine_small);
    kb_sim *sim = make(&config);
    fflush(stdout);
    allow_memory_alone();
    enum kb_status status = kb_sim_run_bench(sim, "gemm", (const char *[]){"m=64", "n=64", "k=64"}, 3);
    char *text = result_of(sim);
    bool good = status == KB_OK && *text && kb_sim_reset(sim) == KB_OK;
    good = good && kb_sim_run_bench(sim, "ends", (const char *[]){"what=exit"}, 1) == KB_RUN_FAILED;
    if (write(STDOUT_FILENO, good ? "ok quiet\n" : "not ok quiet\n", good ? 9 : 13) < 0)
        return 1;
    syscall(SYS_exit_group, 0);
    return 0;
}

/* ---- again and again */

static long status_kib(const char *key)
{
    char line[256];
    long value = -1;
    FILE *in = fopen("/proc/self/status", "r");
    while (in && fgets(line, sizeof line, in))
        if (!strncmp(line, key, strlen(key)))
            value = strtol(line + strlen(key) + 1, NULL, 10);
    if (in)
        fclose(in);
    return value;
}

static long open_files(void)
{
    long count = 0;
    DIR *entries = opendir("/proc/self/fd");
    while (readdir(entries))
        count++;
    closedir(entries);
    return count;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int run_loop(const char *times)
{
    struct kb_sim_config config = config_of(&kb_machine_small);
    long kib = 0, files = 0, most = strtol(times, NULL, 10);
    double least = 1;
    char why[128];
    for (long i = 0; i < most; i++) {
        if (i == most / 4) {
            kib = status_kib("VmRSS");
            files = open_files();
        }
        double began = seconds();
        kb_sim *sim = make(&config);
        double took = seconds() - began;
        least = took < least ? took : least;
        if (i % 4 == 0)
            kb_sim_run_bench(sim, i % 8 ? "ends" : "gemm", (const char *[]){i % 8 ? "what=exit" : "m=64"}, 1);
        kb_sim_destroy(sim);
    }
    snprintf(why, sizeof why, "%ld KiB more", status_kib("VmRSS") - kib);
    check(status_kib("VmRSS") - kib < (SANITIZED ? 1 << 16 : 512), "instances that are made and destroyed leave no memory behind", why);
    check(open_files() == files, "nor files", "more are open");
    printf("create_ms %.3f\n", least * 1e3);
    return 0;
}

/* ---- what an instance costs */

static int run_cost(void)
{
    struct kb_sim_config config = config_of(&kb_machine_ref_sip);
    kb_sim *first = make(&config);
    long before = status_kib("VmRSS");
    double least = 1;
    enum { MORE = 16 };
    for (int i = 0; i < MORE; i++) {
        double began = seconds();
        make(&config);
        double took = seconds() - began;
        least = took < least ? took : least;
    }
    printf("create_ms %.3f\ninstance_kib %ld\n", least * 1e3, (status_kib("VmRSS") - before) / MORE);
    kb_sim_destroy(first);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    return !strcmp(what, "many") ? run_many() : !strcmp(what, "wrong") ? run_wrong() : !strcmp(what, "ends") ? run_ends()
         : !strcmp(what, "quiet") ? run_quiet() : !strcmp(what, "cost") ? run_cost()
         : !strcmp(what, "loop") && argc > 2 ? run_loop(argv[2]) : 2;
}
