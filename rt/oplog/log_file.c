/* log_file.c: op logs in files of the user's: their heads. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/bench.h"
#include "machine/emitted.h"
#include "log.h"
#include "log_form.h"
#include "base/output.h"
#include "common/arena.h"
#include "common/diag.h"

enum { MOST_TEXT_BYTES = 1 << 20 };

/* ---- writing */

static struct output output;

void log_open(const char *path)
{
    struct stat status;
    const char *texts[] = {kb_machine_name, kb_topology_hash, kb_version, bench_current->name};
    struct packed packed = {0};
    if (!strcmp(path, "-") || (!stat(path, &status) && !S_ISREG(status.st_mode)))
        usage_error("--oplog %s: an op log is read again, so it needs a file", path);
    output = output_open(path);
    struct log_file_head head = {.magic = LOG_MAGIC, .version = LOG_VERSION, .order = LOG_ORDER, .seed = fill_seed};
    pack_bytes(&packed, &head, sizeof head);
    for (unsigned i = 0; i < COUNT_OF(texts); i++)
        pack_bytes(&packed, texts[i], strlen(texts[i]) + 1);
    head.bytes = packed.count - sizeof head;
    head.sum = hash_bytes(head.seed, packed.bytes + sizeof head, head.bytes);
    memcpy(packed.bytes, &head, sizeof head);
    log_to_file(fileno(output.file), packed.bytes, packed.count);
    free(packed.bytes);
}

void log_close(bool good)
{
    if (!log_filed)
        return;
    log_end(good);
    output_close(&output);
}

/* ---- reading */

/* The next text of the head; NULL: it is not 0-terminated. */
static const char *text_next(struct unpacking *from)
{
    size_t length = strnlen((const char *)from->at, (size_t)(from->end - from->at));
    const char *text = unpack_bytes(from, length + 1);
    return text ? arena_text(text, length) : NULL;
}

static void open_file(struct log_reader *reader, const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status))
        usage_error("cannot read %s:", path);
    if (!S_ISREG(status.st_mode))
        usage_error("%s is no file", path);
    struct spool *spool = calloc(1, sizeof *spool);
    struct names *names = arena_alloc(1, sizeof *names);
    if (!spool)
        die("no memory to read %s:", path);
    spool_use(spool, fd);
    spool->what = path;
    spool->bytes = spool->filed = (uint64_t)status.st_size;
    *reader = (struct log_reader){.path = path, .spool = spool, .names = names, .end = spool->bytes};
}

static void check_machine(const struct log_reader *reader, const char *machine, const char *hash)
{
    if (strcmp(hash, kb_topology_hash))
        log_wrong(reader, 0, arena_printf("this op log is of the machine %s, topology %s; this simulator is of %s, %s",
                                      machine, hash, kb_machine_name, kb_topology_hash));
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
    struct unpacking from = {.at = texts, .end = texts + head.bytes};
    const char *machine = text_next(&from), *hash = text_next(&from), *version = text_next(&from);
    const char *bench = text_next(&from);
    if (!machine || !hash || !version || !bench)
        log_wrong(reader, 0, "the head is wrong");
    check_machine(reader, machine, hash);
    reader->place = sizeof head + head.bytes;
    return (struct log_head){bench, head.seed};
}
