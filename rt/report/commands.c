/* commands.c: what results say of commands, beyond their lives: chunks of rows, which leave memory when they are full
 * of commands that are complete. */
#include "commands.h"

#include "common/arena.h"
#include "common/array.h"
#include "launch/kernel.h"
#include "machine/pe.h"
#include "oplog/spool.h"

enum { ROWS = 64, MEMORY_BYTES = 4 << 20 };

struct finished_chunk {
    struct finished *rows;                              /* NULL: in the spool */
    uint64_t place;                                     /* there */
    uint32_t complete;
};

/* The rows of one kernel on one PE, by number of the command. */
struct finished_rows {
    struct finished_chunk *chunk;
    uint32_t chunks;
};

bool finished_on;
static struct ARRAY(struct finished_rows) kernels;      /* by serial number */
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

static struct finished_rows *rows_of(const struct tl *tl)
{
    while (kernels.count <= tl->serial)
        *array_add(&kernels) = (struct finished_rows){0};
    return &kernels.at[tl->serial];
}

static void command_submitted(const struct command *command)
{
    if (!finished_on)
        return;
    struct finished_rows *rows = rows_of(command->pe->kernel);
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

static void command_completed(const struct command *command)
{
    work_done(&command->ask);
    if (!finished_on)
        return;
    struct finished_chunk *chunk = &rows_of(command->pe->kernel)->chunk[command->number / ROWS];
    chunk->rows[command->number % ROWS].complete_ps = command->complete_ps;
    if (++chunk->complete < ROWS)
        return;
    chunk->place = spool_append(&spool, chunk->rows, ROWS * sizeof *chunk->rows);
    union room *room = (union room *)chunk->rows;
    room->next = unused;
    unused = room;
    chunk->rows = NULL;
}

struct finished finished_row(const struct tl *tl, uint32_t number)
{
    static struct finished read[ROWS];                  /* the chunk that was asked for last */
    static uint64_t place;
    const struct finished_chunk *chunk = &rows_of(tl)->chunk[number / ROWS];
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
    array_free(&kernels);
    unused = NULL;                                      /* it is the arena's room, which goes back as well */
    for (unsigned dtype = 0; dtype < DTYPES; dtype++)
        finished_work[dtype] = 0;
}

struct observer commands_observer = {
    .name = "rows of commands",
    .command_submitted = command_submitted,
    .command_completed = command_completed,
};
