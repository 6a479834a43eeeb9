/* object.c: what the compiler makes of one file is kept for simulators of other structures.
 *
 * It follows from the file, what it includes, the compiler and its arguments, and holds no folder's name. The numbers
 * are not kept: they differ wherever a compiler is needed. */
#include <string.h>

#include "../rt/common/arena.h"
#include "cache.h"
#include "hash.h"
#include "making.h"
#include "out.h"

bool unit_is_numbers(const struct unit *unit)
{
    return !unit->users && !strcmp(unit->name, NUMBERS_FILE);
}

/* The name under which what becomes of a file is kept, whatever other files the simulator has. */
static const char *object_name(const struct making *making, const struct unit *unit)
{
    struct hash *hash = hash_begin();
    hash_text(hash, making->tools.identity);
    hash_text(hash, structure_of_home());
    for (size_t i = 1; i < making->compiler.count; i++)
        hash_text(hash, making->compiler.word[i]);
    hash_text(hash, unit->content);
    return arena_printf("object-%s", hash_end(hash));
}

bool object_find(const struct making *making, const struct unit *unit)
{
    size_t length;
    const char *bytes = unit_is_numbers(unit) ? NULL : cache_find(object_name(making, unit), &length);
    if (bytes)
        write_file(unit->object, bytes, length);
    return bytes;
}

void object_keep(const struct making *making, const struct unit *unit)
{
    size_t length;
    const char *bytes = unit_is_numbers(unit) ? NULL : read_file(unit->object, &length);
    if (bytes)
        cache_keep(object_name(making, unit), bytes, length);
}
