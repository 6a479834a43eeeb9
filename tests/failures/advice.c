/* advice.c: a library to preload: a system that does not know how to mark guards. It says so or, with SAYS_YES, that it has. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int madvise(void *at, size_t bytes, int advice)
{
    enum { GUARD_INSTALL = 102 };
    if (advice != GUARD_INSTALL)
        return (int)syscall(SYS_madvise, at, bytes, advice);
    if (getenv("SAYS_YES"))
        return 0;
    errno = EINVAL;
    return -1;
}
