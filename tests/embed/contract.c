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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

static long status_kib(const char *key);
static bool alone(void);

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
    config.threads = 257;
    is(kb_sim_create(&config, &sim), KB_WRONG, NULL, "threads 257: at most 256", "a data pass on too many threads");
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
    WRONG(kb_sim_replay(sim, "x: [", 4, &n), "stream:1:5: error: did not find expected node content");
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

/* ---- states */

struct state {
    void *at;
    uint64_t bytes;
};

static struct state state_of(kb_sim *sim)
{
    struct state state = {0};
    kb_sim_save(sim, NULL, 0, &state.bytes);
    state.at = malloc(state.bytes);
    if (kb_sim_save(sim, state.at, state.bytes, &state.bytes) != KB_OK)
        state.bytes = 0;
    return state;
}

static enum kb_status restore(kb_sim *sim, struct state state)
{
    return kb_sim_restore(sim, state.at, state.bytes);
}

static void wrong_states(void)
{
    struct kb_sim_config config = config_of(NULL);
    kb_sim *sim = make(&config), *other = make(&config);
    uint64_t n = 0;
    kb_sim_run(sim, 1000, 0, NULL);
    struct state state = state_of(sim);
    kb_sim_run(sim, 2000, 0, NULL);
    is(kb_sim_save(sim, NULL, 8, &n), KB_WRONG, sim, "buffer is NULL, and size is not 0", "a save to a buffer that is NULL");
    is(kb_sim_save(sim, state.at, state.bytes, NULL), KB_WRONG, sim, "needed is NULL", "a save without a place for its size");
    is(kb_sim_save(NULL, NULL, 0, &n), KB_WRONG, NULL, "the instance is NULL", "a save of no instance");
    is(kb_sim_restore(NULL, state.at, state.bytes), KB_WRONG, NULL, "the instance is NULL", "a restore of no instance");
    is(kb_sim_save(sim, (char[8]){0}, 8, &n), KB_TOO_SMALL, sim, "the buffer 8", "a save to a buffer that is too small");
    is(kb_sim_restore(sim, NULL, 8), KB_WRONG, sim, "buffer is NULL", "a state that is NULL");
    is(kb_sim_restore(sim, "", 0), KB_WRONG, sim, "no state", "a state without bytes");
    is(kb_sim_restore(sim, other, sizeof(uint64_t)), KB_WRONG, sim, "no state", "a state that is something else");
    is(kb_sim_restore(sim, state.at, state.bytes - 1), KB_WRONG, sim, "the buffer", "a part of a state");
    is(restore(other, state), KB_WRONG, other, "of another instance", "a state of another instance");
    enum { BYTES = 16, MEMORY_BYTES = 40 };             /* places of the numbers of bytes that a state begins with */
    for (uint64_t at = MEMORY_BYTES; at < state.bytes; at += state.bytes / 5) {
        ((char *)state.at)[at] ^= 16;
        is(restore(sim, state), KB_WRONG, sim, "damaged", "a state with one other bit");
        ((char *)state.at)[at] ^= 16;
    }
    memset((char *)state.at + BYTES, 0, sizeof state.bytes);
    is(restore(sim, state), KB_WRONG, sim, "damaged", "a state that says that it has no bytes");
    memcpy((char *)state.at + BYTES, &state.bytes, sizeof state.bytes);
    check(kb_sim_now_ps(sim, &n) == KB_OK && n == 2000, "after all of these time is what it was", "");
    check(restore(sim, state) == KB_OK && kb_sim_now_ps(sim, &n) == KB_OK && n == 1000, "the state itself is restored", "");
    kb_sim_reset(sim);
    check(restore(sim, state) == KB_OK && kb_sim_now_ps(sim, &n) == KB_OK && n == 1000, "also after a reset", "");
    kb_sim_destroy(sim);
    sim = make(&config);
    is(restore(sim, state), KB_WRONG, sim, "of another instance", "a state of the instance that was in the same slot");
    kb_sim_destroy(sim);
    kb_sim_destroy(other);
    free(state.at);
}

