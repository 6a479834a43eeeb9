/* noc_trace.c: the transfers of a trace of Wormhole's networks, each issued at the cycle at which it was.
 *
 * The rule, for all traces: a transfer is issued at its cycle, whatever became of those before it, as tt-npe does it. Its
 * data take the network that the trace names. Here loads take NoC 0 and stores take NoC 1, so a read by NoC 1 is a store of
 * the core that has the data, issued when the request would reach it; a write by NoC 0 is a load of the core that gets
 * them. What begins or ends in DRAM is a load or store of its core, whatever the network.
 * Times alone: no data are moved. */
#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/host.h>
#include <kb/measure.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CORES = 64, BANKS = 12, TRANSFERS_MOST = 1 << 16, ROOM = 512 << 10, NOWHERE = 255 };

/* Places of cores and of banks of DRAM, as topology.yaml has them. */
static const uint8_t core_rows[] = {1, 2, 3, 4, 5, 7, 8, 9}, core_cols[] = {1, 2, 3, 4, 6, 7, 8, 9};
static const uint8_t bank_at[BANKS][2] = {{1, 0}, {11, 0}, {5, 0}, {7, 0}, {1, 5}, {11, 5}, {2, 5}, {9, 5}, {8, 5}, {3, 5}, {5, 5}, {7, 5}};

struct transfer {
    uint64_t at_ps, bytes;
    uint8_t core, far;                                  /* who issues it; the other core, or the bank of DRAM */
    bool far_is_dram, store;
};

static struct transfer transfers[TRANSFERS_MOST];
static uint32_t count;
static const char *wrong;

struct noc_args {
    kb_tensor dram, l1;
};

static unsigned core_at(unsigned x, unsigned y)
{
    for (unsigned r = 0; r < sizeof core_rows; r++)
        for (unsigned c = 0; c < sizeof core_cols; c++)
            if (core_rows[r] == y && core_cols[c] == x)
                return r * sizeof core_cols + c;
    return NOWHERE;
}

static unsigned bank_near(unsigned x, unsigned y)
{
    for (unsigned bank = 0; bank < BANKS; bank++)
        if (bank_at[bank][0] == y && bank_at[bank][1] == x)
            return bank;
    return NOWHERE;
}

/* One line of a trace: cycle, from_x, from_y, to_x, to_y, bytes, type, noc. `from` issues the transfer. */
static bool transfer_read(const char *line, struct transfer *out)
{
    unsigned long cycle, bytes;
    unsigned from_x, from_y, to_x, to_y, noc;
    char type[8];
    if (sscanf(line, "%lu,%u,%u,%u,%u,%lu,%7[A-Z],NOC_%u", &cycle, &from_x, &from_y, &to_x, &to_y, &bytes, type, &noc) != 8
        || noc > 1 || bytes == 0 || bytes > ROOM || cycle > UINT32_MAX || (strcmp(type, "READ") && strcmp(type, "WRITE")))
        return false;
    bool reads = !strcmp(type, "READ");
    unsigned core = core_at(from_x, from_y), far = core_at(to_x, to_y), bank = bank_near(to_x, to_y);
    if (core == NOWHERE || (far == NOWHERE && bank == NOWHERE))
        return false;
    *out = (struct transfer){cycle * 1000, bytes, (uint8_t)core, (uint8_t)bank, true, !reads};
    if (far == NOWHERE)
        return true;
    out->far = (uint8_t)far;
    out->far_is_dram = false;
    if (out->store == (noc == 1))
        return true;
    /* The other core moves the data by the network that the trace names. */
    uint64_t request_ps = kb_latency_ps(core, far);
    out->core = (uint8_t)far;
    out->far = (uint8_t)core;
    out->store = reads;
    out->at_ps = reads ? out->at_ps + request_ps : out->at_ps - (request_ps < out->at_ps ? request_ps : out->at_ps);
    return true;
}

static int by_time(const void *a, const void *b)
{
    const struct transfer *x = a, *y = b;
    return x->at_ps != y->at_ps ? (x->at_ps > y->at_ps) - (x->at_ps < y->at_ps) : (x > y) - (x < y);
}

