/* log.h: the op log as bytes: a head, if it has a file, and blocks of records, each with a checksum.
 *
 * In memory up to a limit, beyond that in a temporary file; or in a file that the user named, for another process to
 * read. */
#ifndef KB_LOG_H
#define KB_LOG_H

#include "record.h"
#include "spool.h"

/* Most bytes in memory. Set before the start. */
extern uint64_t log_memory_bytes;

/* Whether records go to a file that the user named. */
extern bool log_filed;

/* Begins that file for a run of a bench; before the start. A path that cannot be read again, or not be written, ends
 * the program with status 2. */
void log_open(const char *path, const char *bench);

/* Completes the file, which gets its name only now; `good`: the run ended well. Does nothing without a file. */
void log_close(bool good);

/* ---- writing */

void log_op(const struct op *op);
void log_services(const struct services *services);
void log_tile(const struct tile_stage *tile);
void log_reservation(const struct reservation *reservation);
void log_content(const struct content *content);

/* Readers get what is written from here on. Without a file, earlier records are discarded. */
void log_begin_interval(void);

/* The next tensor from number `from` on that records refer to; NULL if there is none. */
const struct tensor *log_tensor(uint64_t from);

/* Discards all records. */
void log_reset(void);

/* ---- reading */

struct log_reader {
    const char *path;                                   /* of the file that is read; NULL: this run's log */
    struct spool *spool;
    struct interned *interned;
    uint64_t place, end;                                /* of the next block; of all bytes */
    uint64_t block_place;                               /* of the block that is read */
    uint8_t *block;
    size_t capacity;                                    /* of `block` */
    struct decoder from;
    struct record_state state;
    bool ended;                                         /* has read the record of kind end */
};

/* Begins at the interval's start. Nothing may be written until the reader is done. */
void log_read(struct log_reader *reader);

/* What the head of a file says. */
struct log_head {
    const char *bench;
    uint64_t seed;
};

/* Opens a file, at its first block. A file that is no op log, or one of another version or machine, ends the program
 * with status 2, as does damage that is found later. */
struct log_head log_read_file(struct log_reader *reader, const char *path);

/* The next record; the caller frees an operation. Returns false at the end, when the reader is done. */
bool log_next(struct log_reader *reader, struct record *record);

#endif
