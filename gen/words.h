/* words.h: lists of strings: arguments of programs, names of files. */
#ifndef GEN_WORDS_H
#define GEN_WORDS_H

#include <stddef.h>

struct words {
    const char **word;
    size_t count;
};

void words_add(struct words *words, const char *word);
void words_add_all(struct words *words, const struct words *more);

/* Adds the words of a text, separated by blanks. */
void words_split(struct words *words, const char *text);

/* Adds the names of a folder's files with an ending, sorted, each after `prefix`. Dies if the folder cannot be read. */
void words_of_folder(struct words *words, const char *folder, const char *ending, const char *prefix);

/* The last part of a path. */
const char *base_name(const char *path);

#endif
