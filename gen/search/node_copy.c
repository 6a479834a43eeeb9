/* node_copy.c: copies on a disk of this node, each made by one task under a lock. */
#include "node_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "../../rt/common/fail.h"

enum { PART_MOST = 1 << 30 };

/* A folder that others can write to could have other programs under these names. */
static bool is_own(const char *folder)
{
    struct stat status;
    return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() && !(status.st_mode & 022);
}

const char *node_copies_begin(void)
{
    const char *base = getenv("SLURM_TMPDIR");
    if (!base || !*base)
        base = getenv("TMPDIR");
    if (!base || !*base)
        usage_error("--node-copies: neither SLURM_TMPDIR nor TMPDIR is set");
    const char *folder = arena_printf("%s/kbgen-%u", base, (unsigned)geteuid());
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        usage_error("--node-copies: cannot make folder %s: %s", folder, strerror(errno));
    if (!is_own(folder))
        usage_error("--node-copies: %s is no folder that only this user can write to", folder);
    return folder;
}

/* Copies the bytes of a file. Returns false if not all could be written. */
static bool copy_bytes(int from, int to)
{
    ssize_t count;
    while ((count = sendfile(to, from, NULL, PART_MOST)) > 0)
        continue;
    return count == 0;
}

/* Makes a file with the bytes and the mode of another one, or none. */
static bool copy(const char *from, const char *to)
{
    struct stat status;
    const char *part = arena_printf("%s.part", to);
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = in < 0 ? -1 : open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = out >= 0 && fstat(in, &status) == 0 && copy_bytes(in, out) && fchmod(out, status.st_mode & 0700) == 0;
    int error = errno;
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) != 0 && good) {
        error = errno;
        good = false;
    }
    if (good && rename(part, to) != 0) {
        error = errno;
        good = false;
    }
    if (!good)
        unlink(part);
    errno = error;
    return good;
}

static void tell_once(const char *path)
{
    static bool told;
    if (!told)
        fprintf(stderr, "kbgen: cannot copy %s: %s; simulators run from where they are\n", printable(path), strerror(errno));
    told = true;
}

const char *node_copy(const char *folder, const char *path, const char *name)
{
    const char *to = arena_printf("%s/%s", folder, name);
    if (access(to, R_OK) == 0)
        return to;
    int lock = open(arena_printf("%s/lock", folder), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool good = lock >= 0 && flock(lock, LOCK_EX) == 0 && (access(to, R_OK) == 0 || copy(path, to));
    if (!good)
        tell_once(path);
    if (lock >= 0)
        close(lock);
    return good ? to : path;
}
