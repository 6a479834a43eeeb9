/* cache.c: the cache folder: $KBGEN_CACHE, or build/kbgen.cache below the current folder.
 *
 * What it holds is installed as a simulator, which runs with the user's rights. So nothing is read from a folder or a
 * file that another user can have written (trust.h). The folder is opened once, and its files relative to it, so that
 * nobody can put another folder in its place; each file is checked after it is opened, and no open can block.
 *
 * Users may remove the folder at any time, and several kbgens may use it at once. Entries are named after the kbgen that
 * made them, so another build of kbgen does not see them. Each file ends with a hash over its name and content; an entry
 * whose hash is wrong counts as missing. If the folder cannot be written, nothing is cached and kbgen goes on. When the
 * folder holds more than 256 MiB, the least recently used entries are removed.
 *
 * Entries that were made together with kbgen are in a folder beside it, prebuilt/, which is only read. */
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
#include "../../rt/common/fail.h"
#include "../../rt/common/hash.h"
#include "../words.h"
#include "home.h"
#include "output.h"
#include "trust.h"

enum { MARK_LENGTH = 32, FILE_LEAST_BYTES = 4096 };

static const uint64_t most_bytes = UINT64_C(256) << 20;

/* The path of the cache folder, or NULL if the user wants none. */
static const char *folder_path(void)
{
    const char *named = getenv("KBGEN_CACHE");
    if (!named)
        return "build/kbgen.cache";
    size_t length = strlen(named);
    while (length > 1 && named[length - 1] == '/')
        length--;
    return length ? arena_text(named, length) : NULL;
}

static const char *path_of(const char *file)
{
    return arena_printf("%s/%s", folder_path(), file);
}

/* The folder, once it is open. */
static struct {
    int file;
    bool refused;
} folder = {.file = -1};

/* Opens the folder, and makes it if `make`. Returns a descriptor that stays open, or -1: there is no folder, or it is not
 * trusted, which is said once. */
static int folder_open(bool make)
{
    const char *path = folder_path();
    if (!path || folder.refused || folder.file >= 0)
        return folder.file;
    if (make && make_parents(path))
        mkdir(path, 0755);                              /* not 0777: no mask makes it open to others */
    int file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *why = file < 0 ? NULL : trust_refusal(file);
    if (why) {
        message("%s: the cache %s is not used: %s; remove it, or set KBGEN_CACHE to a folder of yours (or to nothing)\n",
                program_name, path, why);
        close(file);
        file = -1;
        folder.refused = true;
    }
    return folder.file = file;
}

void cache_prepare(void)
{
    folder_open(false);
}

/* The name of an entry's file. */
static const char *file_of(const char *name)
{
    return arena_printf("%s-%s", name, home_identity());
}

static const char *mark_of(const char *name, const char *bytes, size_t length)
{
    struct hash *hash = hash_begin();
    hash_text(hash, name);
    hash_add(hash, bytes, length);
    return hash_end(hash);
}

static void refuse_entry(const char *file, const char *why)
{
    static struct words refused;
    for (size_t i = 0; i < refused.count; i++)
        if (!strcmp(refused.word[i], file))
            return;
    words_add(&refused, file);
    message("%s: %s is not used: %s; remove it\n", program_name, path_of(file), why);
}

