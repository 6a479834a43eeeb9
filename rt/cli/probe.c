/* probe.c: `SIM probe FROM TO`: a transfer in an idle machine, hop by hop; `--matrix`: those of all pairs. */
#include "probe.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "base/human.h"
#include "base/output.h"
#include "common/arena.h"
#include "common/command_line.h"
#include "common/fail.h"
#include "common/json.h"
#include "host/bounds.h"
#include "limits.h"
#include "machine/emitted.h"
#include "machine/fabric.h"
#include "probe/matrix.h"
#include "probe/probe.h"
#include "report/result.h"
#include "session/numbers.h"
#include "session/reset.h"

static int probe_main(int argc, char **argv);

static const struct cli_option options[] = {
    {'b', "bytes", "SIZE",
     "of the transfer: 4096 to or from a memory, and between PEs; between CPUs, and a CPU and\n"
     "a PE, by default a message without payload"},
    {'k', "load", "K", "K such transfers at once, of consecutive bytes: what each step takes, from the least to the most"},
    {'v', "virtual", NULL, "pe_mmu translates the address of the load or store, with an empty TLB"},
    {'m', "matrix", "A:B",
     "all pairs of ends of two kinds, in place of FROM and TO: pe, hbm, sram, tcm, m_cpu,\n"
     "io_cpu, host, and cube: from the first PE of a cube to the sram of another"},
    {'j', "json", "FILE", "write the answer as JSON; - is standard output"},
    SET_OPTION,
    {'o', "output", "FILE.npy", "write a matrix for NumPy: f8 of shape (2, from, to), ps and bytes per second"},
    {0},
};

const struct subcommand probe_subcommand = {
    "probe", "FROM TO", "simulates one transfer in an idle machine, hop by hop",
    "Simulates one transfer in an idle machine, or K at once, and shows its way, hop by hop. FROM and TO are ends such as host,\n"
    "sip0.io_cpu, sip0.cube0.m_cpu, sip0.cube0.sram, sip0.cube0.hbm_ctrl.pe0, sip0.cube0.pe0 and its TCM,\n"
    "sip0.cube0.pe0.pe_tcm; that of a memory may have an offset: sip0.cube0.sram+0x1000.",
    options, probe_main,
};

/* ---- one transfer */

static const char *rank_name(uint32_t rank)
{
    return place_name(rank_place(rank));
}

static void print_link(uint32_t speed, uint32_t rank)
{
    const struct link_rate *rate = link_rate(speed);
    printf("  %-7s %8" PRIu64 "  %-11s  %s\n", link_class_names[speed_class(speed)], rate->latency_ps,
           rate->bw_bps ? human_count((double)rate->bw_bps, "B/s") : "no limit", rank_name(rank));
}

static void print_what(enum step_what what, uint64_t bytes, uint32_t from_rank, uint32_t to, bool is_message)
{
    const char *from = arena_printf("%s", rank_name(from_rank));
    if (!is_message)
        printf("%s at %s: %s\n", step_words[what], rank_name(to), step_phrases[what]);
    else if (bytes)
        printf("%s: %" PRIu64 " bytes, %s to %s\n", step_words[what], bytes, from, rank_name(to));
    else
        printf("%s: %s to %s\n", step_words[what], from, rank_name(to));
}

static void print_step(const struct account_step *step, uint64_t begin_ps)
{
    printf("%12" PRIu64 " %12" PRIu64 "  ", step->begin_ps - begin_ps, step->end_ps - step->begin_ps);
    print_what(step->what, step->bytes, step->from, step->to, step->hops);
    for (uint32_t i = 0; i < step->hops; i++) {
        const struct account_hop *hop = &account.hops[step->first_hop + i];
        printf("%12" PRIu64 " %12" PRIu64 "  ", hop->arrives_ps - begin_ps, hop->ready_ps - hop->arrives_ps);
        print_link(hop->speed, hop->rank);
    }
}

static void print_spread(const struct spread *took, uint64_t load)
{
    printf("%12" PRIu64 " %12.0f %12" PRIu64 "  ", spread_least_ps(took, load), (double)took->sum_ps / (double)load,
           took->most_ps);
}

static void print_row(const struct account_row *row, uint64_t load)
{
    print_spread(&row->took, load);
    print_what(row->what, row->bytes, row->from, row->to, row->hops);
    for (uint32_t i = 0; i < row->hops; i++) {
        print_spread(&row->hop[i].took, load);
        print_link(row->hop[i].speed, row->hop[i].rank);
    }
}

static void print_rate(uint64_t bytes, double bps)
{
    if (bytes)
        printf(", %s", bps > 0 ? human_count(bps, "B/s") : "no time");
}

/* What each step took, of several transfers; their means add up to that of a transfer. */
static void print_rows(const struct probe *probe)
{
    printf("\n    least ps      mean ps      most ps  step;   link  latency ps  bandwidth    and the node behind it\n");
    for (uint32_t i = 0; i < account.row_count; i++)
        print_row(&account.rows[i], probe->load);
    print_spread(&(struct spread){probe->load, probe->least_ps, probe->most_ps, probe->sum_ps}, probe->load);
    puts("each transfer");
}

