/* log_read.c: the op log as bytes: reading, of this run or of a file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "log_form.h"
#include "machine/tiling.h"
#include "common/diag.h"

enum { MOST_BLOCK_BYTES = 1 << 24 };

_Noreturn void log_wrong(const struct log_reader *reader, uint64_t place, const char *what)
{
    if (!reader->path)
        die("the op log cannot be read back: at byte %" PRIu64 " %s", place, what);
    fprintf(stderr, "%s: byte %" PRIu64 ": error: %s\n", reader->path, place, what);
    exit(2);
}

/* ---- blocks */

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
    if (head.bytes > reader->room) {
        free(reader->block);
        reader->room = 2 * (size_t)head.bytes;
        reader->block = malloc(reader->room);
        if (!reader->block)
            die("no memory for a block of %zu bytes of the op log:", reader->room);
    }
    spool_read(reader->spool, reader->place + sizeof head, reader->block, head.bytes);
    if (log_block_sum(&head, reader->block) != head.sum)
        log_wrong(reader, reader->place, "the checksum of the block is wrong: it is damaged");
    reader->place += sizeof head + head.bytes;
    reader->from = (struct unpacking){.at = reader->block, .end = reader->block + head.bytes};
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

/* The next record; false: there is none. */
static bool record_next(struct log_reader *reader, struct record *record)
{
    while (!record_read(&reader->from, reader->names, &reader->state, record)) {
        if (reader->from.bad)
            log_wrong(reader, reader->block_place, "a record of the block is wrong");
        if (!block_next(reader))
            return false;
    }
    return true;
}

/* The bytes that a fill was given follow it. */
static void read_given(struct log_reader *reader, const struct fill *fill)
{
    uint64_t bytes = fill->tensor->elements * dtype_bytes[fill->tensor->dtype];
    struct record piece;
    for (uint64_t done = 0, count; done < bytes; done += count) {
        if (!record_next(reader, &piece) || piece.kind != RECORD_bytes)
            log_wrong(reader, reader->block_place, "the bytes of a write are missing");
        count = (uint64_t)(piece.bytes.end - piece.bytes.at);
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
    if (record->kind == RECORD_op && record->op->kind == OPKIND_memory && record->op->pe == OP_OF_HOST
        && record->op->fill.kind == KB_GIVEN)
        read_given(reader, &record->op->fill);
    reader->ended |= record->kind == RECORD_end;
    return true;
}