/* Opens a file of the cache to be read. Returns -1 if the file is missing or must not be used. */
static int entry_open(const char *file, size_t *length)
{
    struct stat status;
    int entry = folder_open(false) < 0 ? -1
              : openat(folder.file, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (entry < 0)
        return -1;
    bool good = fstat(entry, &status) == 0 && S_ISREG(status.st_mode);
    const char *why = good ? trust_refusal(entry) : "it is no regular file";
    *length = good ? (size_t)status.st_size : 0;
    if (why)
        refuse_entry(file, why);
    if (!why && *length >= MARK_LENGTH)
        return entry;
    close(entry);
    return -1;
}

/* Opens an entry of prebuilt/. It is trusted as kbgen itself is. Returns -1 if there is no such entry. */
static int prebuilt_open(const char *file, size_t *length)
{
    struct stat status;
    int entry = open(arena_printf("%s/%s", home_prebuilt(), file), O_RDONLY | O_CLOEXEC);
    *length = entry >= 0 && fstat(entry, &status) == 0 ? (size_t)status.st_size : 0;
    if (entry < 0 || *length >= MARK_LENGTH)
        return entry;
    close(entry);
    return -1;
}

/* The content of an open entry, which is closed, or NULL. It is mapped copy-on-write: the caller may change the bytes, and
 * they remain when the file is removed. */
static char *content(const char *name, int entry, size_t *length)
{
    char *bytes = entry < 0 ? MAP_FAILED : mmap(NULL, *length, PROT_READ | PROT_WRITE, MAP_PRIVATE, entry, 0);
    if (entry >= 0)
        close(entry);
    if (bytes == MAP_FAILED)
        return NULL;
    *length -= MARK_LENGTH;
    if (memcmp(bytes + *length, mark_of(name, bytes, *length), MARK_LENGTH))
        return NULL;
    bytes[*length] = 0;
    return bytes;
}

char *cache_find(const char *name, size_t *length)
{
    const char *file = file_of(name);
    char *bytes = content(name, entry_open(file, length), length);
    if (!bytes)
        return content(name, prebuilt_open(file, length), length);
    utimensat(folder.file, file, NULL, 0);              /* marks it as recently used */
    return bytes;
}

/* ---- not more than it may hold */

struct kept {
    const char *file;
    struct timespec used;
    uint64_t bytes;
};

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct kept *)a)->used, *y = &((const struct kept *)b)->used;
    return x->tv_sec != y->tv_sec ? (x->tv_sec > y->tv_sec) - (x->tv_sec < y->tv_sec)
                                  : (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* What a file's name says after the kind and the hash that every name of the cache begins with: "" to begin with; NULL
 * for a file that kbgen did not make. */
static const char *after_hash(const char *file)
{
    static const char *const kinds[] = {"simulator-", "object-", "includes-", "compiler-"};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const char *hash = file + strlen(kinds[i]);
        if (!strncmp(file, kinds[i], strlen(kinds[i])) && strspn(hash, "0123456789abcdef") == MARK_LENGTH)
            return hash + MARK_LENGTH;
    }
    return NULL;
}

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && !strcmp(text + strlen(text) - strlen(end), end);
}

/* Removes a temporary file or a lock whose kbgen was killed; one that runs holds a lock on it. */
static void sweep(const char *file)
{
    int left = openat(folder.file, file, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (left < 0)
        return;
    if (flock(left, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder.file, file, 0);
    close(left);
}

void cache_trim(void)
{
    struct kept *all = NULL;
    size_t count = 0;
    uint64_t held = 0;
    struct stat status;
    int again = folder_open(false) < 0 ? -1 : openat(folder.file, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        const char *rest = after_hash(entry->d_name);
        if (!rest || fstatat(folder.file, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
            continue;
        if (ends_with(rest, ".tmp") || ends_with(rest, ".lock")) {
            sweep(entry->d_name);
            continue;
        }
        all = arena_grow(all, count, sizeof *all);
        all[count] = (struct kept){arena_printf("%s", entry->d_name), status.st_mtim,
                                   (uint64_t)status.st_size + FILE_LEAST_BYTES};
        held += all[count++].bytes;
    }
    if (entries)
        closedir(entries);
    if (held > most_bytes)
        qsort(all, count, sizeof *all, by_use);
    for (size_t i = 0; held > most_bytes; held -= all[i++].bytes)
        unlinkat(folder.file, all[i].file, 0);
}

void cache_keep(const char *name, const char *bytes, size_t length)
{
    if (folder_open(true) < 0)
        return;
    const char *made = arena_printf("%s.%ld.tmp", name, (long)getpid());
    temporary(folder_path(), made);
    int number = openat(folder.file, made, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    FILE *file = number < 0 ? NULL : fdopen(number, "w");
    if (!file)
        return;
    flock(number, LOCK_EX | LOCK_NB);                   /* so that no other kbgen takes it for a leftover */
    bool good = fwrite(bytes, 1, length, file) == length;
    good &= fputs(mark_of(name, bytes, length), file) >= 0;
    good &= fclose(file) == 0;
    if (!good || renameat(folder.file, made, folder.file, file_of(name)) != 0)
        unlinkat(folder.file, made, 0);
}

/* ---- one at a time */

static struct {
    const char *name;
    int file;
} entered = {NULL, -1};                                 /* a file lock; it ends with the process */

/* Nobody else may open the lock, or they could hold it for ever. */
void cache_enter(const char *name)
{
    if (folder_open(true) < 0)
        return;
    entered.name = arena_printf("%s.lock", name);
    temporary(folder_path(), entered.name);
    entered.file = openat(folder.file, entered.name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    while (entered.file >= 0 && flock(entered.file, LOCK_EX) != 0 && errno == EINTR)
        ;
}

void cache_leave(void)
{
    if (entered.file < 0)
        return;
    unlinkat(folder.file, entered.name, 0);
    close(entered.file);
    entered.file = -1;
}