static void print_probe(const struct probe *probe)
{
    uint64_t begin_ps = probe->steps ? account.steps[probe->first_step].begin_ps : 0;
    printf("%s to %s on %s: ", end_name(probe->from), end_name(probe->to), kb_machine_name);
    if (probe->load > 1)
        printf("%" PRIu64 " at once, ", probe->load);
    if (probe->bytes)
        printf("%" PRIu64 " bytes, ", probe->bytes);
    printf("%s%s\n", probe->is_part ? "part of " : "", transfer_phrases[probe->kind]);
    if (probe->steps)
        printf("\n       at ps     takes ps  step;   link  latency ps  bandwidth    and the node behind it, with its overhead\n");
    for (uint32_t i = 0; i < probe->steps; i++)
        print_step(&account.steps[probe->first_step + i], begin_ps);
    if (probe->load > 1)
        print_rows(probe);
    printf("\n%12" PRIu64 " ps in all", probe->ps);
    print_rate(probe->bytes, probe_bps(probe));
    putchar('\n');
}

/* ---- all pairs */

static void print_matrix(const struct matrix *matrix)
{
    const struct probe *probe = &matrix->probe;
    uint64_t least = UINT64_MAX, most = 0;
    printf("%s:%s on %s: %s", matrix->from.word, matrix->to.word, kb_machine_name, transfer_phrases[probe->kind]);
    if (probe->bytes)
        printf(", %" PRIu64 " bytes", probe->bytes);
    if (probe->load > 1)
        printf(", %" PRIu64 " at once", probe->load);
    printf("\n\n%-28s %-28s %12s %14s\n", "from", "to", "ps", "bandwidth");
    for (uint32_t row = 0; row < matrix->from.count; row++) {
        struct arena_mark mark = arena_mark();
        const char *from = matrix_name(&matrix->from, row);
        for (uint32_t column = 0; column < matrix->to.count; column++) {
            uint64_t ps = matrix_ps(matrix, row, column);
            double bps = matrix_bps(matrix, row, column);
            printf("%-28s %-28s ", from, matrix_name(&matrix->to, column));
            if (ps == UINT64_MAX) {
                printf("%12s %14s\n", "-", "-");
                continue;
            }
            printf("%12" PRIu64 " %14s\n", ps, bps > 0 ? human_count(bps, "B/s") : "-");
            least = ps < least ? ps : least;
            most = ps > most ? ps : most;
        }
        arena_release(mark);
    }
    printf("\n%" PRIu64 " to %" PRIu64 " ps\n", least, most);
}

/* ---- the subcommand */

struct answer {
    const struct probe *probe;
    const struct matrix *matrix;                        /* one of them; NULL: the other */
};

static void write_answer(struct json *json, void *arg)
{
    const struct answer *answer = arg;
    json_string(json, "system", kb_machine_name);
    json_string(json, "topology", kb_topology_hash);
    if (answer->matrix) {
        matrix_write(json, "probe_matrix", answer->matrix, true);
        return;
    }
    json_object(json, "probe");
    probe_write(json, answer->probe);
    json_object_end(json);
}

enum { LOAD_MOST = 1000000 };

static void print_answer(const struct answer *answer)
{
    if (answer->matrix)
        print_matrix(answer->matrix);
    else
        print_probe(answer->probe);
}

static int probe_main(int argc, char **argv)
{
    struct probe probe = {.load = 1};
    const char *pairs = NULL, *json_path = NULL, *npy_path = NULL;
    for (int letter; (letter = subcommand_option(&probe_subcommand, argc, argv)) != -1;)
        switch (letter) {
        case 'b': probe.bytes = parse_size("bytes", optarg); probe.sized = true; break;
        case 'k': probe.load = option_whole("load", optarg, 1, LOAD_MOST); break;
        case 'v': probe.is_virtual = true; break;
        case 'm': pairs = optarg; break;
        case 'j': json_path = optarg; break;
        case 'o': npy_path = optarg; break;
        default: numbers_option(letter, optarg);
        }
    numbers_options_end();
    if (argc - optind != (pairs ? 0 : 2))
        usage_error("probe takes two ends, or --matrix A:B; see %s probe --help", program_name);
    if (npy_path && !pairs)
        usage_error("-o is for a matrix: --matrix A:B");
    if (npy_path && json_path && !strcmp(npy_path, json_path))
        usage_error("--json and -o cannot both go to %s", strcmp(npy_path, "-") ? npy_path : "standard output");
    struct answer answer = {.probe = &probe};
    if (!pairs) {
        probe.from = end_read(argv[optind]);
        probe.to = end_read(argv[optind + 1]);
        const char *why = probe_plan(&probe);
        if (why)
            usage_error("no transfer from %s to %s: %s", argv[optind], argv[optind + 1], why);
    }
    struct output json = {0}, npy = {0};
    if (json_path)
        json = output_open(json_path);
    if (npy_path)
        npy = output_open(npy_path);
    if (pairs)
        answer.matrix = matrix_measure(pairs, &probe, simulator_reset);
    else
        probe_run(&probe, true);
    if (json_path)
        json_write_output(&json, write_answer, &answer);
    if (npy_path) {
        matrix_write_npy(npy.file, answer.matrix);
        output_close(&npy);
    }
    bool taken = (json_path && !strcmp(json_path, "-")) || (npy_path && !strcmp(npy_path, "-"));
    if (!taken)
        print_answer(&answer);
    return STATUS_GOOD;
}
