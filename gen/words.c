/* words.c: lists of strings. */
#include "words.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "../rt/common/arena.h"
#include "../rt/common/diag.h"

void words_add(struct words *words, const char *word)
{
    words->word = arena_grow(words->word, words->count, sizeof *words->word);
    words->word[words->count++] = word;
}

void words_add_all(struct words *words, const struct words *more)
{
    for (size_t i = 0; i < more->count; i++)
        words_add(words, more->word[i]);
}

void words_split(struct words *words, const char *text)
{
    static const char blanks[] = " \t\n";
    for (text += strspn(text, blanks); *text; text += strspn(text, blanks)) {
        size_t length = strcspn(text, blanks);
        words_add(words, arena_text(text, length));
        text += length;
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void words_of_folder(struct words *words, const char *folder, const char *ending, const char *prefix)
{
    DIR *entries = opendir(folder);
    if (!entries)
        die("read the folder %s:", folder);
    size_t first = words->count, end = strlen(ending);
    for (const struct dirent *entry; (entry = readdir(entries));) {
        size_t length = strlen(entry->d_name);
        if (*entry->d_name != '.' && length > end && !strcmp(entry->d_name + length - end, ending))
            words_add(words, arena_printf("%s%s", prefix, entry->d_name));
    }
    closedir(entries);
    if (words->count > first)
        qsort(words->word + first, words->count - first, sizeof *words->word, by_text);
}

const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
