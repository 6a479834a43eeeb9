/* sim.h: a simulator as a part of another program: the API of the libraries that `kbgen --emit lib` makes.
 *
 * An instance is a simulated machine with its memories and its time, an integer of picoseconds. Nothing happens in it
 * outside of these calls. The program says what its host does (launches, requests, streams of commands) and lets time
 * pass with kb_sim_run.
 *
 *     struct kb_sim_config config = {.struct_size = sizeof config};
 *     kb_sim *sim;
 *     if (kb_sim_create(&config, &sim) != KB_OK)
 *         puts(kb_last_error(NULL));
 *
 * Every call returns a status. If it is not KB_OK, kb_last_error has a text. If KB_NO_MEMORY or KB_HOST_FAILED has left
 * the machine in the middle of its work, every later call returns KB_ENDED until kb_sim_reset or kb_sim_restore; otherwise
 * nothing has changed, except by a bench that has run. Faults of the simulated machine are results, not errors.
 *
 * An instance is used by one thread at a time, which may change between calls; different instances do not know of one
 * another. A call for an instance that is in a call of another thread, or whose callback makes the call, returns KB_BUSY.
 *
 * Buffers belong to the caller and are read or written during the call alone, unless a call says otherwise. Structs
 * begin with struct_size, which the caller sets to the size that it was compiled with: a library takes the fields that
 * it knows, and those that the struct has not are 0. Addresses are physical. PEs are numbered over the whole machine. */
#ifndef KB_SIM_H
#define KB_SIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: it grows with each change that a caller of an earlier one could notice. */
#define KB_ABI_VERSION 1

typedef struct kb_sim kb_sim;

enum kb_status {
    KB_OK,
    KB_RUN_FAILED,                                      /* the run failed or verified data are wrong: the result says why */
    KB_WRONG,                                           /* a wrong argument, handle or moment for the call */
    KB_HOST_FAILED,                                     /* the host system, or kbgen itself, has failed */
    KB_BUSY,                                            /* the instance is in another call */
    KB_NO_MEMORY,                                       /* the limit of the instance's memory, or the host's */
    KB_TOO_SMALL,                                       /* the caller's buffer is too small */
    KB_ENDED                                            /* an earlier call has failed in the middle of the machine's work:
                                                           only kb_sim_reset, kb_sim_restore and kb_sim_destroy
                                                           are possible */
};

/* ---- what the library is */

/* A machine: each library exports one as kb_machine_NAME, which its header NAME.h declares. */
struct kb_machine;

/* The version of the library's interface, KB_ABI_VERSION of the header that it was made with. */
uint32_t kb_abi_version(void);

/* The hash of the machine of the library as it was built, hexadecimal, as `SIM --version` prints it; and its name. */
const char *kb_machine_hash(void);
const char *kb_library_name(void);

/* ---- instances */

enum kb_sim_data {
    KB_SIM_DATA_VERIFY,                                 /* data are computed, and benches verify them */
    KB_SIM_DATA_OFF                                     /* time alone */
};

struct kb_sim_result;

/* All fields but the first may be 0. */
struct kb_sim_config {
    uint64_t struct_size;                               /* sizeof(struct kb_sim_config) */
    const struct kb_machine *machine;                   /* NULL: that of the library whose function is called */
    uint64_t seed;                                      /* of random values, as --seed */
    const char *const *set;                             /* numbers to replace, "cube.noc.link_bw_gbs=512", as --set */
    uint64_t set_count;
    uint64_t memory_bytes;                              /* the most that it allocates, 2^20 to 2^46; 0: 64 GiB of addresses */
    uint32_t data;                                      /* enum kb_sim_data */
    uint32_t threads;                                   /* of a data pass, the calling one among them, up to 256; 0: 1 */
    uint32_t exact_events;                              /* not 0: simulates every event, as --exact-events */
    uint32_t reserved;                                  /* 0 */
    void *user;                                         /* the first argument of both callbacks */
    void (*log)(void *user, const char *line);          /* gets each line of messages, without its end; NULL: nobody does */
    void (*completed)(void *user, const struct kb_sim_result *result);  /* a request is complete, at its time; NULL: poll */
};

/* Makes an instance at time 0. *sim is NULL if it fails. */
enum kb_status kb_sim_create(const struct kb_sim_config *config, kb_sim **sim);

