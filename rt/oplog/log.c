/* log.c: the op log as bytes: its blocks, its files, its readers. */
#include "log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"
#include "common/arena.h"
#include "common/diag.h"
#include "common/hash.h"
#include "common/path_error.h"
#include "machine/emitted.h"
#include "machine/tiling.h"

#define LOG_MAGIC "kboplog"
enum { LOG_VERSION = 3, LOG_ORDER = 0x01020304, LOG_BLOCK_TAG = 0x6b6c6f62 };
enum { BLOCK_BYTES = 1 << 16, MOST_BLOCK_BYTES = 1 << 24, PIECE_BYTES = 1 << 20, MOST_TEXT_BYTES = 1 << 20 };

/* At the start of a file, in the byte order of the machine that wrote it; `bytes` of 0-terminated texts follow: machine,
 * topology hash, version, bench. */
struct log_file_head {
    char magic[8];
    uint32_t version, order;
    uint64_t seed, bytes, sum;
};

/* Before the records of a block. */
struct log_block {
    uint32_t tag, bytes;
    struct record_state state;                          /* at its first record */
    uint64_t sum;
};

uint64_t log_memory_bytes = UINT64_C(256) << 20;
bool log_filed;

/* The log of this run. */
static struct {
    struct spool spool;                                 /* all complete blocks */
    struct encoder block;                               /* the records of the last one */
    struct log_block block_head;
    struct record_state state;
    struct interned interned;                           /* in the arena */
    uint64_t interval;                                  /* where its first block is */
    struct output output;                               /* the file, if there is one */
} writer = {.spool = {.what = "the op log"}};

/* ---- writing */

static uint64_t block_sum(const struct log_block *block, const void *bytes)
{
    return hash_bytes(hash_bytes(block->bytes, &block->state, sizeof block->state), bytes, block->bytes);
}

static void block_end(void)
{
    struct encoder *block = &writer.block;
    struct log_block *head = &writer.block_head;
    if (block->count == 0)
        return;
    head->bytes = (uint32_t)block->count;
    head->sum = block_sum(head, block->bytes);
    writer.spool.limit = log_memory_bytes;
    spool_append(&writer.spool, head, sizeof *head);
    spool_append(&writer.spool, block->bytes, block->count);
    block->count = 0;
}

/* Where the next record goes: the block under way, or a new one if that is full. */
static struct encoder *record_begin(void)
{
    if (writer.block.count >= BLOCK_BYTES)
        block_end();
    if (writer.block.count == 0)
        writer.block_head = (struct log_block){.tag = LOG_BLOCK_TAG, .state = writer.state};
    return &writer.block;
}

/* In pieces, so that no block is large. */
static void log_given(const struct fill *fill)
{
    uint64_t bytes = fill->tensor->elements * dtype_bytes[fill->tensor->dtype];
    for (uint64_t done = 0, count; done < bytes; done += count) {
        count = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        record_bytes(record_begin(), (const uint8_t *)fill->given + done, count);
    }
}

static bool is_given(const struct op *op)
{
    return op_is_fill(op) && op->fill.kind == KB_GIVEN;
}

void log_op(const struct op *op)
{
    writer.state.id = op->id;                           /* earlier ones of other intervals need not be in this log */
    record_op(record_begin(), &writer.interned, &writer.state, op);
    if (is_given(op))
        log_given(&op->fill);
}

void log_services(const struct services *services)
{
    record_services(record_begin(), &writer.state, services);
}

void log_tile(const struct tile_stage *tile)
{
    record_tile(record_begin(), &writer.state, tile);
}

void log_reservation(const struct reservation *reservation)
{
    record_reservation(record_begin(), &writer.state, reservation);
}

void log_content(const struct content *content)
{
    record_content(record_begin(), &writer.interned, content);
}

const struct tensor *log_tensor(uint64_t from)
{
    const struct interned *interned = &writer.interned;
    while (from < interned->tensors && !interned->tensor[from])
        from++;
    return from < interned->tensors ? interned->tensor[from] : NULL;
}

void log_begin_interval(void)
{
    block_end();
    if (!log_filed)
        spool_clear(&writer.spool);
    writer.interval = writer.spool.bytes;
}

