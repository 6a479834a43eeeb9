/* log.h: the op log as bytes: a head, if it has a file, and blocks of records, each with a checksum.
 *
 * In memory up to a limit, beyond that in a temporary file; or in a file of the user's, for another process to read. */
#ifndef KB_LOG_H
#define KB_LOG_H

#include "record.h"
#include "spool.h"

/* Most bytes in memory. Before the start. */
extern uint64_t log_memory_bytes;

/* Whether records go to a file of the user's. */
extern bool log_filed;

/* Has records go to a file ("-" is none). A path that cannot be written is an error of the user's, status 2. Before
 * the start. */
void log_open(const char *path);

/* Completes the file, which gets its name only now; `good`: the run ended well. No file: nothing. */
void log_close(bool good);

/* ---- writing */

void log_op(const struct op *op);
void log_services(const struct services *services);
void log_tile(const struct tile_stage *tile);
void log_content(const struct content *content);

/* What is written from here on is what readers get; what came before goes if it has no file. */
void log_begin_interval(void);

/* The next tensor from number `from` on that records name; NULL: there is none. */
const struct tensor *log_tensor(uint64_t from);

/* Nothing was written. */
void log_reset(void);

/* ---- reading */

struct log_reader {
    const char *path;                                   /* of a file that is read; NULL: this run's */
    struct spool *spool;
    struct names *names;
    uint64_t place, end;                                /* of the next block; of all bytes */
    uint64_t block_place;                               /* of the one that is read */
    uint8_t *block;
    size_t room;
    struct unpacking from;
    struct record_state state;
    bool ended;                                         /* has read the record of kind end */
};

/* Begins at the interval's start. Nothing is to be written while somebody reads. */
void log_read(struct log_reader *reader);

/* What the head of a file says. */
struct log_head {
    const char *bench;
    uint64_t seed;
};

/* Opens a file, at its start. What is no op log, or one of another version or machine, is an error of the input, as is
 * what later turns out to be damaged: status 2. */
struct log_head log_read_file(struct log_reader *reader, const char *path);

/* The next record; false: that was the last, and the reader is done. The caller frees an operation. */
bool log_next(struct log_reader *reader, struct record *record);

#endif