/* Frees an instance, and all that its calls have returned. The handle is invalid from then on, which calls notice. */
enum kb_status kb_sim_destroy(kb_sim *sim);

/* Makes the instance what it was after kb_sim_create. */
enum kb_status kb_sim_reset(kb_sim *sim);

/* Writes the state of the instance to a buffer of `size` bytes, *needed being how many the state has; a buffer of 0 bytes asks
 * for the size alone. Kernels and requests may be under way; the state is exact: who goes on from it gets the same bytes.
 *
 * kb_sim_restore puts a state back into the instance that it was saved from, in this process or one that fork() has made of
 * it since the instance was created. Requests and tensors are those of the state again: what was made after it is invalid.
 * The visitor of kb_sim_trace and callbacks stay what they are now. An instance that KB_ENDED is returned for goes on, unless
 * it was reset. KB_WRONG: the state is damaged or that of another instance; nothing has changed. */
enum kb_status kb_sim_save(kb_sim *sim, void *buffer, uint64_t size, uint64_t *needed);
enum kb_status kb_sim_restore(kb_sim *sim, const void *buffer, uint64_t size);

/* What was wrong with the last call of this thread for an instance that did not return KB_OK: one or more lines; "" if
 * the last failure of this thread was another instance's. NULL: kb_sim_create, or a call with an invalid handle. Valid
 * until the next call of this thread. */
const char *kb_last_error(const kb_sim *sim);

/* The word for a status: "KB_OK". */
const char *kb_status_name(enum kb_status status);

/* ---- time */

enum kb_sim_reason {
    KB_STOP_UNTIL = 1,                                  /* until_ps is reached */
    KB_STOP_COMPLETED = 2,                              /* a request is complete, well or not */
    KB_STOP_FAULT = 4,                                  /* a kernel or a request has failed */
    KB_STOP_IDLE = 8,                                   /* nothing is due: only a request makes anything happen */
    KB_STOP_DEADLOCK = 16                               /* nothing is due, and requests are not complete */
};

struct kb_sim_stop {
    uint64_t struct_size;
    uint64_t now_ps;
    uint64_t request;                                   /* of KB_STOP_COMPLETED and KB_STOP_FAULT: the first such request */
    uint32_t reason;                                    /* one enum kb_sim_reason */
    uint32_t reserved;
};

/* Lets time pass up to until_ps, that instant included, and never beyond; or up to the end of the first instant in which
 * something of stop_mask happens (a sum of enum kb_sim_reason; KB_STOP_UNTIL counts without being named). If nothing is
 * due and the mask has no IDLE, time is until_ps afterwards; with UINT64_MAX it stops as IDLE does. DEADLOCK stops it only
 * if there are requests that are not complete, and no program waits for its next command: alone, when nothing runs, it
 * does nothing.
 * `why` may be NULL. How a span is divided into calls makes no difference to anything. */
enum kb_status kb_sim_run(kb_sim *sim, uint64_t until_ps, uint32_t stop_mask, struct kb_sim_stop *why);

/* The simulated time. */
enum kb_status kb_sim_now_ps(kb_sim *sim, uint64_t *now_ps);

/* The time at which the next thing happens if the program asks for nothing before it. UINT64_MAX: nothing is due. */
enum kb_status kb_sim_next_ps(kb_sim *sim, uint64_t *next_ps);

/* ---- requests
 *
 * Each is submitted at the present time, at the end of that instant, and has a number from 1 on, which the call returns.
 * The request is complete when the host has the answer: kb_sim_poll and the callback `completed` have its result.
 *
 * Requests and what results have of them are kept until a reset, 1 to 2 KiB each and more for launches of many PEs. A program
 * that runs for days resets the instance now and then. */

enum kb_sim_outcome {
    KB_SIM_RUNNING, KB_SIM_OK, KB_SIM_FAILED, KB_SIM_TIMEOUT, KB_SIM_DEADLOCK, KB_SIM_SKIPPED
};

enum kb_sim_request { KB_SIM_LAUNCH, KB_SIM_PROGRAM, KB_SIM_STREAM, KB_SIM_WRITE, KB_SIM_READ, KB_SIM_MAP, KB_SIM_UNMAP };

