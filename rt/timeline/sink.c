/* sink.c: pieces are collected in a buffer, which zlib compresses. */
#include "sink.h"

#include <stdbool.h>
#include <string.h>
#include <zlib.h>

#include "common/arena.h"
#include "common/fail.h"

enum { BUFFER_BYTES = 1 << 17, GZIP_FORMAT = 15 + 16, GZIP_MEMORY = 8 };

struct sink sink_open(const char *path)
{
    struct sink sink = {.output = output_open(path), .bytes = arena_alloc(BUFFER_BYTES, 1), .room = BUFFER_BYTES};
    size_t length = strlen(path);
    if (length < 3 || strcmp(path + length - 3, ".gz"))
        return sink;
    sink.gzip = arena_alloc(1, sizeof *sink.gzip);
    if (deflateInit2(sink.gzip, Z_BEST_SPEED, Z_DEFLATED, GZIP_FORMAT, GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        die("no memory to compress %s", path);
    return sink;
}

/* An error of fwrite is found when the file is closed. */
static void compress_all(struct sink *sink, int flush)
{
    unsigned char out[1 << 15];
    int status;
    do {
        sink->gzip->next_out = out;
        sink->gzip->avail_out = sizeof out;
        status = deflate(sink->gzip, flush);
        fwrite(out, 1, sizeof out - sink->gzip->avail_out, sink->output.file);
    } while (flush == Z_FINISH ? status != Z_STREAM_END : !sink->gzip->avail_out);
}

static void flush(struct sink *sink, bool last)
{
    if (sink->gzip) {
        sink->gzip->next_in = sink->bytes;
        sink->gzip->avail_in = (unsigned)sink->count;
        compress_all(sink, last ? Z_FINISH : Z_NO_FLUSH);
    } else {
        fwrite(sink->bytes, 1, sink->count, sink->output.file);
    }
    sink->count = 0;
}

void sink_make_room(struct sink *sink, size_t kept, size_t added)
{
    unsigned char *from = sink->bytes + sink->count;
    flush(sink, false);
    if (kept + added > sink->room) {
        unsigned char *larger = arena_alloc(2 * (kept + added), 1);
        memcpy(larger, from, kept);
        sink->bytes = larger;
        sink->room = 2 * (kept + added);
    } else {
        memmove(sink->bytes, from, kept);
    }
}

void sink_write(struct sink *sink, const void *bytes, size_t count)
{
    memcpy(sink_room(sink, 0, count), bytes, count);
    sink->count += count;
}

void sink_close(struct sink *sink)
{
    flush(sink, true);
    if (sink->gzip)
        deflateEnd(sink->gzip);
    output_close(&sink->output);
}
