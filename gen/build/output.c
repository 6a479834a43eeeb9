/* output.c: kbgen's output files: each appears complete or not at all.
 *
 * Each is written in a temporary folder beside its place, on the same file system, and renamed. A list holds the names
 * of all temporary files, in a form that a signal handler can walk. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "process.h"

/* Newest first, so files come before their folder. A node is complete before the list leads to it. */
static struct made {
    const char *path;
    struct made *next;
} *volatile newest;

/* Calls only async-signal-safe functions. */
static void remove_made(void)
{
    for (const struct made *made = newest; made; made = made->next)
        if (unlink(made->path) != 0)
            rmdir(made->path);
}

static void remove_and_die(int signal)
{
    processes_stop();
    remove_made();
    raise(signal);                                      /* the default action applies again (SA_RESETHAND) */
}

void out_watch_end(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct sigaction action = {.sa_handler = remove_and_die, .sa_flags = SA_RESETHAND};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        struct sigaction old;
        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(ends[i], &action, NULL);
    }
    atexit(remove_made);
}

static const char *remember(const char *path)
{
    struct made *made = arena_alloc(1, sizeof *made);
    *made = (struct made){path, newest};
    newest = made;
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
            return remember(folder);
        if (errno != EEXIST)
            die("make the folder %s:", folder);
    }
}

const char *temporary(const char *folder, const char *name)
{
    return remember(arena_printf("%s/%s", folder, name));
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
