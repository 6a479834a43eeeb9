/* open_file.h: the file without a name that a unit test has open. */
#ifndef OPEN_FILE_H
#define OPEN_FILE_H

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns how many bytes the file without a name has that this program has open; -1: it has none open. */
static inline int64_t file_bytes(void)
{
    int64_t bytes = -1;
    DIR *all = opendir("/proc/self/fd");
    for (struct dirent *one; (one = readdir(all));) {
        struct stat stat;
        int fd = atoi(one->d_name);
        if (fd > STDERR_FILENO && !fstat(fd, &stat) && S_ISREG(stat.st_mode) && stat.st_nlink == 0)
            bytes = stat.st_size;
    }
    closedir(all);
    return bytes;
}

#endif
