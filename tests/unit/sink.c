/* sink.c: what is written to a sink is in its file, compressed or not, whatever the sizes of its pieces. */
#include "timeline/sink.h"

#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "tap.h"

enum { BYTES = 1 << 21, PIECE_MOST = 1 << 19 };

static unsigned char bytes[BYTES], back[BYTES + 1];

/* Random bytes, which compression makes no smaller. */
static void fill(void)
{
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)below(256);
}

/* Writes all bytes; some in the room of the sink. */
static void write_pieces(const char *path)
{
    struct sink sink = sink_open(path);
    for (size_t at = 0; at < BYTES;) {
        size_t most = below(8) ? 100 : PIECE_MOST, count = 1 + below(most);
        count = count < BYTES - at ? count : BYTES - at;
        if (below(2)) {
            sink_write(&sink, bytes + at, count);
        } else {
            memcpy(sink_room(&sink, count), bytes + at, count);
            sink.count += count;
        }
        at += count;
        if (below(2))
            sink_empty(&sink);
    }
    sink_close(&sink);
}

/* Whether a command, such as "cat", prints all bytes from a file. */
static bool prints(const char *command, const char *path)
{
    FILE *from = popen(arena_printf("%s '%s'", command, path), "r");
    size_t count = from ? fread(back, 1, sizeof back, from) : 0;
    return from && !pclose(from) && count == BYTES && !memcmp(back, bytes, BYTES);
}

int main(void)
{
    const char *folder = getenv("SCRATCH"), *names[] = {"sink", "sink.gz"}, *commands[] = {"cat", "gzip -dc"};
    fill();
    for (unsigned i = 0; i < 2; i++) {
        const char *path = arena_printf("%s/%s", folder ? folder : ".", names[i]);
        write_pieces(path);
        expect(prints(commands[i], path), "%s has all bytes", names[i]);
    }
    return tests_end();
}