/* How many ranges of addresses nobody may touch: guards of stacks, and what was not used yet. */
static int guarded(void)
{
    char line[512], rights[8];
    int count = 0;
    FILE *in = fopen("/proc/self/maps", "r");
    while (in && fgets(line, sizeof line, in))
        count += sscanf(line, "%*s %7s", rights) == 1 && !strcmp(rights, "---p");
    if (in)
        fclose(in);
    return count;
}

/* An instance that has ended goes on from a state, but not after a reset, which has made it anew. */
static void ended_states(void)
{
    static const char *const params[] = {"m=64", "n=64", "k=64"};
    struct kb_sim_config config = config_of(&kb_machine_ref_sip);
    config.memory_bytes = (SANITIZED ? 192 : 64) << 20;
    kb_sim *sim = make(&config);
    enum { LARGE_BYTES = 200 << 20 };
    char *data = calloc(1, LARGE_BYTES);
    uint64_t hbm = hbm_of(sim), n;
    struct state fresh = state_of(sim);
    is(kb_sim_run_bench(sim, "gemm", params, 3), KB_OK, NULL, "", "a bench");
    char *result = result_of(sim);
    int guards = guarded();
    struct state after = state_of(sim);
    check(guards > 32 && guarded() == guards, "a save leaves the guards of stacks", "");
    is(restore(sim, fresh), KB_OK, NULL, "", "the state before the bench");
    check(restore(sim, after) == KB_OK && guarded() == guards, "a restore sets them again", "");
    free(after.at);
    is(restore(sim, fresh), KB_OK, NULL, "", "the state before the bench");
    is(kb_sim_poke(sim, hbm, data, LARGE_BYTES), KB_NO_MEMORY, sim, "memory_bytes", "a poke beyond the limit of memory");
    is(kb_sim_save(sim, NULL, 0, &n), KB_ENDED, sim, "has ended", "an instance that has ended has no state");
    is(restore(sim, fresh), KB_OK, NULL, "", "but goes on from an earlier one");
    is(kb_sim_run_bench(sim, "gemm", params, 3), KB_OK, NULL, "", "with the bench again");
    char *again = result_of(sim), *end = strstr(result, "\"host\": {");
    check(end && strlen(result) > 1000 && !strncmp(result, again, (size_t)(end - result)), "and its result", "another one");
    kb_sim_reset(sim);
    kb_sim_poke(sim, hbm, data, LARGE_BYTES);
    is(kb_sim_reset(sim), KB_OK, NULL, "", "an instance that has ended is reset");
    is(restore(sim, fresh), KB_WRONG, sim, "of another instance", "a state from before is not one of it");
    kb_sim_destroy(sim);
    free(again), free(result), free(data), free(fresh.at);
}