struct kb_sim_result {
    uint64_t struct_size;
    uint64_t request;                                   /* its number */
    uint32_t kind;                                      /* enum kb_sim_request */
    uint32_t outcome;                                   /* enum kb_sim_outcome */
    uint64_t submitted_ps;
    uint64_t start_ps;                                  /* of a launch: when its first kernel began; UINT64_MAX: none has */
    uint64_t done_ps;                                   /* when the host had the answer; UINT64_MAX: it has none */
    uint64_t pe_count;                                  /* PEs of a launch, for kb_sim_poll_pe; else 0 */
    const char *failure;                                /* "PAGE_FAULT", or NULL; valid until the instance is reset */
    const char *failure_node;                           /* where: "sip0.cube0.pe1.pe_mmu", or NULL; likewise */
    uint64_t failure_ps;                                /* when, UINT64_MAX: there is none */
    uint64_t failure_pe;                                /* whose PE; UINT64_MAX: none */
};

struct kb_sim_pe_result {
    uint64_t struct_size;
    uint32_t pe;                                        /* its number over the machine */
    uint32_t outcome;                                   /* running, ok or failed */
    uint64_t start_ps, end_ps;                          /* of its kernel; UINT64_MAX: not yet */
    uint64_t dma_ps, compute_ps;                        /* as in the JSON result */
    const char *failure, *failure_node;
    uint64_t failure_ps;
};

/* The state of a request, and of the i-th PE of a launch in rank order. */
enum kb_status kb_sim_poll(kb_sim *sim, uint64_t request, struct kb_sim_result *result);
enum kb_status kb_sim_poll_pe(kb_sim *sim, uint64_t request, uint64_t i, struct kb_sim_pe_result *result);

enum kb_sim_start { KB_SIM_START_BARRIER, KB_SIM_START_CUBE, KB_SIM_START_FREE };   /* as enum kb_start of host.h */

/* A kernel by its name, on PEs in any order, none twice. */
struct kb_sim_launch {
    uint64_t struct_size;
    const char *kernel;
    const uint32_t *pes;
    uint64_t pe_count;
    const void *arg;                                    /* its argument struct, copied; tensors are those of kb_sim_tensor */
    uint64_t arg_bytes;                                 /* the size of that struct, exactly */
    uint64_t timeout_ps;                                /* from the submission; 0: none */
    uint32_t start;                                     /* enum kb_sim_start */
    uint32_t fail_fast;                                 /* not 0: the first failure answers at once */
};

enum kb_status kb_sim_launch(kb_sim *sim, const struct kb_sim_launch *launch, uint64_t *request);

/* A command stream (docs/cli.md), as a text. It is one request, complete when the steps of its host are; its launches and
 * requests are in the result. A stream is time alone, as with `SIM replay`: its loads, stores, writes and reads move no
 * bytes, and memory is afterwards what it was before. */
enum kb_status kb_sim_replay(kb_sim *sim, const char *text, uint64_t length, uint64_t *request);

/* The same by firmware, a command at a time: a launch (`kernel`: a name for the result, or NULL; no argument) of a
 * program that has no commands yet; commands for its PEs, each as a step of a stream's program ("{do: load, id: x, ...}",
 * "{do: wait, for: [x]}", "{do: delay, ns: 5}"), which a PE takes in their order; and the end of the program of all PEs,
 * after which the launch can complete. A PE that has no step waits without a deadlock until there is one. As a stream,
 * a program is time alone, and leaves memory as it is. */
enum kb_status kb_sim_program(kb_sim *sim, const struct kb_sim_launch *launch, uint64_t *request);
enum kb_status kb_sim_command(kb_sim *sim, uint64_t request, uint32_t pe, const char *text, uint64_t length);
enum kb_status kb_sim_program_end(kb_sim *sim, uint64_t request);

/* Maps `pages` pages from va on, a multiple of the page size, to the bytes from addresses[i] on, on PE pes[i]; unmaps
 * them. */
enum kb_status kb_sim_map(kb_sim *sim, const uint32_t *pes, const uint64_t *addresses, uint64_t count, uint64_t va,
                          uint64_t pages, uint64_t *request);
enum kb_status kb_sim_unmap(kb_sim *sim, const uint32_t *pes, uint64_t count, uint64_t va, uint64_t pages,
                            uint64_t *request);

/* Writes or reads `bytes` bytes at each of `count` addresses over PCIe and the fabric. `data` has count * bytes bytes.
 * Those of a write are copied at the call, and are in memory from then on; a read gets what memory has at the call, so
 * pending results are computed first. NULL: only time passes. */
