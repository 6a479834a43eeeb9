/* reads.c: what the compiler reads of a user's file: that file and all that it includes, as one hash.
 *
 * The compiler is asked once what a file includes; while the files that it found then hold what they held, it is not
 * asked again. Where they lie does not count. */
#include <stdio.h>
#include <string.h>

#include "../rt/common/arena.h"
#include "cache.h"
#include "hash.h"
#include "making.h"
#include "out.h"

static void hash_words(struct hash *hash, const struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        hash_text(hash, words->word[i]);
}

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

const char *content_of_user(struct making *making, struct unit *unit, bool ask)
{
    unit->read_name = memo_name(making, unit);
    const char *read = recall_what_it_reads(unit);
    if (!read && ask)
        read = ask_what_it_reads(making, unit);
    if (!read)
        return NULL;
    struct hash *hash = hash_begin();
    hash_file(hash, unit->path);
    hash_text(hash, read);
    return hash_end(hash);
}
