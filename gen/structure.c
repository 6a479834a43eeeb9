/* structure.c: what a simulator is made of, numbers apart, as one hash.
 *
 * Every input of compiler and linker counts by what it holds; where it lies does not, nor does it show in the result.
 * A user's file counts with all that it includes (reads.c). */
#include <string.h>

#include "../rt/common/arena.h"
#include "cache.h"
#include "hash.h"
#include "home.h"
#include "making.h"

static void hash_files(struct hash *hash, const struct words *files)
{
    for (size_t i = 0; i < files->count; i++)
        hash_file(hash, files->word[i]);
}

static void hash_numbers(struct hash *hash, const struct numbers *numbers)
{
    hash_file(hash, arena_printf("%s/templates/" NUMBERS_FILE ".in", home_sources()));
    for (size_t i = 0; i < NUMBERS; i++) {
        hash_text(hash, numbers->list[i].symbol);
        hash_number(hash, numbers->list[i].length);
    }
}

static void hash_emission(struct hash *hash, const struct emission *emission)
{
    for (size_t i = 0; i < emission->count; i++) {
        const struct emitted *file = &emission->files[i];
        hash_text(hash, file->name);
        if (strcmp(file->name, NUMBERS_FILE))
            hash_text(hash, file->code);
    }
    hash_numbers(hash, &emission->numbers);
}

static void hash_headers(struct hash *hash)
{
    static const char *const endings[] = {".h", ".def"};
    const char *runtime = arena_printf("%s/rt", home_sources());
    struct words rooms = {0}, headers = {0};
    words_of_folder(&rooms, runtime, "", "");
    for (size_t i = 0; i < rooms.count; i++)
        for (size_t j = 0; j < COUNT_OF(endings); j++) {
            const char *room = arena_printf("%s/%s", runtime, rooms.word[i]);
            words_of_folder(&headers, room, endings[j], arena_printf("%s/", room));
        }
    hash_files(hash, &headers);
}

const char *content_of(const struct emission *emission, const struct emitted *file)
{
    struct hash *hash = hash_begin();
    hash_text(hash, file->name);
    hash_text(hash, file->code);
    for (size_t i = 0; i < emission->count; i++)
        if (strstr(file->code, arena_printf("#include \"%s\"\n", emission->files[i].name)))
            hash_text(hash, emission->files[i].code);
    return hash_end(hash);
}

const char *structure_of_home(void)
{
    static const char *known;
    if (known)
        return known;
    struct hash *hash = hash_begin();
    struct words objects = home_objects();
    hash_text(hash, home_identity());
    hash_headers(hash);
    hash_files(hash, &objects);
    return known = hash_end(hash);
}

const char *structure_of(struct making *making, bool ask)
{
    if (!toolchain_find(&making->tools, &making->asked, ask))
        return NULL;
    struct hash *hash = hash_begin();
    hash_text(hash, making->tools.identity);
    for (size_t i = 1; i < making->compiler.count; i++)
        hash_text(hash, making->compiler.word[i]);
    hash_emission(hash, making->emission);
    hash_text(hash, structure_of_home());
    bool known = true;
    for (size_t i = 0; known && i < making->unit_count; i++) {
        struct unit *unit = &making->units[i];
        unit->content = content_of_user(making, unit, ask);
        known = unit->content;
        if (known)
            hash_text(hash, unit->content);
    }
    const char *structure = hash_end(hash);
    return known ? structure : NULL;
}

void structure_keep(const struct making *making)
{
    if (making->tools.memo)
        cache_keep(making->tools.name, making->tools.memo, strlen(making->tools.memo));
    for (size_t i = 0; i < making->unit_count; i++) {
        const struct unit *unit = &making->units[i];
        if (unit->read_memo)
            cache_keep(unit->read_name, unit->read_memo, strlen(unit->read_memo));
    }
}
