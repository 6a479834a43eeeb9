/* output.c: kbgen's output files: each appears complete or not at all.
 *
 * Each is written in a temporary folder beside its place, on the same file system, and renamed. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/fail.h"
#include "../../rt/common/temporary.h"

static const char *made(const char *path)
{
    temporary_add(path);
    return path;
}

bool make_parents(const char *path)
{
    char *folder = arena_printf("%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return true;
}

const char *temporary_folder(const char *path)
{
    if (!make_parents(path))
        die("make the folder of %s:", path);
    for (unsigned i = 0;; i++) {
        const char *folder = arena_printf("%s.%ld-%u.tmp", path, (long)getpid(), i);
        if (mkdir(folder, 0777) == 0)
            return made(folder);
        if (errno != EEXIST)
            die("make the folder %s:", folder);
    }
}

const char *temporary(const char *folder, const char *name)
{
    return made(arena_printf("%s/%s", folder, name));
}

void out_check_file(const char *path, const char *input)
{
    struct stat out, in;
    if (lstat(path, &out) != 0)
        return;
    if (S_ISDIR(out.st_mode))
        usage_error("%s is a folder; -o names another place", path);
    if (!S_ISREG(out.st_mode))
        usage_error("%s is no regular file; -o names another place", path);
    if (stat(input, &in) == 0 && out.st_dev == in.st_dev && out.st_ino == in.st_ino)
        usage_error("%s would be overwritten; -o names another place", input);
}

void out_check_folder(const char *path)
{
    struct stat out;
    if (stat(path, &out) == 0 && !S_ISDIR(out.st_mode))
        usage_error("%s is no folder; -o names another place", path);
}

static void write_as(const char *path, mode_t mode, const char *text, size_t length)
{
    int number = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    FILE *file = number < 0 ? NULL : fdopen(number, "w");
    if (!file)
        die("write %s:", path);
    if (fwrite(text, 1, length, file) != length || fclose(file) != 0)
        die("write %s:", path);
}

void write_file(const char *path, const char *text, size_t length)
{
    write_as(path, 0666, text, length);
}

void write_program(const char *path, const char *bytes, size_t length)
{
    write_as(path, 0777, bytes, length);
}

void move_into_place(const char *from, const char *to)
{
    if (rename(from, to) != 0)
        die("rename %s to %s:", from, to);
}

static bool holds(const char *path, const struct emitted *file)
{
    size_t length;
    const char *text = read_file(path, &length);
    return text && length == file->length && !memcmp(text, file->text, length);
}

void write_emission(const char *path, const struct emission *emission)
{
    const char **made = arena_alloc(emission->count, sizeof *made), *folder = NULL;
    for (size_t i = 0; i < emission->count; i++) {
        const struct emitted *file = &emission->files[i];
        if (holds(arena_printf("%s/%s", path, file->name), file))
            continue;
        if (!folder)
            folder = temporary_folder(path);
        made[i] = temporary(folder, file->name);
        write_file(made[i], file->text, file->length);
    }
    if (!folder || rename(folder, path) == 0)
        return;
    if (errno != ENOTEMPTY && errno != EEXIST)
        die("rename %s to %s:", folder, path);
    for (size_t i = 0; i < emission->count; i++)
        if (made[i])
            move_into_place(made[i], arena_printf("%s/%s", path, emission->files[i].name));
}
