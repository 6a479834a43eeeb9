/* data.c: `SIM data FILE`: the data pass of a run, from its op log.
 *
 * All memory is 0 at the start; what the host filled and wrote is in the log. At the end each tensor that the log names
 * is hashed. If the run did its data pass too, its hashes are in the log, and must be the same. */
#include "data.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/human.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "common/arena.h"
#include "common/diag.h"
#include "common/fail.h"
#include "common/hash.h"
#include "datapass/exec.h"
#include "machine/tiling.h"
#include "oplog/log.h"
#include "reference/expect.h"
#include "reference/recheck.h"
#include "report/summary.h"
#include "session/numbers.h"

static int data_main(int argc, char **argv);

static const struct cli_option options[] = {
    {'n', "threads", "N", "threads that compute (all processors); the data do not depend on it"},
    {'d', "debug", NULL, "compare every operation with its reference, and name the first wrong one"},
    SET_OPTION,
    {0},
};

const struct subcommand data_subcommand = {
    "data", "FILE", "runs the data pass of an op log",
    "Runs the data pass of a run, from the op log that `run --oplog FILE` wrote. Prints for each tensor the hash of\n"
    "its bytes, and whether it is the one that the run had.",
    options, data_main,
};

/* ---- hashes of tensors */

struct tensor_hash {
    uint64_t element_bytes, hash;
};

static void hash_row(struct tensor_row run, void *arg)
{
    struct tensor_hash *of = arg;
    uint64_t bytes = run.count * of->element_bytes;
    store_reach(run.memory, run.offset + bytes);
    of->hash = hash_bytes(of->hash, store_at(run.memory, run.offset), bytes);
}

/* The hash of all copies. */
static uint64_t hash_tensor(const struct tensor *tensor)
{
    struct tensor_hash of = {dtype_bytes[tensor->dtype], 0};
    tensor_each_row(tensor, true, hash_row, &of);
    return of.hash;
}

void data_record_hashes(void)
{
    for (const struct verification *v = verifications; v; v = v->next)
        log_content(&(struct content){v->tensor, hash_tensor(v->tensor)});
    for (const struct tensor *t = log_tensor(0); t; t = log_tensor(t->number + UINT64_C(1))) {
        const struct verification *v = verifications;
        while (v && v->tensor != t)
            v = v->next;
        if (!v)
            log_content(&(struct content){t, hash_tensor(t)});
    }
}

/* ---- the subcommand */

/* What a first reading finds. It also makes sure that the whole file is undamaged. */
struct log_survey {
    struct content *contents;                           /* the hashes of the run */
    uint64_t count, ops;
    bool good;                                          /* the run ended well */
};

static struct log_survey survey(struct log_reader *reader)
{
    struct log_survey found = {0};
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

static int data_main(int argc, char **argv)
{
    for (int letter; (letter = subcommand_option(&data_subcommand, argc, argv)) != -1;)
        switch (letter) {
        case 'd': exec_check = &recheck; break;
        case 'n': threads_option("threads", optarg); break;
        default: numbers_option(letter, optarg);
        }
    numbers_options_end();
    const char *path = subcommand_argument(&data_subcommand, argc, argv, "one op log");
    struct log_reader first, second;
    struct log_head head = log_read_file(&first, path);
    struct log_survey found = survey(&first);
    fill_seed = head.seed;
    log_read_file(&second, path);
    oplog_replay(&second, found.ops);
    exec_data_pass();
    bool same = true;
    for (uint64_t i = 0; i < found.count; i++) {
        const struct content *content = &found.contents[i];
        uint64_t hash = hash_tensor(content->tensor);
        bool equal = hash == content->hash;
        same &= equal;
        printf("%-12s %s: %016" PRIx64 "%s\n", equal ? "same" : "DIFFERS", content->tensor->name, hash,
               equal ? "" : arena_printf(", in the run %016" PRIx64, content->hash));
    }
    const struct interned *names = second.interned;
    for (uint64_t i = 0; found.count == 0 && i < names->tensors; i++)       /* the run had no data pass */
        if (names->tensor[i])
            printf("%-12s %s: %016" PRIx64 "\n", "computed", names->tensor[i]->name, hash_tensor(names->tensor[i]));
    if (exec_difference.op)
        summary_print_difference(stdout, &exec_difference);
    printf("%s: %" PRIu64 " operations of bench %s in %s%s\n", printable(path), found.ops, head.bench,
           human_seconds(exec_stats.seconds), found.good ? "" : "; the run did not end well");
    return same && !exec_difference.op ? STATUS_GOOD : STATUS_RUN_FAILED;
}
