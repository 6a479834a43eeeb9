/* sink.c: pieces are collected in a buffer, which grows until it is emptied: pieces also come from the stacks of kernels,
 * which are too small to compress on. ISA-L compresses in a sixth of the time that zlib takes. At level 1
 * its table of what it has seen is small, which leaves the caches to the simulation, and files are 1 to 2.5 % larger than at
 * level 2; with large blocks, few tables of Huffman codes are made. */
#include "sink.h"

#include <dlfcn.h>
#include <isa-l/igzip_lib.h>
#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/fail.h"

enum { BUFFER_BYTES = 1 << 18, ROOM_BYTES = 2 * BUFFER_BYTES, LEVEL = 1, LEVEL_BYTES = ISAL_DEF_LVL1_EXTRA_LARGE };

struct compressor {
    struct isal_zstream stream;
    __typeof__(isal_deflate) *deflate;
};

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        die("the ISA-L of this system has no %s", name);
    return found;
}

static struct compressor *compressor_open(const char *path)
{
    void *library = dlopen("libisal.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        die("cannot load ISA-L, which compresses '%s' (%s): install libisal2, or name a file without .gz", path, dlerror());
    struct compressor *compressor = arena_alloc(1, sizeof *compressor);
    __typeof__(isal_deflate_init) *init = symbol(library, "isal_deflate_init");
    compressor->deflate = symbol(library, "isal_deflate");
    init(&compressor->stream);
    compressor->stream.gzip_flag = IGZIP_GZIP;
    compressor->stream.level = LEVEL;
    compressor->stream.level_buf = arena_alloc(LEVEL_BYTES, 1);
    compressor->stream.level_buf_size = LEVEL_BYTES;
    return compressor;
}

struct sink sink_open(const char *path)
{
    struct sink sink = {.output = output_open(path), .bytes = arena_alloc(ROOM_BYTES, 1), .room = ROOM_BYTES};
    size_t length = strlen(path);
    if (length >= 3 && !strcmp(path + length - 3, ".gz"))
        sink.compressor = compressor_open(path);
    return sink;
}

/* An error of fwrite is found when the file is closed. */
static void compress_all(struct compressor *compressor, FILE *file)
{
    unsigned char out[1 << 15];
    do {
        compressor->stream.next_out = out;
        compressor->stream.avail_out = sizeof out;
        if (compressor->deflate(&compressor->stream) != COMP_OK)
            die("ISA-L cannot compress");
        fwrite(out, 1, sizeof out - compressor->stream.avail_out, file);
    } while (!compressor->stream.avail_out);
}

static void flush(struct sink *sink, bool last)
{
    if (sink->compressor) {
        sink->compressor->stream.next_in = sink->bytes;
        sink->compressor->stream.avail_in = (uint32_t)sink->count;
        sink->compressor->stream.end_of_stream = last;
        compress_all(sink->compressor, sink->output.file);
    } else {
        fwrite(sink->bytes, 1, sink->count, sink->output.file);
    }
    sink->count = 0;
}

void sink_empty(struct sink *sink)
{
    if (sink->count >= BUFFER_BYTES)
        flush(sink, false);
}

void sink_make_room(struct sink *sink, size_t added)
{
    size_t room = 2 * (sink->count + added);
    unsigned char *larger = arena_alloc(room, 1);
    memcpy(larger, sink->bytes, sink->count);
    sink->bytes = larger;
    sink->room = room;
}

void sink_write(struct sink *sink, const void *bytes, size_t count)
{
    memcpy(sink_room(sink, count), bytes, count);
    sink->count += count;
}

void sink_close(struct sink *sink)
{
    flush(sink, true);
    output_close(&sink->output);
}
