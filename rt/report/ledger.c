/* ledger.c: the figures of ledger.def. Each function fills in an entry if the run has touched what it is of. */
#include "ledger.h"

#include <inttypes.h>

#include "base/human.h"
#include "base/rates.h"
#include "common/arena.h"
#include "demand.h"
#include "device/device.h"
#include "launch/host_request.h"
#include "machine/emitted.h"
#include "machine/stats.h"
#include "usage.h"

enum { SHOWN_PERMILLE = 10 };

enum {
#define FIGURE(name, value) LEDGER_##name = (value),
#include "ledger.def"
};

struct figure {
    const char *name;
    uint64_t value;
};

struct entry {
    const char *name, *text;                            /* text: for people; NULL: the run has not touched it */
    const char *more;                                   /* for the summary, which then shows the entry; or NULL */
    struct figure figures[2];
    bool is_bounded;                                    /* the most that it can make of the run's time is known: */
    uint64_t most_permille;
};

static uint64_t permille(uint64_t part, uint64_t whole)
{
    return whole ? (uint64_t)((unsigned __int128)part * 1000 / whole) : 0;
}

static const char *percent(uint64_t permille)
{
    return arena_printf("%" PRIu64 ".%" PRIu64 " %%", permille / 10, permille % 10);
}

/* "1 row", "2 rows". */
static const char *counted(uint64_t count, const char *one)
{
    return arena_printf("%" PRIu64 " %s%s", count, one, count == 1 ? "" : "s");
}

static void bound(struct entry *entry, uint64_t most_permille)
{
    entry->is_bounded = true;
    entry->most_permille = most_permille;
}

static uint64_t busiest_link_permille(void)
{
    uint64_t busiest_ps = 0;
    for (uint64_t link = 0; link < link_count(); link++)
        busiest_ps = kb_max(busiest_ps, kb_links[link].busy_ps);
    return permille(busiest_ps, now_ps);
}

/* ---- memories */

static uint64_t busiest_slice_ps(void)
{
    uint64_t busiest_ps = 0;
    for (uint32_t slice = 0; slice < slice_count(); slice++)
        busiest_ps = kb_max(busiest_ps, kb_hbm[slice].busy_ps);
    return busiest_ps;
}

/* What `ps` more of all pseudo channels are of the run's time, if the busiest slice has the same share of them as of the
 * rest. */
static uint64_t busiest_more_permille(uint64_t ps)
{
    uint64_t part = stats.read_busy_ps[SPACE_HBM] ? permille(busiest_slice_ps(), stats.read_busy_ps[SPACE_HBM]) : 1000;
    return permille(product(ps, part) / 1000, product(now_ps, kb_attrs.hbm_ctrl_pcs));
}

static void refresh_entry(struct entry *entry)
{
    uint64_t busy = permille(busiest_slice_ps(), product(now_ps, kb_attrs.hbm_ctrl_pcs));
    if (!busy || kb_has_model[NODE_hbm_ctrl])
        return;
    entry->text = arena_printf("no refresh: the busiest HBM slice is busy %s, of which real parts lose %d to %d %%",
                               percent(busy), LEDGER_REFRESH_LEAST_PERCENT, LEDGER_REFRESH_MOST_PERCENT);
    entry->figures[0] = (struct figure){"busy_permille", busy};
    bound(entry, busy * LEDGER_REFRESH_MOST_PERCENT / 100);
}

/* Pseudo channels are busy with bytes and with row changes. What they did for requests of the host between kernels is not
 * in their busy time. */
static void banks_entry(struct entry *entry)
{
    uint64_t busy_ps = stats.read_busy_ps[SPACE_HBM], row_ps = kb_attrs.hbm_ctrl_row_miss_ps;
    uint64_t bytes_ps = move_ps(sum(stats.read_bytes[SPACE_HBM], stats.write_bytes[SPACE_HBM]), kb_attrs.hbm_ctrl_pc_bw_bps);
    if (!row_ps || busy_ps < bytes_ps + row_ps || memory_requests || kb_has_model[NODE_hbm_ctrl])
        return;
    uint64_t changes = (busy_ps - bytes_ps) / row_ps, share = permille(busy_ps - bytes_ps, busy_ps);
    entry->text = arena_printf("no banks: %s of HBM, of %s each, whatever bank they are in: %s of its busy time",
                               counted(changes, "row change"), human_time(row_ps), percent(share));
    entry->figures[0] = (struct figure){"row_changes", changes};
    entry->figures[1] = (struct figure){"busy_permille", share};
}

static void blocks_entry(struct entry *entry)
{
    if (demand.block_rows <= demand.blocks)
        return;
    entry->text = arena_printf("composites move %s as one piece each: in row-major operands these have %s",
                               counted(demand.blocks, "block"), counted(demand.block_rows, "row"));
    entry->figures[0] = (struct figure){"blocks", demand.blocks};
    entry->figures[1] = (struct figure){"rows", demand.block_rows};
    bound(entry, busiest_more_permille(product(demand.block_rows - demand.blocks, kb_attrs.hbm_ctrl_row_miss_ps)));
}

static void operands_entry(struct entry *entry)
{
    uint64_t bytes = sum(untimed.operand_bytes, demand.operand_bytes);
    if (!bytes)
        return;
    entry->text = arena_printf("second operands of epilogues and math composites move no bytes: %s are not counted",
                               human_bytes(bytes));
    entry->figures[0] = (struct figure){"bytes", bytes};
    bound(entry, busiest_more_permille(move_ps(bytes, kb_attrs.hbm_ctrl_pc_bw_bps)));
}

/* ---- the fabric */

