/* depfile.c: what a simulator was made of, as make and ninja read it. */
#include "depfile.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "output.h"

/* A path as a rule has it: blanks and '#' behind a backslash, '$' twice. */
static const char *quoted(const char *path)
{
    char *text = arena_alloc(2 * strlen(path) + 1, 1), *end = text;
    for (; *path; path++) {
        if (strchr(" #", *path))
            *end++ = '\\';
        else if (*path == '$')
            *end++ = '$';
        *end++ = *path;
    }
    return text;
}

static bool is_repeated(const struct words *files, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (!strcmp(files->word[i], files->word[index]))
            return true;
    return false;
}

void depfile_write(const char *path, const char *simulator, const struct words *files)
{
    const char *rule = arena_printf("%s:", quoted(simulator)), *others = "";
    for (size_t i = 0; i < files->count; i++) {
        if (is_repeated(files, i))
            continue;
        const char *file = quoted(files->word[i]);
        rule = arena_printf("%s \\\n  %s", rule, file);
        others = arena_printf("%s\n%s:\n", others, file);
    }
    const char *text = arena_printf("%s\n%s", rule, others);
    const char *written = temporary(temporary_folder(path, true), "rule.d");
    write_file(written, text, strlen(text));
    move_into_place(written, path);
    if (utimensat(AT_FDCWD, simulator, NULL, 0))
        die("cannot give %s the present time:", simulator);
}
