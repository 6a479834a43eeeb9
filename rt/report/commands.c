/* commands.c: what results say of commands, beyond their lives: chunks of rows, which leave memory when they are full
 * of commands that are complete. */
#include "commands.h"

#include "machine/command.h"
#include "oplog/spool.h"
#include "common/arena.h"

enum { ROWS = 64, MEMORY_BYTES = 4 << 20 };

struct finished_chunk {
    struct finished *rows;                              /* NULL: in the spool */
    uint64_t place;                                     /* there */
    uint32_t complete;
};

bool finished_on;
double finished_work[DTYPES];

/* Room for a chunk, which is free. */
static union room {
    union room *next;
    struct finished rows[ROWS];
} *unused;

static struct spool spool = {.limit = MEMORY_BYTES, .what = "the rows of commands"};

static void chunk_add(struct finished_rows *rows)
{
    union room *room = unused ? unused : arena_alloc(1, sizeof *room);
    if (unused)
        unused = room->next;
    rows->chunk = arena_grow(rows->chunk, rows->chunks, sizeof *rows->chunk);
    rows->chunk[rows->chunks++] = (struct finished_chunk){.rows = room->rows};
}

void finished_submitted(struct finished_rows *rows, const struct command *command)
{
    if (!finished_on)
        return;
    if (command->number % ROWS == 0)
        chunk_add(rows);
    rows->chunk[command->number / ROWS].rows[command->number % ROWS] =
        (struct finished){command->submitted_ps, NOT_COMPLETE, command->ask.kind};
}

static void work_done(const struct request *ask)
{
    if (ask->kind == COMMAND_gemm || ask->kind == COMMAND_gemm_tiles)
        finished_work[ask->dtype] += 2.0 * (double)ask->m * (double)ask->k * (double)ask->n;
}

void finished_completed(struct finished_rows *rows, const struct command *command)
{
    work_done(&command->ask);
    if (!finished_on)
        return;
    struct finished_chunk *chunk = &rows->chunk[command->number / ROWS];
    chunk->rows[command->number % ROWS].complete_ps = command->complete_ps;
    if (++chunk->complete < ROWS)
        return;
    chunk->place = spool_append(&spool, chunk->rows, ROWS * sizeof *chunk->rows);
    union room *room = (union room *)chunk->rows;
    room->next = unused;
    unused = room;
    chunk->rows = NULL;
}

struct finished finished_row(const struct finished_rows *rows, uint32_t number)
{
    static struct finished read[ROWS];                  /* the chunk that was asked for last */
    static uint64_t place;
    const struct finished_chunk *chunk = &rows->chunk[number / ROWS];
    if (chunk->rows)
        return chunk->rows[number % ROWS];
    if (number % ROWS == 0 || place != chunk->place)
        spool_read(&spool, chunk->place, read, sizeof read);
    place = chunk->place;
    return read[number % ROWS];
}

void finished_reset(void)
{
    spool_clear(&spool);
    unused = NULL;                                      /* it is the arena's room, which goes back as well */
    for (unsigned dtype = 0; dtype < DTYPES; dtype++)
        finished_work[dtype] = 0;
}
