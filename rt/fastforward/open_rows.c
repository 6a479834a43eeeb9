/* open_rows.c: records the requests of a period, and replays them on the open rows of HBM. */
#include "open_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/rates.h"
#include "common/diag.h"
#include "machine/dma.h"
#include "machine/emitted.h"
#include "sim/observer.h"

/* A recorded request. */
struct recorded {
    const struct command *command;
    uint64_t id;                                        /* of the tile */
    uint64_t bytes;
    uint32_t slice;
    uint8_t operand;
};

/* The block that it asks for in the period that is replayed, and how that moves from one period to the next. */
struct moving_block {
    uint32_t slice;
    uint64_t offset, bytes;                             /* in the slice */
    uint64_t offset_in_stripe;                          /* at the start; a stripe is one interleave of all channels */
    uint64_t column, column_step, columns;              /* of the output tile */
    uint64_t period_bytes, wrap_bytes;                  /* moves by the first, and by both where the column wraps */
};

/* What a request did to a channel. */
struct row_change {
    uint32_t channel, misses;
    uint64_t row_before;                                /* the row that was open, + 1 */
};

static struct {
    struct recorded *requests;
    struct moving_block *blocks;                        /* of the requests */
    struct row_change *changes;                         /* of the period that is replayed */
    size_t count, room;                                 /* requests; of requests and of changes */
    uint64_t *rows_at_start, *rows;                     /* open_row of each channel: when recording began; in a replay */
} recording;

static uint64_t channel_count(void)
{
    return slice_count() * kb_attrs.hbm_ctrl_pcs;
}

/* Longer periods than there is room for are not skipped. Memory that is not touched takes none of the system's. */
static void allocate(void)
{
    enum { LEAST = 1 << 16, PER_PE = 256 };
    recording.room = pe_count() > LEAST / PER_PE ? (size_t)pe_count() * PER_PE : LEAST;
    recording.requests = malloc(recording.room * sizeof *recording.requests);
    recording.blocks = malloc(recording.room * sizeof *recording.blocks);
    recording.changes = malloc(recording.room * sizeof *recording.changes);
    recording.rows_at_start = calloc(channel_count(), sizeof *recording.rows_at_start);
    recording.rows = calloc(channel_count(), sizeof *recording.rows);
    if (!recording.requests || !recording.blocks || !recording.changes || !recording.rows_at_start || !recording.rows)
        die("no memory for %zu requests of a period", recording.room);
}

void open_rows_record(void)
{
    if (!recording.requests)
        allocate();
    recording.count = 0;
    observer_watch(&open_rows_observer, true);
    for (uint32_t slice = 0; slice < slice_count(); slice++)
        for (uint64_t i = 0; i < kb_attrs.hbm_ctrl_pcs; i++)
            recording.rows_at_start[slice * kb_attrs.hbm_ctrl_pcs + i] = slice_channels(slice)[i].open_row;
}

static void memory_served(const struct transfer *transfer)
{
    const struct token *token = transfer->token;
    if (transfer->range.space != SPACE_HBM)
        return;
    if (recording.count == recording.room) {
        observer_watch(&open_rows_observer, false);
        return;
    }
    recording.requests[recording.count++] = (struct recorded){
        .command = token->command, .id = token->tile.id, .bytes = transfer->range.bytes, .slice = transfer->range.number,
        .operand = token->stage->operand};
}

struct observer open_rows_observer = {
    .name = "open rows",
    .memory_served = memory_served,
};

/* ---- how a block moves */

static uint64_t block_offset(const struct recorded *request, const struct tile *tile)
{
    return tiling_address(request->command, tile, request->operand) & OFFSET_MASK;
}

/* The block of a request in the recorded period; its PE feeds `step` tiles a period. */
static struct moving_block block_at_start(const struct recorded *request, uint64_t step)
{
    const struct command *command = request->command;
    struct tile tile = tiling_tile(command, request->id), below = tile, right = tile;
    below.i_m++;
    right.i_n++;
    uint64_t offset = block_offset(request, &tile), columns = command->tiles_n, outputs = step / command->tiles_k;
    uint64_t down = block_offset(request, &below) - offset, along = block_offset(request, &right) - offset;
    return (struct moving_block){
        .slice = request->slice, .offset = offset, .bytes = request->bytes,
        .offset_in_stripe = offset % (kb_attrs.hbm_ctrl_interleave_bytes * kb_attrs.hbm_ctrl_pcs),
        .column = tile.i_n, .column_step = outputs % columns, .columns = columns,
        .period_bytes = outputs / columns * down + outputs % columns * along, .wrap_bytes = down - columns * along};
}

/* Moves a block to the next period. Differences of offsets may be negative: they wrap at 2^64, and the mask takes that
 * away again. */
