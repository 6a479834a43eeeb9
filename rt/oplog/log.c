/* log.c: the op log as bytes: writing. log_read.c reads, log_file.c opens files and closes them. */
#include "log.h"

#include "log_form.h"
#include "machine/tiling.h"

enum { BLOCK_BYTES = 1 << 16, PIECE_BYTES = 1 << 20 };

uint64_t log_memory_bytes = UINT64_C(256) << 20;
bool log_filed;

static struct spool spool = {.what = "the op log"};
static struct packed block;                             /* under way */
static struct log_block block_head;
static struct names names;
static struct record_state state;
static uint64_t interval;                               /* where its first block is */

/* ---- blocks */

static void block_end(void)
{
    if (block.count == 0)
        return;
    block_head.bytes = (uint32_t)block.count;
    block_head.sum = log_block_sum(&block_head, block.bytes);
    spool.limit = log_memory_bytes;
    spool_append(&spool, &block_head, sizeof block_head);
    spool_append(&spool, block.bytes, block.count);
    block.count = 0;
}

/* A record follows: in a block of its own if the last one is full. */
static struct packed *next(void)
{
    if (block.count >= BLOCK_BYTES)
        block_end();
    if (block.count == 0)
        block_head = (struct log_block){.tag = LOG_BLOCK_TAG, .state = state};
    return &block;
}

/* In pieces, so that no block is large. */
static void given(const struct fill *fill)
{
    uint64_t bytes = fill->tensor->elements * dtype_bytes[fill->tensor->dtype];
    for (uint64_t done = 0, count; done < bytes; done += count) {
        count = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        record_bytes(next(), (const uint8_t *)fill->given + done, count);
    }
}

void log_op(const struct op *op)
{
    state.id = op->id;                                  /* those before an interval may not be here */
    record_op(next(), &names, &state, op);
    if (op->kind == OPKIND_memory && op->pe == OP_OF_HOST && op->fill.kind == KB_GIVEN)
        given(&op->fill);
}

void log_services(const struct services *services)
{
    record_services(next(), &state, services);
}

void log_tile(const struct tile_stage *tile)
{
    record_tile(next(), &state, tile);
}

void log_content(const struct content *content)
{
    record_content(next(), &names, content);
}

const struct tensor *log_tensor(uint64_t from)
{
    while (from < names.tensors && !names.tensor[from])
        from++;
    return from < names.tensors ? names.tensor[from] : NULL;
}

void log_begin_interval(void)
{
    block_end();
    if (!log_filed)
        spool_clear(&spool);
    interval = spool.bytes;
}

void log_reset(void)
{
    spool_clear(&spool);
    block.count = 0;
    names = (struct names){0};                          /* their room is the arena's, which goes back as well */
    state = (struct record_state){0};
    interval = 0;
}

/* ---- for log_file.c */

void log_to_file(int fd, const void *head, size_t bytes)
{
    spool_use(&spool, fd);
    spool_append(&spool, head, bytes);
    interval = spool.bytes;
    log_filed = true;
}

void log_end(bool good)
{
    record_end(next(), &(struct ending){state.id, good});
    block_end();
    spool_flush(&spool);
    log_filed = false;
}

void log_read(struct log_reader *reader)
{
    block_end();
    *reader = (struct log_reader){.spool = &spool, .names = &names, .place = interval, .end = spool.bytes};
}
