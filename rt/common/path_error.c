/* path_error.c: of a file that cannot be opened, why, and the nearest name that is there; two paths of one file. */
#include "path_error.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena.h"
#include "diag.h"

enum { NAMES_MOST = 4096 };                             /* of a folder, that are looked at */

/* The nearest of the names in a folder, or NULL. */
static const char *nearest_in(const char *folder, const char *name)
{
    const char **names = NULL;
    size_t count = 0;
    DIR *entries = opendir(folder);
    if (!entries)
        return NULL;
    for (const struct dirent *entry; count < NAMES_MOST && (entry = readdir(entries));)
        if (*entry->d_name != '.') {
            names = arena_grow(names, count, sizeof *names);
            names[count++] = arena_printf("%s", entry->d_name);
        }
    closedir(entries);
    return nearest_name(name, names, count);
}

static const char *current_folder(void)
{
    char *folder = getcwd(NULL, 0);
    const char *kept = folder ? arena_printf("%s", folder) : "which cannot be named";
    free(folder);
    return kept;
}

static const char *missing(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *parent = slash ? arena_text(path, (size_t)(slash + 1 - path)) : "";
    const char *name = slash ? slash + 1 : path, *near = nearest_in(*parent ? parent : ".", name);
    if (near)
        return arena_printf("did you mean '%s%s'?", parent, near);
    if (*parent && access(parent, F_OK) != 0)
        return arena_printf("there is no folder %s", parent);
    if (*path == '/')
        return "check its name";
    return arena_printf("check its name; a path begins at the current folder, %s", current_folder());
}

const char *path_error(const char *path)
{
    int error = errno;
    const char *what = !*path ? "the path is empty; name a file"
                     : error == ENOENT ? missing(path)
                     : error == EISDIR ? "name a file in it"
                     : error == EACCES ? "check its permissions and those of its folders"
                     : NULL;
    errno = error;
    return what ? arena_printf("%s; %s", strerror(error), what) : strerror(error);
}

bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
