/* data.c: `SIM data FILE`: the data pass of a run, later, from its op log.
 *
 * All memory is 0 at the start; what the host filled and wrote is in the log. At its end every tensor that the log
 * names is hashed; if the run did its data pass too, its hashes are in the log, and have to be the same. */
#include "data.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/stopwatch.h"
#include "datapass/exec.h"
#include "common/hash.h"
#include "base/human.h"
#include "oplog/log.h"
#include "machine/tiling.h"
#include "base/threads.h"
#include "reference/reference.h"
#include "report/summary.h"
#include "common/arena.h"
#include "common/diag.h"
#include "reference/recheck.h"

/* ---- contents */

struct hashing {
    uint64_t element_bytes, hash;
};

static void hash_row(struct run run, void *arg)
{
    struct hashing *hashing = arg;
    uint64_t bytes = run.count * hashing->element_bytes;
    store_reach(IMAGE_BASE, run.memory, run.offset + bytes);
    hashing->hash = hash_bytes(hashing->hash, store_at(IMAGE_BASE, run.memory, run.offset), bytes);
}

/* Of all copies. */
static uint64_t content_hash(const struct tensor *tensor)
{
    struct hashing hashing = {dtype_bytes[tensor->dtype], 0};
    tensor_each_row(tensor, true, hash_row, &hashing);
    return hashing.hash;
}

void contents_record(void)
{
    for (const struct verification *v = verifications; v; v = v->next)
        log_content(&(struct content){v->tensor, content_hash(v->tensor)});
    for (const struct tensor *t = log_tensor(0); t; t = log_tensor(t->number + UINT64_C(1))) {
        const struct verification *v = verifications;
        while (v && v->tensor != t)
            v = v->next;
        if (!v)
            log_content(&(struct content){t, content_hash(t)});
    }
}

/* ---- the command */

/* What a first reading finds: that all of the file is well, how much there is to do, and what is to come of it. */
struct found {
    struct content *contents;
    uint64_t count, ops;
    bool good;
};

static struct found look_through(struct log_reader *reader)
{
    struct found found = {0};
    struct record record;
    while (log_next(reader, &record))
        if (record.kind == RECORD_op) {
            found.ops++;
            free(record.op);
        } else if (record.kind == RECORD_content) {
            found.contents = arena_grow(found.contents, found.count, sizeof *found.contents);
            found.contents[found.count++] = record.content;
        } else if (record.kind == RECORD_end) {
            found.good = record.ending.good;
        }
    return found;
}

/* Prints a tensor's hash; false: it is not what the run had. */
static bool compare(const struct content *content)
{
    uint64_t hash = content_hash(content->tensor);
    bool same = hash == content->hash;
    printf("%-12s %s: %016" PRIx64 "%s\n", same ? "same" : "DIFFERS", content->tensor->name, hash,
           same ? "" : arena_printf(", in the run %016" PRIx64, content->hash));
    return same;
}

/* When the run knew none, those of all tensors that the log names. */
static void print_hashes(const struct interned *interned)
{
    for (uint64_t i = 0; i < interned->tensors; i++)
        if (interned->tensor[i])
            printf("%-12s %s: %016" PRIx64 "\n", "computed", interned->tensor[i]->name, content_hash(interned->tensor[i]));
}

static void help(void)
{
    puts("usage: SIM data FILE [OPTIONS]\n"
         "\n"
         "Does the data pass of a run, from the op log that `run --oplog FILE` left, and prints for each tensor the\n"
         "hash of its bytes, and whether it is the one that the run had.\n"
         "  --threads N     as many as there are processors if absent; the bytes are the same\n"
         "  --debug         compare every operation with its reference, and name the first that is wrong\n"
         "Exit status: 0 good, 1 wrong or other data than the run's, 2 wrong usage or file, 3 error of the host.");
}

static const char *file_of(int argc, char **argv)
{
    static const struct option options[] = {{"debug", no_argument, NULL, 'd'},
                                            {"threads", required_argument, NULL, 'n'},
                                            {"help", no_argument, NULL, 'h'}, {0}};
    argv[0] = (char *)program_name;
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;)
        switch (option) {
        case 'd': exec_check = &recheck; break;
        case 'n': threads_option(optarg); break;
        case 'h': help(); exit(0);
        default: fprintf(stderr, "see %s data --help\n", program_name); exit(2);
        }
    if (argc - optind != 1)
        usage_error("data takes one op log; see %s data --help", program_name);
    return argv[optind];
}

int later_main(int argc, char **argv)
{
    const char *path = file_of(argc, argv);
    struct log_reader first, second;
    struct log_head head = log_read_file(&first, path);
    struct found found = look_through(&first);
    fill_seed = head.seed;
    log_read_file(&second, path);
    oplog_replay(&second, found.ops);
    exec_data_pass();
    bool same = true;
    for (uint64_t i = 0; i < found.count; i++)
        same &= compare(&found.contents[i]);
    if (found.count == 0)
        print_hashes(second.interned);
    if (exec_difference.op)
        summary_print_difference(stdout, &exec_difference);
    printf("%s: %" PRIu64 " operations of bench %s in %s%s\n", path, found.ops, head.bench,
           human_seconds(exec_stats.seconds), found.good ? "" : "; the run did not end well");
    return same && !exec_difference.op ? 0 : 1;
}
