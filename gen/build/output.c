/* output.c: kbgen's output files: each appears complete or not at all.
 *
 * Each is written in a temporary folder beside its place, on the same file system, and renamed. kbgen holds a lock on the
 * folder while it uses it, which ends with kbgen however it ends: a folder without one is a leftover. */
#include "output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/fail.h"
#include "../../rt/common/temporary.h"
#include "../words.h"
#include "process.h"
#include "trust.h"

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

/* ---- temporary folders: PATH.PID-NUMBER.tmp */

/* Opens a folder and locks it. Returns -1, with errno EWOULDBLOCK if another kbgen uses the folder or has removed it. */
static int lock_folder(const char *path)
{
    struct stat opened, there;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool locked = folder >= 0 && flock(folder, LOCK_EX | LOCK_NB) == 0;
    if (locked && fstat(folder, &opened) == 0 && lstat(path, &there) == 0 && opened.st_dev == there.st_dev
        && opened.st_ino == there.st_ino)
        return folder;
    int error = locked || folder < 0 ? EWOULDBLOCK : errno;
    if (folder >= 0)
        close(folder);
    errno = error;
    return -1;
}

/* Makes a temporary folder and locks it. Returns false, with errno EEXIST or EWOULDBLOCK, if another kbgen has it. */
static bool make_locked(const char *path, mode_t mode)
{
    sigset_t before = signals_hold();                   /* a signal ends kbgen before the folder is made, or removes it */
    bool done = mkdir(path, mode) == 0;
    if (done && lock_folder(path) < 0 && errno == EWOULDBLOCK)
        done = false;
    int error = errno;                                  /* any other: there are no locks here, and nothing is swept */
    if (done)
        made(path);
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return done;
}

/* Returns whether a file's name is that of a temporary folder for `name`. */
static bool is_temporary_of(const char *file, const char *name)
{
    static const char digits[] = "0123456789";
    size_t length = strlen(name);
    if (strncmp(file, name, length) || file[length] != '.')
        return false;
    const char *pid = file + length + 1, *number = pid + strspn(pid, digits) + 1;
    if (number == pid + 1 || number[-1] != '-')
        return false;
    const char *end = number + strspn(number, digits);
    return end > number && !strcmp(end, ".tmp");
}

/* Removes a folder and the files in it, but no folder in it. */
static void remove_folder(const char *path, int folder)
{
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);
    for (const struct dirent *entry; entries && (entry = readdir(entries));)
        unlinkat(folder, entry->d_name, 0);
    if (entries)
        closedir(entries);
    rmdir(path);
}

/* Removes this user's folders that killed kbgens left for a path; not where another user can have given such a name to
 * any folder of this user's. */
static void sweep(const char *path)
{
    const char *name = base_name(path), *parent = arena_printf("%.*s.", (int)(name - path), path);
    DIR *entries = opendir(parent);
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        if (!is_temporary_of(entry->d_name, name))
            continue;
        if (trust_refusal(dirfd(entries)))
            break;
        const char *left = arena_printf("%.*s%s", (int)(name - path), path, entry->d_name);
        struct stat status;
        int folder = lstat(left, &status) == 0 && status.st_uid == geteuid() ? lock_folder(left) : -1;
        if (folder < 0)
            continue;
        remove_folder(left, folder);
        close(folder);
    }
    if (entries)
        closedir(entries);
}

const char *temporary_folder(const char *path, bool private)
{
    if (!make_parents(path))
        die("make the folder of %s:", path);
    sweep(path);
    for (unsigned i = 0;; i++) {
        const char *folder = arena_printf("%s.%ld-%u.tmp", path, (long)getpid(), i);
        if (make_locked(folder, private ? 0700 : 0777))
            return folder;
        if (errno != EEXIST && errno != EWOULDBLOCK)
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
    const char *text = read_regular_file(path, &length);
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
            folder = temporary_folder(path, false);
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
