/* packed.c: unpacks a gzip file that lies in memory. */
#include "packed.h"

#include <stdlib.h>
#include <zlib.h>

#include "common/fail.h"

char *unpack(const unsigned char *begin, const unsigned char *end, const char *what)
{
    const unsigned char *size = end - 4;                /* the file ends with the length of its content, lowest byte first */
    uInt length = size[0] | (uInt)size[1] << 8 | (uInt)size[2] << 16 | (uInt)size[3] << 24;
    enum { GZIP_FORMAT = 16 + MAX_WBITS };
    z_stream gzip = {.next_in = (z_const Bytef *)begin, .avail_in = (uInt)(end - begin)};
    char *text = calloc(length + 1, 1);
    gzip.next_out = (Bytef *)text;
    gzip.avail_out = length;
    if (!text || inflateInit2(&gzip, GZIP_FORMAT) != Z_OK || inflate(&gzip, Z_FINISH) != Z_STREAM_END)
        die("internal error: zlib cannot unpack %s", what);
    inflateEnd(&gzip);
    return text;
}