/* A child goes on, and its state goes back to its parent. */
static void forked_states(void)
{
    enum { MOST_BYTES = 64 << 20 };
    struct kb_sim_config config = config_of(&kb_machine_small);
    kb_sim *sim = make(&config);
    struct state *shared = mmap(NULL, MOST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t request, hbm = hbm_of(sim), n = 0;
    int status;
    kb_sim_write(sim, &hbm, 1, 4096, NULL, &request);
    kb_sim_run(sim, 1000, 0, NULL);
    pid_t child = fork();
    if (child == 0) {
        kb_sim_write(sim, &hbm, 1, 64, NULL, &request);
        kb_sim_run(sim, 5000, 0, NULL);
        enum kb_status saves = kb_sim_save(sim, shared + 1, MOST_BYTES - sizeof *shared, &shared->bytes);
        _exit(saves != KB_OK);
    }
    waitpid(child, &status, 0);
    kb_sim_run(sim, UINT64_MAX, 0, NULL);
    is(kb_sim_restore(sim, shared + 1, shared->bytes), KB_OK, NULL, "", "the state of a child goes back to its parent");
    kb_sim_now_ps(sim, &n);
    kb_sim_run(sim, UINT64_MAX, 0, NULL);
    struct kb_sim_result polled = {.struct_size = sizeof polled};
    check(n == 5000 && kb_sim_poll(sim, 2, &polled) == KB_OK && polled.outcome == KB_SIM_OK && polled.submitted_ps == 1000,
          "which goes on from there", kb_last_error(sim));
    munmap(shared, MOST_BYTES);
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

/* A data pass on several threads: its result, its end, and its limit of memory. */
static void threads(void)
{
    static const char *const params[] = {"m=1024", "n=512", "k=64"};
    struct kb_sim_config config = config_of(&kb_machine_ref_sip);
    char *results[2], why[64];
    for (unsigned i = 0; i < 2; i++) {
        config.threads = 1 + 3 * i;
        kb_sim *sim = make(&config);
        is(kb_sim_run_bench(sim, "gemm", params, 3), KB_OK, NULL, "", i ? "a bench whose data pass has four threads" : "and one");
        results[i] = result_of(sim);
        snprintf(why, sizeof why, "%ld threads", status_kib("Threads"));
        check(alone(), "no thread is left when the call ends", why);
        kb_sim_reset(sim);
        is(kb_sim_run_bench(sim, "gemm", params, 3), KB_OK, NULL, "", "the bench again");
        kb_sim_destroy(sim);
    }
    char *end = strstr(results[0], "\"host\": {");
    check(end && !strncmp(results[0], results[1], (size_t)(end - results[0])), "the result does not depend on threads", "it does");
    free(results[0]), free(results[1]);
    const char *wrong = NULL;
    unsigned without = 0;
    for (config.memory_bytes = UINT64_C(24) << 20; config.memory_bytes < UINT64_C(144) << 20; config.memory_bytes += UINT64_C(1000000)) {
        kb_sim *sim = make(&config);
        enum kb_status status = kb_sim_run_bench(sim, "gemm", params, 3);
        without += status == KB_NO_MEMORY;
        if (status != KB_OK && (status != KB_NO_MEMORY || !strstr(kb_last_error(sim), "memory_bytes")))
            wrong = "another status or text";
        if (!alone())
            wrong = "a thread is left";
        if (kb_sim_reset(sim) != KB_OK)
            wrong = "no reset after it";
        kb_sim_destroy(sim);
    }
    snprintf(why, sizeof why, "%u runs without memory; %s", without, wrong ? wrong : "each as it should be");
    check(!wrong && (without > 2 || SANITIZED), "any limit of memory is a status, on whatever thread it is met", why);
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

/* Two requests that are complete in one instant. */
static void tie(void)
{
    struct kb_sim_config config = config_of(&kb_machine_ref_sip);
    kb_sim *sim = make(&config);
    struct kb_sim_stop why = {.struct_size = sizeof why};
    struct kb_sim_result results[2] = {{.struct_size = sizeof *results}, {.struct_size = sizeof *results}};
    uint64_t requests[2], page = UINT64_C(2) << 20;
    for (uint64_t i = 0; i < 2; i++)
        kb_sim_map(sim, (uint32_t[]){3}, (uint64_t[]){hbm_of(sim)}, 1, i * page, 1, &requests[i]);
    kb_sim_run(sim, UINT64_MAX, KB_STOP_COMPLETED, &why);
    for (uint64_t i = 0; i < 2; i++)
        kb_sim_poll(sim, requests[i], &results[i]);
    check(results[0].done_ps == why.now_ps && results[1].done_ps == why.now_ps && why.request == requests[0],
          "of two requests that are complete in one instant the stop names the first", kb_last_error(sim));
    kb_sim_destroy(sim);
}

/* A PE that has failed waits for no step: if nothing else can happen, that is a deadlock. */
static void failed_program(void)
{
    static const char load[] = "{do: load, async: true, from: {space: hbm, offset: 0xfffffffff}, to: 0x200000, bytes: 64}";
    static const char recv[] = "{do: recv, from: sip0.cube0.pe3, to: 0x200000}";
    struct kb_sim_config config = config_of(&kb_machine_ref_sip);
    kb_sim *sim = make(&config);
    struct kb_sim_launch launch = {.struct_size = sizeof launch, .pes = (uint32_t[]){3, 4}, .pe_count = 2};
    struct kb_sim_stop why = {.struct_size = sizeof why};
    uint64_t request;
    char said[64];
    kb_sim_program(sim, &launch, &request);
    check(kb_sim_command(sim, request, 4, recv, sizeof recv - 1) == KB_OK, "a PE waits for a message", kb_last_error(sim));
    kb_sim_run(sim, UINT64_MAX, KB_STOP_DEADLOCK, &why);
    check(why.reason == KB_STOP_IDLE, "it is no deadlock while another PE waits for a step", "it is");
    check(kb_sim_command(sim, request, 3, load, sizeof load - 1) == KB_OK, "that has a fault", kb_last_error(sim));
    kb_sim_run(sim, UINT64_MAX, KB_STOP_DEADLOCK, &why);
    snprintf(said, sizeof said, "reason %u", why.reason);
    check(why.reason == KB_STOP_DEADLOCK, "then it is", said);
    kb_sim_destroy(sim);
}

/* A stream that has failed ends its delay: nothing is due any more. */
static void failed_stream(void)
{
    static const char text[] = "programs: {bad: [{do: load, from: {space: hbm, offset: 0xfffffffff}, to: 0x200000, bytes: 64}]}\n"
                               "host: [{do: launch, program: bad, targets: [sip0.cube0.pe0], async: true}, {do: delay, ns: 1000000}]\n";
    struct kb_sim_config config = config_of(&kb_machine_ref_sip);
    kb_sim *sim = make(&config);
    struct kb_sim_result result = {.struct_size = sizeof result};
    uint64_t request, now_ps = 0, next_ps = 0;
    kb_sim_replay(sim, text, sizeof text - 1, &request);
    kb_sim_run(sim, UINT64_MAX, KB_STOP_FAULT, NULL);
    kb_sim_run(sim, UINT64_MAX, KB_STOP_COMPLETED, NULL);
    kb_sim_poll(sim, request, &result);
    kb_sim_now_ps(sim, &now_ps);
    kb_sim_next_ps(sim, &next_ps);
    check(result.outcome == KB_SIM_FAILED && result.done_ps == now_ps && next_ps == UINT64_MAX, "a stream that has failed delays no more",
          kb_last_error(sim));
    kb_sim_destroy(sim);
}

/* What a restore does without goes back to the system. */
static void restored_memory(void)
{
    enum { BYTES = 32 << 20 };
    struct kb_sim_config config = config_of(&kb_machine_ref_sip);
    kb_sim *sim = make(&config);
    uint64_t hbm = hbm_of(sim);
    struct state fresh = state_of(sim);
    char *data = malloc(BYTES), why[128];
    memset(data, 1, BYTES);
    long kib = status_kib("VmRSS");
    kb_sim_poke(sim, hbm, data, BYTES);
    long more = status_kib("VmRSS") - kib;
    is(restore(sim, fresh), KB_OK, NULL, "", "the state before a large poke");
    long left = status_kib("VmRSS") - kib;
    snprintf(why, sizeof why, "%ld KiB more with it, %ld KiB after it", more, left);
    check(SANITIZED || (more > BYTES / 2048 && left < more / 4), "its memory goes back to the system", why);
    kb_sim_destroy(sim);
    free(data), free(fresh.at);
}

/* A stop at the instant in which a kernel fails, before the host has the answer. */
static void stop_at_fault(void)
{
    static const char load[] = "{do: load, from: {space: hbm, offset: 0xfffffffff}, to: 0x200000, bytes: 64}";
    struct kb_sim_config config = config_of(&kb_machine_ref_sip);
    kb_sim *sim = make(&config);
    struct kb_sim_launch launch = {.struct_size = sizeof launch, .pes = (uint32_t[]){3}, .pe_count = 1};
    struct kb_sim_stop why = {.struct_size = sizeof why}, then = why;
    struct kb_sim_result result = {.struct_size = sizeof result};
    uint64_t request;
    kb_sim_program(sim, &launch, &request);
    kb_sim_command(sim, request, 3, load, sizeof load - 1);
    kb_sim_program_end(sim, request);
    kb_sim_run(sim, UINT64_MAX, KB_STOP_FAULT, &why);
    kb_sim_poll(sim, request, &result);
    check(why.reason == KB_STOP_FAULT && why.request == request && result.outcome == KB_SIM_RUNNING, "time stops at a fault",
          kb_last_error(sim));
    kb_sim_run(sim, UINT64_MAX, KB_STOP_COMPLETED, &then);
    kb_sim_poll(sim, request, &result);
    check(then.reason == KB_STOP_COMPLETED && then.now_ps > why.now_ps && result.outcome == KB_SIM_FAILED
          && result.failure_ps == why.now_ps, "and then when the host has the answer", kb_last_error(sim));
    kb_sim_destroy(sim);
}

static double seconds(void);

enum { KEPT = 2000 };

struct totals {
    uint64_t end_ps, events;
    char name[KEPT][64];                                /* of some of all numbers */
    uint64_t value[KEPT];
    size_t count, kept;
};

static int keep_total(void *user, const char *name, uint64_t value)
{
    struct totals *totals = user;
    if (!strcmp(name, "end_ps"))
        totals->end_ps = value;
    else if (!strcmp(name, "events"))
        totals->events = value;
    if (totals->count++ % 9 == 0 && totals->kept < KEPT) {
        snprintf(totals->name[totals->kept], sizeof *totals->name, "%s", name);
        totals->value[totals->kept++] = value;
    }
    return 0;
}

/* Whether numbers asked by their names are those of the whole result. */
static bool are_same(kb_sim *sim, const struct totals *totals)
{
    uint64_t value;
    for (size_t i = 0; i < totals->kept; i++)
        if (kb_sim_stat(sim, totals->name[i], &value) != KB_OK || value != totals->value[i]) {
            printf("not ok %s\n", totals->name[i]);
            return false;
        }
    return totals->kept > 20;
}

static void many_requests(void)
{
    struct kb_sim_config config = config_of(&kb_machine_small);
    kb_sim *sim = make(&config);
    static struct totals totals, of_bench;
    uint64_t request, end_ps = 0, events = 0, wanted = 0, hbm = hbm_of(sim);
    char why[64];
    for (int i = 0; i < REQUESTS; i++)
        kb_sim_write(sim, &hbm, 1, 64, NULL, &request);
    kb_sim_run(sim, 10000000, 0, NULL);
    kb_sim_stats(sim, keep_total, &totals);
    check(kb_sim_stat(sim, "end_ps", &end_ps) == KB_OK && kb_sim_stat(sim, "events", &events) == KB_OK && end_ps && events
          && end_ps == totals.end_ps && events == totals.events, "totals asked by name are those of the whole result", "");
    check(are_same(sim, &totals), "so are numbers of requests and of the machine", "");
    is(kb_sim_stat(sim, "memory.4000.done_ps", &end_ps), KB_WRONG, sim, "no number 'memory.4000.done_ps'", "a number of no request");
    is(kb_sim_stat(sim, "memory.3999.done_p", &end_ps), KB_WRONG, sim, "no number", "no number of a request");
    kb_sim_run(sim, UINT64_MAX, 0, NULL);
    kb_sim_now_ps(sim, &wanted);
    kb_sim_stat(sim, "end_ps", &end_ps);
    snprintf(why, sizeof why, "%llu and %llu ps", (unsigned long long)end_ps, (unsigned long long)wanted);
    check(end_ps && end_ps == wanted, "end_ps after thousands of requests is the time of the last one", why);
    kb_sim_reset(sim);
    kb_sim_run_bench(sim, "gemm", (const char *[]){"m=64", "n=64", "k=64"}, 3);
    kb_sim_stats(sim, keep_total, &of_bench);
    check(are_same(sim, &of_bench), "and numbers of a bench", "");
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
    wrong_states();
    ended_states();
    forked_states();
    threads();
    closed_files();
    two_failures();
    tie();
    failed_program();
    failed_stream();
    restored_memory();
    stop_at_fault();
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

/* From now on calls of the system other than those for memory end the process. (OpenBLAS says by mbind where its
 * buffer should be, with the kernels of some processors.) */
static void allow_memory_alone(void)
{
    static const int allowed[] = {SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_mremap, SYS_mbind, SYS_brk,
                                  SYS_getpid, SYS_gettid, SYS_clock_gettime, SYS_exit_group, SYS_write};
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
    /* A simulator that is a program would put some of these pieces and commands into files. */
    const char *const many[] = {"tokens=50000", "heads=2", "points=1", "block_rows=1"};
    struct kb_sim_config config = config_of(&kb_machine_small);
    kb_sim *sim = make(&config);
    fflush(stdout);
    allow_memory_alone();
    enum kb_status status = kb_sim_run_bench(sim, "gemm", (const char *[]){"m=64", "n=512", "k=512"}, 3);
    char *text = result_of(sim);
    struct state state = state_of(sim);
    bool good = status == KB_OK && *text && state.bytes && kb_sim_reset(sim) == KB_OK && restore(sim, state) == KB_OK;
    good = good && kb_sim_reset(sim) == KB_OK;
    good = good && kb_sim_run_bench(sim, "rotary", many, 4) == KB_OK && kb_sim_reset(sim) == KB_OK;
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

/* Whether this is the only thread; one that was joined is listed for a moment more. */
static bool alone(void)
{
    for (int turn = 0; turn < 2000 && status_kib("Threads") != 1; turn++)
        usleep(1000);
    return status_kib("Threads") == 1;
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

enum { MORE = 16 };

/* What files in memory take, the images of instances. */
static long images_kib(void)
{
    struct stat file;
    long kib = 0;
    for (int i = 0; i < 1024; i++)
        if (!fstat(i, &file) && S_ISREG(file.st_mode) && file.st_nlink == 0)
            kib += file.st_blocks / 2;
    return kib;
}

/* The time of this thread, which others on the same processor do not share. */
static double own_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The least of several times. */
static void least(double *of, double began)
{
    double took = own_seconds() - began;
    *of = *of == 0 || took < *of ? took : *of;
}

static void fork_once(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
}

static int run_cost(void)
{
    struct kb_sim_config config = config_of(&kb_machine_ref_sip);
    kb_sim *first = make(&config), *more[MORE];
    double create = 0, reset = 0, save = 0, restored = 0, forks = 0, destroy = 0;
    long before = status_kib("RssAnon"), images = images_kib();
    for (int i = 0; i < MORE; i++) {
        double began = own_seconds();
        more[i] = make(&config);
        least(&create, began);
    }
    long image = (images_kib() - images) / MORE, kib = (status_kib("RssAnon") - before) / MORE + image;
    struct state state = state_of(first);
    printf("new_state_kib %llu\n", (unsigned long long)state.bytes >> 10);
    for (int i = 0; i < MORE; i++) {
        kb_sim_run_bench(more[i], "gemm", (const char *[]){"m=256", "n=256", "k=256"}, 3);
        free(state.at);
        state = state_of(more[i]);
        double began = own_seconds();
        kb_sim_save(more[i], state.at, state.bytes, &state.bytes);
        least(&save, began);
        began = own_seconds();
        restore(more[i], state);
        least(&restored, began);
        began = own_seconds();
        fork_once();
        least(&forks, began);
        began = own_seconds();
        kb_sim_reset(more[i]);
        least(&reset, began);
    }
    for (int i = 0; i < MORE; i++) {
        double began = own_seconds();
        kb_sim_destroy(more[i]);
        least(&destroy, began);
    }
    printf("create_ms %.3f\ninstance_kib %ld\nimage_kib %ld\nreset_ms %.3f\ndestroy_ms %.3f\n", create * 1e3, kib, image, reset * 1e3, destroy * 1e3);
    printf("state_kib %llu\nsave_ms %.3f\nrestore_ms %.3f\nfork_ms %.3f\n", (unsigned long long)state.bytes >> 10, save * 1e3,
           restored * 1e3, forks * 1e3);
    free(state.at);
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