void log_reset(void)
{
    spool_clear(&writer.spool);
    writer.block.count = 0;
    writer.interned = (struct interned){0};
    writer.state = (struct record_state){0};
    writer.interval = 0;
}

/* ---- writing a file */

void log_open(const char *path, const char *bench)
{
    struct stat status;
    const char *texts[] = {kb_machine_name, kb_topology_hash, kb_version, bench};
    struct encoder to = {0};
    if (!strcmp(path, "-") || (!stat(path, &status) && !S_ISREG(status.st_mode)))
        usage_error("--oplog %s: an op log is read again, so it needs a file", path);
    writer.output = output_open(path);
    struct log_file_head head = {.magic = LOG_MAGIC, .version = LOG_VERSION, .order = LOG_ORDER, .seed = fill_seed};
    encode_bytes(&to, &head, sizeof head);
    for (unsigned i = 0; i < COUNT_OF(texts); i++)
        encode_bytes(&to, texts[i], strlen(texts[i]) + 1);
    head.bytes = to.count - sizeof head;
    head.sum = hash_bytes(head.seed, to.bytes + sizeof head, head.bytes);
    memcpy(to.bytes, &head, sizeof head);
    spool_use(&writer.spool, fileno(writer.output.file));
    spool_append(&writer.spool, to.bytes, to.count);
    free(to.bytes);
    writer.interval = writer.spool.bytes;
    log_filed = true;
}

void log_close(bool good)
{
    if (!log_filed)
        return;
    record_end(record_begin(), &(struct ending){writer.state.id, good});
    block_end();
    spool_flush(&writer.spool);
    log_filed = false;
    output_close(&writer.output);
}

/* ---- reading */

/* Damage to a file is an error of the input; damage to this run's own log is one of the host system. */
static _Noreturn void log_wrong(const struct log_reader *reader, uint64_t place, const char *what)
{
    if (!reader->path)
        die("the op log cannot be read back: at byte %" PRIu64 " %s", place, what);
    message("%s: byte %" PRIu64 ": error: %s\n", reader->path, place, what);
    fail_exit(STATUS_WRONG_USE);
}

static bool block_next(struct log_reader *reader)
{
    struct log_block head;
    if (reader->place == reader->end)
        return false;
    reader->block_place = reader->place;
    if (reader->ended)
        log_wrong(reader, reader->place, "the op log has ended, but the file has not");
    if (reader->end - reader->place < sizeof head)
        log_wrong(reader, reader->place, "the file ends within a block: it is truncated");
    spool_read(reader->spool, reader->place, &head, sizeof head);
    if (head.tag != LOG_BLOCK_TAG || head.bytes > MOST_BLOCK_BYTES)
        log_wrong(reader, reader->place, "no block of records begins here: it is damaged");
    if (head.bytes > reader->end - reader->place - sizeof head)
        log_wrong(reader, reader->place, "the file ends within a block: it is truncated");
    if (head.bytes > reader->capacity) {
        free(reader->block);
        reader->capacity = 2 * (size_t)head.bytes;
        reader->block = malloc(reader->capacity);
        if (!reader->block)
            die("no memory for a block of %zu bytes of the op log:", reader->capacity);
    }
    spool_read(reader->spool, reader->place + sizeof head, reader->block, head.bytes);
    if (block_sum(&head, reader->block) != head.sum)
        log_wrong(reader, reader->place, "the checksum of the block is wrong: it is damaged");
    reader->place += sizeof head + head.bytes;
    reader->from = (struct decoder){.at = reader->block, .end = reader->block + head.bytes};
    reader->state = head.state;
    return true;
}

static void reader_end(struct log_reader *reader)
{
    if (reader->path && !reader->ended)
        log_wrong(reader, reader->end, "the file ends before the op log does: it is truncated");
    free(reader->block);
    reader->block = NULL;
    if (reader->path) {
        close(reader->spool->fd);
        free(reader->spool);
    }
}

static bool record_next(struct log_reader *reader, struct record *record)
{
    while (!record_read(&reader->from, reader->interned, &reader->state, record)) {
        if (reader->from.bad)
            log_wrong(reader, reader->block_place, "a record of the block is wrong");
        if (!block_next(reader))
            return false;
    }
    return true;
}

