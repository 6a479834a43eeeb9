/* array.c: memory that benches ask for: theirs until the run ends. */
#include "array.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "host/host_program.h"
#include "kb/host.h"
#include "common/diag.h"

struct array {
    struct array *older;
    _Alignas(max_align_t) char bytes[];
};

static struct array *arrays;

void *kb_array_at(uint64_t count, size_t size, const char *file, uint32_t line)
{
    size_t bytes;
    host_only("kb_array", file, line);
    struct array *array = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes) && !__builtin_add_overflow(bytes, sizeof *array, &bytes))
        array = calloc(1, bytes);
    if (!array)
        die("%s:%u: kb_array: no memory for %" PRIu64 " elements of %zu bytes", file, line, count, size);
    array->older = arrays;
    arrays = array;
    return array->bytes;
}

void arrays_reset(void)
{
    while (arrays) {
        struct array *older = arrays->older;
        free(arrays);
        arrays = older;
    }
}
