/* structure.c: what a simulator is made of, numbers apart, as one hash.
 *
 * Every input of compiler and linker counts by what it holds; where it lies does not, nor does it show in the result.
 * A user's file counts with all that it includes, which the compiler finds out once: while the files that it found then
 * hold what they held, it is not asked again. */
#include <stdio.h>
#include <string.h>

#include "../rt/text/base.h"
#include "../rt/text/diag.h"
#include "cache.h"
#include "hash.h"
#include "home.h"
#include "making.h"
#include "out.h"

static void hash_file(struct hash *hash, const char *path)
{
    size_t length;
    const char *text = read_file(path, &length);
    if (!text)
        die("read %s:", path);
    hash_text(hash, base_name(path));
    hash_add(hash, text, length);
}

static void hash_files(struct hash *hash, const struct words *files)
{
    for (size_t i = 0; i < files->count; i++)
        hash_file(hash, files->word[i]);
}

static void hash_words(struct hash *hash, const struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        hash_text(hash, words->word[i]);
}

/* ---- a user's file */

/* The hash of a file alone, or "none". */
static const char *hash_of_file(const char *path)
{
    size_t length;
    const char *text = read_file(path, &length);
    if (!text)
        return "none";
    struct hash *hash = hash_begin();
    hash_add(hash, text, length);
    return hash_end(hash);
}

/* Under this name stands what a file included when it held the same and was read with the same arguments. */
static const char *memo_name(const struct making *making, const struct unit *unit)
{
    struct job job = user_job(making, unit);
    struct hash *hash = hash_begin();
    hash_text(hash, making->tools.name);
    hash_text(hash, making->tools.identity);
    hash_words(hash, &job.words);
    hash_text(hash, job.input ? job.input : "");
    hash_file(hash, unit->path);
    return arena_printf("includes-%s", hash_end(hash));
}

/* The files of a rule for make, "sim.o: a.c b.h \", without its target; a blank within a name stands behind "\". */
static struct words files_of_rule(const char *rule)
{
    struct words files = {0};
    const char *text = strstr(rule, ": ");
    for (text = text ? text + 1 : ""; *text;) {
        text += strspn(text, " \n");
        if (!strncmp(text, "\\\n", 2)) {
            text += 2;
            continue;
        }
        char *name = arena_alloc(strlen(text) + 1, 1), *end = name;
        for (; *text && !strchr(" \n", *text); text++) {
            if (*text == '\\' && text[1] == ' ')
                text++;
            *end++ = *text;
        }
        if (end > name)
            words_add(&files, name);
    }
    return files;
}

/* What the compiler reads of a user's file, as a hash; leaves in the unit what to keep. */
static const char *ask_what_it_reads(struct making *making, struct unit *unit)
{
    struct job job = user_job(making, unit);
    const char *rule = temporary(making_folder(making), "included");
    static const char *const options[] = {"-E", "-P", "-MD", "-MF"};
    for (size_t i = 0; i < COUNT_OF(options); i++)
        words_add(&job.words, options[i]);
    words_add(&job.words, rule);
    size_t length, rule_length;
    const char *text = run_for_output(&job, &length), *said = read_file(rule, &rule_length);
    if (job.status != 0)
        refuse(&job, unit);
    struct hash *hash = hash_begin();
    hash_add(hash, text, length);
    struct words files = files_of_rule(said ? said : "");
    char *memo = "";
    for (size_t i = 0; i < files.count; i++)
        if (strcmp(files.word[i], "-")) {
            const char *held = hash_of_file(files.word[i]);
            hash_text(hash, held);
            memo = arena_printf("%s%s %s\n", memo, held, files.word[i]);
        }
    remove(rule);
    const char *read = hash_end(hash);
    if (files.count)
        unit->read_memo = arena_printf("%s\n%s", read, memo);
    return read;
}

/* The same from what was kept, or NULL: a file that it included is another one now. */
static const char *recall_what_it_reads(const struct unit *unit)
{
    size_t length;
    const char *memo = cache_find(unit->read_name, &length);
    if (!memo)
        return NULL;
    size_t end = strcspn(memo, "\n");
    const char *read = arena_text(memo, end), *line = memo + end;
    for (line += *line == '\n'; *line; line += end + (line[end] == '\n')) {
        end = strcspn(line, "\n");
        const char *blank = strchr(line, ' ');
        if (!blank || blank >= line + end)
            return NULL;
        const char *held = hash_of_file(arena_text(blank + 1, (size_t)(line + end - blank - 1)));
        if (strncmp(line, held, (size_t)(blank - line)) || held[blank - line])
            return NULL;
    }
    return read;
}

/* A user's file counts with all that it includes. */
static bool hash_user(struct hash *hash, struct making *making, struct unit *unit, bool ask)
{
    unit->read_name = memo_name(making, unit);
    const char *read = recall_what_it_reads(unit);
    if (!read && ask)
        read = ask_what_it_reads(making, unit);
    if (!read)
        return false;
    struct hash *own = hash_begin();
    hash_file(own, unit->path);
    hash_text(own, read);
    unit->content = hash_end(own);
    hash_text(hash, unit->content);
    return true;
}

/* ---- all of it */

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
    static const char *const folders[] = {"rt", "rt/kb", "rt/text"}, *const endings[] = {".h", ".def"};
    struct words headers = {0};
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        for (size_t j = 0; j < COUNT_OF(endings); j++) {
            const char *folder = arena_printf("%s/%s", home_sources(), folders[i]);
            words_of_folder(&headers, folder, endings[j], arena_printf("%s/", folder));
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
    for (size_t i = 0; known && i < making->unit_count; i++)
        known = hash_user(hash, making, &making->units[i], ask);
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