static void buffers_entry(struct entry *entry)
{
    uint64_t wait_ps = stats.node_wait_ps, longest = 0, link = 0;
    for (unsigned class = 0; class < LINK_CLASSES; class++)
        wait_ps = sum(wait_ps, stats.link_wait_ps[class]);
    if (!wait_ps)
        return;
    uint64_t waiting = permille(wait_ps, now_ps);
    entry->figures[0] = (struct figure){"wait_ps", wait_ps};
    entry->figures[1] = (struct figure){"waiting_permille", waiting};
    entry->text = arena_printf("buffers of routers are unbounded: %" PRIu64 ".%03" PRIu64 " messages wait on average",
                               waiting / 1000, waiting % 1000);
    if (usage_longest_queue(RESOURCE_LINK, &link, &longest))
        entry->more = arena_printf(", at most %" PRIu64 " for one link, at %s", longest, place_name(link_ends(link).from));
}

/* Small messages beside those of DMA: the busiest link carries that much more. */
static void add_small(struct entry *entry, const char *what)
{
    uint64_t more = permille(product(demand.transfers, LEDGER_SMALL_BYTES), demand.fabric_bytes);
    if (!demand.transfers)
        return;
    entry->text = arena_printf("%s: %d bytes for each of %s would be %s more", what, LEDGER_SMALL_BYTES,
                               counted(demand.transfers, "message"), percent(more));
    entry->figures[0] = (struct figure){"messages", demand.transfers};
    entry->figures[1] = (struct figure){"more_permille", more};
    bound(entry, busiest_link_permille() * more / 1000);
}

static void headers_entry(struct entry *entry)
{
    add_small(entry, "headers take nothing");
}

/* A request for each read, an acknowledgement for each write, a credit for each message. */
static void control_entry(struct entry *entry)
{
    add_small(entry, "control messages use no bandwidth");
}

static void rings_entry(struct entry *entry)
{
    if (!demand.messages || kb_attrs.pe_ipcq_buffer == BUFFER_tcm)
        return;
    entry->text = arena_printf("messages under way are in no memory: %s through rings in sram or HBM",
                               counted(demand.messages, "message"));
    entry->figures[0] = (struct figure){"messages", demand.messages};
}

/* ---- PEs */

static void instructions_entry(struct entry *entry)
{
    if (!demand.commands)
        return;
    entry->text = arena_printf("instructions of pe_cpu take no time: kernels have submitted %s",
                               counted(demand.commands, "command"));
    entry->figures[0] = (struct figure){"commands", demand.commands};
}

static void registers_entry(struct entry *entry)
{
    if (!demand.fetch_most)
        return;
    entry->text = arena_printf("the register file has no size: a tile has up to %s of operands there",
                               human_bytes(demand.fetch_most));
    entry->figures[0] = (struct figure){"bytes", demand.fetch_most};
}

static void after_entry(struct entry *entry)
{
    if (!untimed.after)
        return;
    entry->text = arena_printf("tl_after takes no time and delays nothing: %s", counted(untimed.after, "call"));
    entry->figures[0] = (struct figure){"calls", untimed.after};
}

/* ---- all of them, those that can make most of the run's time first */

enum {
#define LEDGER(name, ...) LEDGER_##name,
#include "ledger.def"
    ENTRIES
};

/* Returns how many entries there are. Texts are in the arena. */
static unsigned entries_collect(struct entry entries[ENTRIES])
{
    static void (*const fill[ENTRIES])(struct entry *) = {
#define LEDGER(name, ...) name##_entry,
#include "ledger.def"
    };
    static const char *const names[ENTRIES] = {
#define LEDGER(name, ...) #name,
#include "ledger.def"
    };
    unsigned count = 0;
    for (unsigned i = 0; i < ENTRIES && now_ps; i++) {
        struct entry entry = {.name = names[i]};
        fill[i](&entry);
        if (!entry.text)
            continue;
        unsigned at = count++;
        for (; at && entry.is_bounded && (!entries[at - 1].is_bounded || entries[at - 1].most_permille < entry.most_permille); at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
    return count;
}

void ledger_print(FILE *out, const char *option)
{
    struct entry entries[ENTRIES];
    unsigned count = entries_collect(entries), shown = 0;
    for (const struct entry *entry = entries; entry < entries + count; entry++) {
        bool is_large = entry->most_permille >= SHOWN_PERMILLE;
        if (!is_large && !entry->more)
            continue;
        fprintf(out, "%-12s %s%s%s\n", shown++ ? "" : "not modelled", entry->text, entry->more ? entry->more : "",
                is_large ? arena_printf(" (%s of the time at most)", percent(entry->most_permille)) : "");
    }
    if (shown < count)
        fprintf(out, "%-12s %u %s, of less than %d %% of the time or of unknown effect: %s has %s\n",
                shown ? "" : "not modelled", count - shown,
                shown ? "more" : count > 1 ? "simplifications" : "simplification", SHOWN_PERMILLE / 10, option,
                count - shown == 1 ? "it" : "them");
}

void ledger_write(struct json *json)
{
    struct entry entries[ENTRIES];
    unsigned count = entries_collect(entries);
    if (!count)
        return;
    json_array(json, "ledger");
    for (const struct entry *entry = entries; entry < entries + count; entry++) {
        json_object(json, NULL);
        json_string(json, "name", entry->name);
        json_string(json, "text", entry->text);
        if (entry->is_bounded)
            json_u64(json, "most_permille", entry->most_permille);
        else
            json_null(json, "most_permille");
        for (const struct figure *figure = entry->figures; figure < entry->figures + 2 && figure->name; figure++)
            json_u64(json, figure->name, figure->value);
        json_object_end(json);
    }
    json_array_end(json);
}
