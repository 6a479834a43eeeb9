/* open_rows.c: replays a period's requests on the open rows of HBM alone. */
#include "open_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/rates.h"
#include "machine/emitted.h"
#include "common/diag.h"
#include "sim/observer.h"

/* A request of the period, as noted. */
struct asked {
    const struct command *command;
    uint64_t id;                                        /* of the tile */
    uint32_t slice;
    uint8_t operand;
};

/* The same in the period under way: where its tile's block is, and how that moves on. */
struct again {
    uint32_t slice;
    uint64_t offset, offset_in_stripe, bytes;
    uint64_t column, column_step, columns;              /* of the blocks of output tiles */
    uint64_t period_bytes, wrap_bytes;                  /* how far it moves in a period, and besides when rows change */
};

/* What a request did to a channel. */
struct opened {
    uint32_t channel, misses;
    uint64_t before;                                    /* the row that was open, + 1 */
};

static struct asked *asked;
static struct again *agains;
static struct opened *opened;                           /* by the period under way */
static size_t count, room;                              /* room: no longer period is tried */
static uint64_t *rows_then, *rows_replayed;             /* open rows when noting began, and since in a replay */

static uint64_t channels(void)
{
    return pe_count() * kb_attrs.hbm_ctrl_pcs;
}

static void rows_init(void)
{
    enum { LEAST = 1 << 16, PER_PE = 256 };
    room = pe_count() > LEAST / PER_PE ? (size_t)pe_count() * PER_PE : LEAST;
    asked = calloc(room, sizeof *asked);                /* untouched, it takes no memory */
    agains = calloc(room, sizeof *agains);
    opened = calloc(room, sizeof *opened);
    rows_then = calloc(channels(), sizeof *rows_then);
    rows_replayed = calloc(channels(), sizeof *rows_replayed);
    if (!asked || !agains || !opened || !rows_then || !rows_replayed)
        die("no memory for %zu requests of a period", room);
}

void rows_begin(void)
{
    if (!asked)
        rows_init();
    count = 0;
    observer_watch(&open_rows_observer, true);
    for (uint64_t i = 0; i < channels(); i++)
        rows_then[i] = kb_pseudo_channels[i].open_row;
}

static void memory_served(const struct transfer *transfer)
{
    const struct token *token = transfer->token;
    if (transfer->range.space != SPACE_HBM)
        return;
    if (count == room) {                                /* too long a period */
        observer_watch(&open_rows_observer, false);
        return;
    }
    asked[count++] = (struct asked){.command = token->command, .id = token->tile.id, .slice = transfer->range.pe,
                                    .operand = token->stage.operand};
}

struct observer open_rows_observer = {
    .name = "open rows",
    .memory_served = memory_served,
};

/* ---- how a request moves on */

static uint64_t block_offset(const struct asked *a, const struct tile *tile)
{
    return tiling_address(a->command, tile, a->operand) & OFFSET_MASK;
}

static struct again first_again(const struct asked *a, uint64_t step)
{
    const struct command *command = a->command;
    struct tile tile = tiling_tile(command, a->id), below = tile, right = tile;
    below.i_m++;
    right.i_n++;
    uint64_t offset = block_offset(a, &tile), columns = command->tiles_n, blocks = step / command->tiles_k;
    uint64_t down = block_offset(a, &below) - offset, along = block_offset(a, &right) - offset;
    return (struct again){.slice = a->slice, .offset = offset,
                          .offset_in_stripe = offset % (kb_attrs.hbm_ctrl_interleave_bytes * kb_attrs.hbm_ctrl_pcs),
                          .bytes = tiling_bytes(command, &tile, a->operand),
                          .column = tile.i_n, .column_step = blocks % columns, .columns = columns,
                          .period_bytes = blocks / columns * down + blocks % columns * along,
                          .wrap_bytes = down - columns * along};
}

/* Offsets are below 2^36 whatever differences wrap at 2^64 on the way. */
static void again_move(struct again *again)
{
    again->offset += again->period_bytes;
    again->column += again->column_step;
    if (again->column >= again->columns) {
        again->column -= again->columns;
        again->offset += again->wrap_bytes;
    }
    again->offset &= OFFSET_MASK;
}

