/* sink.h: an output file of many small pieces, which is compressed if its name says so. */
#ifndef KB_SINK_H
#define KB_SINK_H

#include <stddef.h>

#include "base/output.h"

struct sink {
    struct output output;
    struct compressor *compressor;                      /* NULL: not compressed */
    unsigned char *bytes;                               /* a buffer: `count` bytes to be written, then free room */
    size_t count, room;
};

/* Opens a file as output_open does. A name that ends in ".gz" is that of a file in the format of gzip. */
struct sink sink_open(const char *path);

/* Writes the buffer to the file if that is worth while. To be called now and then, not on the stack of a kernel. */
void sink_empty(struct sink *sink);

/* Enlarges the buffer until there is room for `added` bytes. */
void sink_make_room(struct sink *sink, size_t added);

/* Returns the address of the free room, of at least `added` bytes. What is in it becomes part of the file when `count` is
 * raised. */
static inline unsigned char *sink_room(struct sink *sink, size_t added)
{
    if (added > sink->room - sink->count)
        sink_make_room(sink, added);
    return sink->bytes + sink->count;
}

void sink_write(struct sink *sink, const void *bytes, size_t count);

/* Completes the file. Dies if a write has failed. */
void sink_close(struct sink *sink);

#endif