static void trace_read(const char *name)
{
    static const char *const places[] = {"traces/%s.csv", "%s.csv", "%s"};
    char path[1024], line[256];
    FILE *file = NULL;
    count = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places && !file; i++) {
        snprintf(path, sizeof path, places[i], name);
        file = fopen(path, "r");
    }
    wrong = file ? NULL : "the trace cannot be opened";
    for (bool head = true; file && fgets(line, sizeof line, file); head = false)
        if (!head && (count == TRANSFERS_MOST || !transfer_read(line, &transfers[count++])))
            wrong = "the trace has a wrong line, or too many";
    if (file)
        fclose(file);
    if (!wrong && !count)
        wrong = "the trace has no transfer";
    qsort(transfers, count, sizeof *transfers, by_time);
}

KB_KERNEL(noc_trace, struct noc_args)
{
    if (wrong)
        tl_fail(tl, 1, "%s", wrong);
    tl_data_op_default(tl, false);
    uint64_t start = tl_now(tl), used = 0;
    struct tl_shard own = tl_my_shard(tl, arg->l1);
    for (uint32_t i = 0; i < count; i++) {
        const struct transfer *t = &transfers[i];
        if (t->core != tl_pe(tl))
            continue;
        uint64_t now = tl_now(tl) - start;
        if (t->at_ps > now)
            tl_delay(tl, t->at_ps - now);
        used = used + t->bytes > ROOM ? 0 : used;
        struct tl_shard far = tl_shard(tl, t->far_is_dram ? arg->dram : arg->l1, t->far);
        struct tl_shard near = tl_part(tl, own, 0, used, t->bytes);
        far = tl_part(tl, far, 0, used, t->bytes);
        used += t->bytes;
        if (t->store)
            tl_store_async(tl, far, near);
        else
            tl_load_async(tl, near, far);
    }
}

/* The time of the core, on one network, or bank that takes or gives most bytes. */
static uint64_t busiest_ps(void)
{
    uint64_t in[2][CORES] = {0}, out[2][CORES] = {0}, bank[BANKS] = {0}, bytes = 0, ps = 0;
    for (const struct transfer *t = transfers; t < transfers + count; t++) {
        unsigned noc = t->store;
        (t->store ? out : in)[noc][t->core] += t->bytes;
        if (t->far_is_dram)
            bank[t->far] += t->bytes;
        else
            (t->store ? in : out)[noc][t->far] += t->bytes;
    }
    for (unsigned i = 0; i < 2 * CORES; i++)
        bytes = kb_max(bytes, kb_max(in[i / CORES][i % CORES], out[i / CORES][i % CORES]));
    for (uint32_t i = 0; i < BANKS; i++)
        ps = kb_max(ps, kb_memory_ps(KB_HBM, bank[i], 0));
    return kb_max(ps, kb_ceil_div(bytes * 1000000, kb_attrs.noc_attach_bw_bps / 1000000));
}

KB_BENCH(noc_trace, "the transfers of a trace of Wormhole's networks",
         KB_TEXT(trace, "", "its name: traces/NAME.csv, NAME.csv or NAME in the current folder"))
{
    static uint32_t firsts[BANKS];
    struct kb_pes pes = kb_pes("*");
    for (uint32_t bank = 0; bank < BANKS; bank++)       /* the first PE whose own slice it is */
        firsts[bank] = (bank * CORES + BANKS - 1) / BANKS;
    struct noc_args arg = {
        .dram = kb_tensor_new("dram", KB_i8, kb_1d((uint64_t)BANKS * ROOM), kb_rows(KB_HBM, ((struct kb_pes){firsts, BANKS}))),
        .l1 = kb_tensor_new("l1", KB_i8, kb_1d((uint64_t)CORES * ROOM), kb_rows(KB_TCM, pes)),
    };
    trace_read(kb_text(trace));
    kb_future launch = kb_launch(noc_trace, pes, &arg);
    kb_wait(launch);
    kb_figure("time", kb_kernels_ps(launch), KB_PS);
    kb_figure("roofline", busiest_ps(), KB_PS);
}
