/* log_form.h: what stands around the records of an op log. In the order of bytes of the machine that wrote it. */
#ifndef KB_LOG_FORM_H
#define KB_LOG_FORM_H

#include "base/hash.h"
#include "log.h"

#define LOG_MAGIC "kboplog"
enum { LOG_VERSION = 2, LOG_ORDER = 0x01020304, LOG_BLOCK_TAG = 0x6b6c6f62 };

/* At the start of a file; behind it `bytes` of texts, each with its 0: machine, topology hash, version, bench. */
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

static inline uint64_t log_block_sum(const struct log_block *block, const void *bytes)
{
    return hash_bytes(hash_bytes(block->bytes, &block->state, sizeof block->state), bytes, block->bytes);
}

/* Begins the file that is written, with its head; and ends it. */
void log_to_file(int fd, const void *head, size_t bytes);
void log_end(bool good);

/* An error of the file that is read, status 2; of this run's own records, it is ours. */
_Noreturn void log_wrong(const struct log_reader *reader, uint64_t place, const char *what);

#endif