static void block_move(struct moving_block *block)
{
    block->offset += block->period_bytes;
    block->column += block->column_step;
    if (block->column >= block->columns) {
        block->column -= block->columns;
        block->offset += block->wrap_bytes;
    }
    block->offset &= OFFSET_MASK;
}

/* ---- one period on the open rows
 *
 * The channels of a slice are uniform if all have the same row open and each request asks the same of all of them. Then
 * the first is replayed for all, with rows of all channels together. */

struct replay {
    bool uniform;                                       /* all slices are */
    bool first;                                         /* replays the recorded period, for its misses */
    struct divisor stripe, rows;                        /* bytes of a stripe, and of a row of all channels of a slice */
    size_t change_count;
};

/* Opens the rows from `row` to row_end. Returns false if there are not as many misses as in the recorded period, or no
 * room to note the change. */
static bool channel_open(struct replay *replay, uint32_t channel, uint64_t row, uint64_t row_end)
{
    struct row_change *change = &recording.changes[replay->change_count];
    uint32_t misses = row_end - row + (recording.rows[channel] != row + 1);
    if (replay->change_count == recording.room || (!replay->first && change->misses != misses))
        return false;
    *change = (struct row_change){channel, misses, recording.rows[channel]};
    recording.rows[channel] = row_end + 1;
    replay->change_count++;
    return true;
}

static bool request_replay(struct replay *replay, const struct moving_block *block)
{
    uint32_t first = block->slice * kb_attrs.hbm_ctrl_pcs;
    if (replay->uniform)
        return channel_open(replay, first, quotient(block->offset, replay->rows),
                            quotient(block->offset + block->bytes - 1, replay->rows));
    for (uint64_t i = 0; i < hbm_touches(block->offset, block->bytes); i++) {
        struct hbm_rows rows = hbm_rows(block->offset, block->bytes, i);
        if (!channel_open(replay, first + rows.channel, rows.row, rows.row_end))
            return false;
    }
    return true;
}

static void period_undo(struct replay *replay)
{
    while (replay->change_count > 0) {
        const struct row_change *change = &recording.changes[--replay->change_count];
        recording.rows[change->channel] = change->row_before;
    }
}

/* Replays one more period. Returns false if it differs from the recorded one; then the rows are as before it. */
static bool period_replay(struct replay *replay)
{
    replay->change_count = 0;
    for (size_t i = 0; i < recording.count; i++) {
        struct moving_block *block = &recording.blocks[i];
        bool same_place = replay->first || rest(block->offset, replay->stripe) == block->offset_in_stripe;
        if (!same_place || !request_replay(replay, block)) {
            period_undo(replay);
            return false;
        }
        block_move(block);
    }
    return true;
}

/* ---- all periods */

static bool is_uniform(const struct moving_block *block)
{
    uint64_t pcs = kb_attrs.hbm_ctrl_pcs, stripe = kb_attrs.hbm_ctrl_interleave_bytes * pcs;
    const uint64_t *rows = &recording.rows_at_start[block->slice * pcs];
    for (uint64_t i = 1; i < pcs; i++)
        if (rows[i] != rows[0])
            return false;
    return block->offset % stripe == 0 && block->bytes % stripe == 0;
}

static void leave_open(const struct replay *replay)
{
    uint64_t pcs = kb_attrs.hbm_ctrl_pcs;
    for (size_t i = 0; i < recording.count; i++) {
        uint64_t first = recording.blocks[i].slice * pcs;
        for (uint64_t pc = 0; pc < pcs; pc++)
            slice_channels(recording.blocks[i].slice)[pc].open_row = recording.rows[first + (replay->uniform ? 0 : pc)];
    }
}

uint64_t open_rows_replay(const uint64_t *steps, uint64_t most)
{
    uint64_t pcs = kb_attrs.hbm_ctrl_pcs;
    struct replay replay = {.uniform = true, .first = true,
                            .stripe = divisor_of(pcs * kb_attrs.hbm_ctrl_interleave_bytes),
                            .rows = divisor_of(pcs * kb_attrs.hbm_ctrl_row_bytes)};
    if (!open_rows_observer.watches)
        return 0;
    memcpy(recording.rows, recording.rows_at_start, channel_count() * sizeof *recording.rows);
    for (size_t i = 0; i < recording.count; i++) {
        const struct recorded *request = &recording.requests[i];
        recording.blocks[i] = block_at_start(request, steps[pe_number(request->command->pe)]);
        replay.uniform &= is_uniform(&recording.blocks[i]);
    }
    if (!period_replay(&replay))
        return 0;
    replay.first = false;
    uint64_t periods = 0;
    while (periods < most && period_replay(&replay))
        periods++;
    leave_open(&replay);
    return periods;
}