/* Reads the bytes that were given to a fill, whose records follow it. */
static void read_given(struct log_reader *reader, const struct fill *fill)
{
    uint64_t bytes = fill->tensor->elements * dtype_bytes[fill->tensor->dtype];
    struct record piece;
    for (uint64_t done = 0, count; done < bytes; done += count) {
        if (!record_next(reader, &piece) || piece.kind != RECORD_bytes)
            log_wrong(reader, reader->block_place, "the bytes of a write are missing");
        count = piece.bytes.count;
        if (count == 0 || count > bytes - done)
            log_wrong(reader, reader->block_place, "a write has more bytes than its tensor");
        memcpy((uint8_t *)fill->given + done, piece.bytes.at, count);
    }
}

bool log_next(struct log_reader *reader, struct record *record)
{
    if (!record_next(reader, record)) {
        reader_end(reader);
        return false;
    }
    if (record->kind == RECORD_bytes)
        log_wrong(reader, reader->block_place, "bytes belong to no write");
    if (record->kind == RECORD_op && is_given(record->op))
        read_given(reader, &record->op->fill);
    reader->ended |= record->kind == RECORD_end;
    return true;
}

void log_read(struct log_reader *reader)
{
    block_end();
    *reader = (struct log_reader){.spool = &writer.spool, .interned = &writer.interned, .place = writer.interval,
                                   .end = writer.spool.bytes};
}

/* ---- reading the head of a file */

/* The next text of the head; NULL if it is not 0-terminated. */
static const char *text_next(struct decoder *from)
{
    size_t length = strnlen((const char *)from->at, (size_t)(from->end - from->at));
    const char *text = decode_bytes(from, length + 1);
    return text ? arena_text(text, length) : NULL;
}

static void open_file(struct log_reader *reader, const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status))
        usage_error("cannot open %s: %s", path, path_error(path));
    if (!S_ISREG(status.st_mode))
        usage_error("%s is no file", path);
    struct spool *spool = calloc(1, sizeof *spool);
    struct interned *interned = arena_alloc(1, sizeof *interned);
    if (!spool)
        die("no memory to read %s:", path);
    spool_use(spool, fd);
    spool->what = path;
    spool->bytes = (uint64_t)status.st_size;
    *reader = (struct log_reader){.path = path, .spool = spool, .interned = interned, .end = spool->bytes};
}

struct log_head log_read_file(struct log_reader *reader, const char *path)
{
    struct log_file_head head;
    open_file(reader, path);
    if (reader->end < sizeof head.magic)
        log_wrong(reader, 0, "this is no op log");
    memset(&head, 0, sizeof head);
    spool_read(reader->spool, 0, &head, reader->end < sizeof head ? reader->end : sizeof head);
    if (memcmp(head.magic, LOG_MAGIC, sizeof head.magic))
        log_wrong(reader, 0, "this is no op log");
    if (reader->end < sizeof head)
        log_wrong(reader, reader->end, "the file ends within its head: it is truncated");
    if (head.order != LOG_ORDER)
        log_wrong(reader, 12, "this op log was written on a machine of another order of bytes");
    if (head.version != LOG_VERSION)
        log_wrong(reader, 8, arena_printf("this op log is of version %" PRIu32 ", this simulator reads version %d",
                                          head.version, LOG_VERSION));
    if (head.bytes > reader->end - sizeof head || head.bytes > MOST_TEXT_BYTES)
        log_wrong(reader, reader->end, "the file ends within its head: it is truncated");
    uint8_t *texts = arena_alloc(head.bytes, 1);
    spool_read(reader->spool, sizeof head, texts, head.bytes);
    if (hash_bytes(head.seed, texts, head.bytes) != head.sum)
        log_wrong(reader, 0, "the checksum of the head is wrong: it is damaged");
    struct decoder from = {.at = texts, .end = texts + head.bytes};
    const char *machine = text_next(&from), *hash = text_next(&from), *version = text_next(&from);
    const char *bench = text_next(&from);
    if (!machine || !hash || !version || !bench)
        log_wrong(reader, 0, "the head is wrong");
    if (strcmp(hash, kb_topology_hash))
        log_wrong(reader, 0, arena_printf("this op log is of the machine %s, topology %s; this simulator is of %s, %s",
                                          machine, hash, kb_machine_name, kb_topology_hash));
    reader->place = sizeof head + head.bytes;
    return (struct log_head){bench, head.seed};
}