/* ---- one period on the open rows
 *
 * If the channels of each slice are alike, and each request asks the same of all, the first stands for all: a row of it
 * is a row of all. */

struct replay {
    bool alike, first;                                  /* first: the period noted, which says what is to come again */
    struct divisor stripe, rows;                        /* bytes of a block, and of a row, of all channels of a slice */
    uint64_t *open;                                     /* by channel: the open row + 1 */
    size_t at;                                          /* in opened */
};

/* False: it is not as in the first period, or there is no room for all that is. */
static bool channel_opens(struct replay *replay, uint32_t channel, uint64_t row, uint64_t row_end)
{
    struct opened *o = &opened[replay->at];
    uint32_t misses = row_end - row + (replay->open[channel] != row + 1);
    if (replay->at == room || (!replay->first && o->misses != misses))
        return false;
    *o = (struct opened){channel, misses, replay->open[channel]};
    replay->open[channel] = row_end + 1;
    replay->at++;
    return true;
}

static bool request_repeats(struct replay *replay, const struct again *again)
{
    uint32_t first = again->slice * kb_attrs.hbm_ctrl_pcs;
    if (replay->alike)
        return channel_opens(replay, first, quotient(again->offset, replay->rows),
                             quotient(again->offset + again->bytes - 1, replay->rows));
    for (uint64_t i = 0; i < hbm_touches(again->offset, again->bytes); i++) {
        struct hbm_rows rows = hbm_rows(again->offset, again->bytes, i);
        if (!channel_opens(replay, first + rows.channel, rows.row, rows.row_end))
            return false;
    }
    return true;
}

/* Undoes what of a period has been done. */
static void period_undo(struct replay *replay)
{
    while (replay->at > 0) {
        const struct opened *o = &opened[--replay->at];
        replay->open[o->channel] = o->before;
    }
}

/* One more period; false: it is not as the first, and not done. */
static bool period_repeats(struct replay *replay)
{
    replay->at = 0;
    for (size_t i = 0; i < count; i++) {
        struct again *again = &agains[i];
        bool as_before = replay->first || rest(again->offset, replay->stripe) == again->offset_in_stripe;
        if (!as_before || !request_repeats(replay, again)) {
            period_undo(replay);
            return false;
        }
        again_move(again);
    }
    return true;
}

/* ---- */

static bool request_alike(const struct again *again)
{
    uint64_t pcs = kb_attrs.hbm_ctrl_pcs, stripe = kb_attrs.hbm_ctrl_interleave_bytes * pcs;
    const uint64_t *open = &rows_then[again->slice * pcs];
    for (uint64_t i = 1; i < pcs; i++)
        if (open[i] != open[0])
            return false;
    return again->offset % stripe == 0 && again->bytes % stripe == 0;
}

static void rows_leave(const struct replay *replay)
{
    uint64_t pcs = kb_attrs.hbm_ctrl_pcs;
    for (size_t i = 0; i < count; i++)
        for (uint64_t pc = agains[i].slice * pcs; pc < (agains[i].slice + 1) * pcs; pc++)
            kb_pseudo_channels[pc].open_row = replay->open[replay->alike ? agains[i].slice * pcs : pc];
}

uint64_t rows_repeat(const uint64_t *steps, uint64_t most)
{
    uint64_t pcs = kb_attrs.hbm_ctrl_pcs;
    struct replay replay = {.alike = true, .first = true, .open = rows_replayed,
                            .stripe = divisor_of(pcs * kb_attrs.hbm_ctrl_interleave_bytes),
                            .rows = divisor_of(pcs * kb_attrs.hbm_ctrl_row_bytes)};
    if (!open_rows_observer.watches)
        return 0;
    memcpy(rows_replayed, rows_then, channels() * sizeof *rows_then);
    for (size_t i = 0; i < count; i++) {
        agains[i] = first_again(&asked[i], steps[pe_number(asked[i].command->pe)]);
        replay.alike &= request_alike(&agains[i]);
    }
    if (!period_repeats(&replay))
        return 0;
    replay.first = false;
    uint64_t periods = 0;
    while (periods < most && period_repeats(&replay))
        periods++;
    rows_leave(&replay);
    return periods;
}
