/* cache.c: the cache folder: $KBGEN_CACHE, or build/kbgen.cache below the current folder.
 *
 * Users may remove it at any time, and several kbgens may use it at once. Entries are named after the kbgen that made
 * them, so another build of kbgen does not see them. Each file ends with a hash over its name and content; an entry
 * whose hash is wrong counts as missing. If the folder cannot be written, nothing is cached and kbgen goes on. When the
 * folder holds more than 256 MiB, the least recently used entries are removed. */
#include "cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/hash.h"
#include "home.h"
#include "output.h"

enum { MARK_LENGTH = 32, FILE_LEAST_BYTES = 4096 };

static const uint64_t most_bytes = UINT64_C(256) << 20;

/* The cache folder, or NULL if the user wants none. */
static const char *folder(void)
{
    const char *named = getenv("KBGEN_CACHE");
    return !named ? "build/kbgen.cache" : *named ? named : NULL;
}

static const char *place(const char *name)
{
    return arena_printf("%s/%s-%s", folder(), name, home_identity());
}

static const char *mark_of(const char *name, const char *bytes, size_t length)
{
    struct hash *hash = hash_begin();
    hash_text(hash, name);
    hash_add(hash, bytes, length);
    return hash_end(hash);
}

/* Maps a file copy-on-write: the caller may change the bytes, and they remain when the file is removed. */
static char *map(const char *path, size_t *length)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool good = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= MARK_LENGTH;
    *length = good ? (size_t)status.st_size : 0;
    char *bytes = good ? mmap(NULL, *length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) : MAP_FAILED;
    if (file >= 0)
        close(file);
    return bytes == MAP_FAILED ? NULL : bytes;
}

char *cache_find(const char *name, size_t *length)
{
    char *bytes = folder() ? map(place(name), length) : NULL;
    if (!bytes)
        return NULL;
    *length -= MARK_LENGTH;
    if (memcmp(bytes + *length, mark_of(name, bytes, *length), MARK_LENGTH))
        return NULL;
    bytes[*length] = 0;
    utimensat(AT_FDCWD, place(name), NULL, 0);          /* marks it as recently used */
    return bytes;
}

/* ---- not more than it may hold */

struct kept {
    const char *path;
    struct timespec used;
    uint64_t bytes;
};

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct kept *)a)->used, *y = &((const struct kept *)b)->used;
    return x->tv_sec != y->tv_sec ? (x->tv_sec > y->tv_sec) - (x->tv_sec < y->tv_sec)
                                  : (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

void cache_trim(void)
{
    if (!folder())
        return;
    struct kept *all = NULL;
    size_t count = 0;
    uint64_t held = 0;
    struct stat file;
    DIR *entries = opendir(folder());
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        const char *path = arena_printf("%s/%s", folder(), entry->d_name);
        if (lstat(path, &file) != 0 || !S_ISREG(file.st_mode))
            continue;
        all = arena_grow(all, count, sizeof *all);
        all[count] = (struct kept){path, file.st_mtim, (uint64_t)file.st_size + FILE_LEAST_BYTES};
        held += all[count++].bytes;
    }
    if (entries)
        closedir(entries);
    if (held > most_bytes)
        qsort(all, count, sizeof *all, by_use);
    for (size_t i = 0; held > most_bytes; held -= all[i++].bytes)
        unlink(all[i].path);
}

void cache_keep(const char *name, const char *bytes, size_t length)
{
    if (!folder() || !make_parents(place(name)))
        return;
    const char *made = temporary(folder(), arena_printf("%s.%ld.tmp", name, (long)getpid()));
    FILE *file = fopen(made, "wx");
    if (!file)
        return;
    bool good = fwrite(bytes, 1, length, file) == length;
    good &= fputs(mark_of(name, bytes, length), file) >= 0;
    good &= fclose(file) == 0;
    if (!good || rename(made, place(name)) != 0)
        unlink(made);
}

/* ---- one at a time */

static struct {
    const char *path;
    int file;
} entered = {NULL, -1};                                 /* a file lock; it ends with the process */

void cache_enter(const char *name)
{
    if (!folder() || !make_parents(place(name)))
        return;
    entered.path = temporary(folder(), arena_printf("%s.lock", name));
    entered.file = open(entered.path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    while (entered.file >= 0 && flock(entered.file, LOCK_EX) != 0 && errno == EINTR)
        ;
}

void cache_leave(void)
{
    if (entered.file < 0)
        return;
    unlink(entered.path);
    close(entered.file);
    entered.file = -1;
}