enum kb_status kb_sim_write(kb_sim *sim, const uint64_t *addresses, uint64_t count, uint64_t bytes, const void *data,
                            uint64_t *request);
enum kb_status kb_sim_read(kb_sim *sim, const uint64_t *addresses, uint64_t count, uint64_t bytes, void *data,
                           uint64_t *request);

/* ---- memory without time: for loaders and debuggers. A peek at pending results runs the data pass first. */

enum kb_status kb_sim_poke(kb_sim *sim, uint64_t address, const void *data, uint64_t bytes);
enum kb_status kb_sim_peek(kb_sim *sim, uint64_t address, void *data, uint64_t bytes);

/* A tensor of the host, as kb_tensor_new of kb/host.h makes: dtype and place are values of its enums kb_dtype, kb_space
 * and kb_split. */
struct tensor;

struct kb_sim_tensor {
    uint64_t struct_size;
    const char *name;
    uint32_t dtype, rank;
    uint64_t size[4];                                   /* of its axes */
    uint32_t space, split, rows, cols;                  /* rows and cols: the grid of KB_BLOCKS */
    const uint32_t *pes;
    uint64_t pe_count;
};

/* The tensor goes into arguments of kernels; it lives as long as the instance, or until its reset. */
enum kb_status kb_sim_tensor(kb_sim *sim, const struct kb_sim_tensor *tensor, struct tensor **made);

/* All elements of a tensor, row-major, in its dtype, without time; of copies, each is written, and the first is read.
 * `bytes` is their size, exactly. */
enum kb_status kb_sim_tensor_set(kb_sim *sim, struct tensor *tensor, const void *data, uint64_t bytes);
enum kb_status kb_sim_tensor_get(kb_sim *sim, struct tensor *tensor, void *data, uint64_t bytes);

/* Where shard i lies: the address and the bytes of its elements, for kb_sim_write and kb_sim_read. */
enum kb_status kb_sim_tensor_shard(kb_sim *sim, struct tensor *tensor, uint64_t i, uint64_t *address, uint64_t *bytes);

/* ---- benches */

/* Runs a bench that is linked into the library, with its parameters "NAME=VALUE", to its end, as `SIM run` does: the
 * instance must be new or reset. Returns KB_RUN_FAILED for what `SIM run` returns status 1 for, KB_WRONG if a call of the bench
 * is wrong use; in both cases there is a result. */
enum kb_status kb_sim_run_bench(kb_sim *sim, const char *bench, const char *const *params, uint64_t count);

/* ---- results */

/* The result so far, as JSON with an end of line: of a bench the same as that of `SIM run --json`, else as that of
 * `SIM replay --json`. `size` is that of the buffer, *needed the bytes of the text with a 0 behind it; a buffer of 0
 * bytes asks for the size alone. */
enum kb_status kb_sim_result_json(kb_sim *sim, char *buffer, uint64_t size, uint64_t *needed);

/* The machine, its memories with their addresses, the benches with their parameters, and the kernels, as JSON: the file
 * NAME.json of the library, with the numbers of this instance. */
enum kb_status kb_sim_describe(kb_sim *sim, char *buffer, uint64_t size, uint64_t *needed);

/* A number of the JSON result by its path ("end_ps", "launches.0.pes.3.dma_ps"), and all of them in the order in which
 * the result has them; none before anything has run. The visitor returns 0, or anything else to stop. The cost of
 * kb_sim_stats grows with the number of requests since the reset, that of a number with the machine or the launch that it is of,
 * and after a bench with the whole result. */
enum kb_status kb_sim_stat(kb_sim *sim, const char *name, uint64_t *value);
enum kb_status kb_sim_stats(kb_sim *sim, int (*visitor)(void *user, const char *name, uint64_t value), void *user);

/* The events of --trace (docs/results.md). */
struct kb_sim_event {
    uint64_t struct_size;
    uint64_t t_ps;
    const char *event;                                  /* "engine_start"; valid for ever */
    const char *line;                                   /* as a line of the trace, JSON without its end; during the call */
};

/* From now on the visitor gets each event, in the order of a trace, as the instants end. NULL: no more. */
enum kb_status kb_sim_trace(kb_sim *sim, void (*visitor)(void *user, const struct kb_sim_event *event), void *user);

#ifdef __cplusplus
}
#endif

#endif
