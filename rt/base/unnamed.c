/* unnamed.c: files without a name. */
#define _GNU_SOURCE                                     /* O_TMPFILE */
#include "unnamed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool unnamed_allowed = true;

const char *unnamed_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

int unnamed_open(void)
{
    char path[4096];
    if (!unnamed_allowed) {
        errno = EPERM;
        return -1;
    }
    int fd = open(unnamed_folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof path, "%s/kbXXXXXX", unnamed_folder());    /* not every file system has O_TMPFILE */
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* What one call of the system has done: goes on after some bytes, or if a signal has ended it. */
static bool goes_on(ssize_t done)
{
    if (done == 0)
        errno = EIO;
    return done > 0 || (done < 0 && errno == EINTR);
}

bool file_write(int fd, const void *bytes, uint64_t count, uint64_t place)
{
    for (uint64_t at = 0; at < count;) {
        ssize_t wrote = pwrite(fd, (const char *)bytes + at, count - at, (off_t)(place + at));
        if (!goes_on(wrote))
            return false;
        at += wrote > 0 ? (uint64_t)wrote : 0;
    }
    return true;
}

bool file_read(int fd, void *bytes, uint64_t count, uint64_t place)
{
    for (uint64_t at = 0; at < count;) {
        ssize_t got = pread(fd, (char *)bytes + at, count - at, (off_t)(place + at));
        if (!goes_on(got))
            return false;
        at += got > 0 ? (uint64_t)got : 0;
    }
    return true;
}
