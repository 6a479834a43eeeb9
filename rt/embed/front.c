/* front.c: the calls of kb/sim.h: handles, and what can be checked without a machine.
 *
 * A handle is the address of a slot with the number of its use in the upper bits, so that one of a destroyed instance is
 * not taken for that of the next one in its slot; it is never followed before it is known. The state of a slot is one
 * atomic word: a call takes an idle instance, and gives it back.
 *
 * An image is loaded from a file in memory of its own, since the dynamic linker loads one file only once. That file stays
 * open: its name, /proc/PID/fd/N, is what tells it from others, and where debuggers look for symbols. If the program has
 * closed it, the number is used again, but no name of a loaded image is. */
#define _GNU_SOURCE                                     /* memfd_create */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "image.h"

enum { SLOTS = 4096, USE_SHIFT = 48, PAGE = 4096 };
#define MEMORY_BYTES (UINT64_C(64) << 30)               /* if the program does not say how many */
#define MEMORY_LEAST_BYTES (UINT64_C(1) << 30)
#define MEMORY_SMALLEST_BYTES (UINT64_C(1) << 20)        /* that a program may ask for */
#define MEMORY_MOST_BYTES (UINT64_C(1) << 46)
enum { STRUCT_MOST_BYTES = 4096 };                      /* of any version of a struct */

/* The upper bits of a slot's word are the number of its use. */
enum state { FREE, IDLE, IN_CALL };

/* What an instance has of the system. */
struct instance {
    const struct kb_image *image;
    void *library;
    int file;
    struct stat file_is;                                /* else the program has closed the file, and opened another one */
    struct image_host *host;                            /* in addresses that are mapped for it, before those of the image */
    uint64_t mapped_bytes;
};

struct slot {
    _Atomic uint64_t word;
    struct instance instance;
    struct kb_sim_config config;                        /* with texts of its own */
    char *texts;
};

static struct slot slots[SLOTS];

/* Held while an image is loaded and begins, which changes OPENBLAS_NUM_THREADS for a moment (datapass/blas.c). Recursive,
 * since the log callback may make another instance. */
static pthread_mutex_t loading = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* The machine of the library: the first one that is linked, if there are several. */
extern const struct kb_machine kb_machine_of_library;

static _Thread_local struct {
    const kb_sim *sim;
    char text[IMAGE_TEXT_BYTES];
} last_error;

/* ---- errors */

__attribute__((format(printf, 3, 4)))
static enum kb_status wrong(const kb_sim *sim, enum kb_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last_error.text, sizeof last_error.text, format, args);
    va_end(args);
    last_error.sim = sim;
    return status;
}

const char *kb_last_error(const kb_sim *sim)
{
    return last_error.sim == sim ? last_error.text : "";
}

const char *kb_status_name(enum kb_status status)
{
    static const char *const names[] = {
        [KB_OK] = "KB_OK", [KB_RUN_FAILED] = "KB_RUN_FAILED", [KB_WRONG] = "KB_WRONG", [KB_HOST_FAILED] = "KB_HOST_FAILED",
        [KB_BUSY] = "KB_BUSY", [KB_NO_MEMORY] = "KB_NO_MEMORY", [KB_TOO_SMALL] = "KB_TOO_SMALL", [KB_ENDED] = "KB_ENDED",
    };
    return (unsigned)status < sizeof names / sizeof names[0] ? names[status] : "?";
}

/* ---- what the library is */

uint32_t kb_abi_version(void)
{
    return KB_ABI_VERSION;
}

const char *kb_machine_hash(void)
{
    return kb_machine_of_library.hash;
}

const char *kb_library_name(void)
{
    return kb_machine_of_library.name;
}

/* ---- handles */

static uint64_t word_of(uint64_t use, enum state state)
{
    return use << 8 | state;
}

static kb_sim *handle_of(const struct slot *slot, uint64_t use)
{
    return (kb_sim *)((uintptr_t)slot | (uintptr_t)(use & 0xffff) << USE_SHIFT);
}

/* The slot of a handle, if it looks like one; *use: the use that it is for. */
static struct slot *slot_of(const kb_sim *sim, uint64_t *use)
{
    uintptr_t at = (uintptr_t)sim & ((UINT64_C(1) << USE_SHIFT) - 1);
    uintptr_t offset = at - (uintptr_t)slots;
    if (at < (uintptr_t)slots || offset >= sizeof slots || offset % sizeof slots[0])
        return NULL;
    struct slot *slot = &slots[offset / sizeof slots[0]];
    *use = atomic_load(&slot->word) >> 8;
    return handle_of(slot, *use) == sim ? slot : NULL;
}

/* Takes an idle instance for a call. */
__attribute__((noinline)) static enum kb_status enter(const kb_sim *sim, const char *call, struct slot **out)
{
    uint64_t use;
    if (!sim)
        return wrong(NULL, KB_WRONG, "%s: the instance is NULL", call);
    struct slot *slot = slot_of(sim, &use);
    uint64_t idle = word_of(use, IDLE);
    if (slot && atomic_compare_exchange_strong(&slot->word, &idle, word_of(use, IN_CALL))) {
        *out = slot;
        slot->instance.host->text[0] = '\0';
        slot->instance.host->exhausted = false;
        return KB_OK;
    }
    if (slot && idle == word_of(use, IN_CALL))
        return wrong(sim, KB_BUSY, "%s: the instance is in another call, of another thread or of its own callback", call);
    return wrong(NULL, KB_WRONG, "%s: this is no instance, or one that was destroyed", call);
}

/* Gives the instance back, and keeps the text of a call that has failed. */
static enum kb_status leave(const kb_sim *sim, const char *call, struct slot *slot, enum kb_status status)
{
    slot->instance.image->rest();
    if (status != KB_OK)
        wrong(sim, status, "%s: %s", call, *slot->instance.host->text ? slot->instance.host->text : kb_status_name(status));
    atomic_store(&slot->word, word_of(atomic_load(&slot->word) >> 8, IDLE));
    return status;
}

/* Takes a free slot: it is in a call. Returns NULL if all are in use. */
static struct slot *slot_take(void)
{
    for (struct slot *slot = slots; slot < slots + SLOTS; slot++) {
        uint64_t word = atomic_load(&slot->word);
        if ((word & 0xff) == FREE && atomic_compare_exchange_strong(&slot->word, &word, word_of((word >> 8) + 1, IN_CALL)))
            return slot;
    }
    return NULL;
}

static void slot_give_back(struct slot *slot)
{
    free(slot->texts);
    slot->texts = NULL;
    atomic_store(&slot->word, word_of(atomic_load(&slot->word) >> 8, FREE));
}

/* ---- structs of callers of other versions */

/* Copies a struct that begins with struct_size; what the caller lacks is 0. A caller may have fields that are not known
 * here, if they are 0. */
static enum kb_status struct_in(const kb_sim *sim, const char *call, const char *what, const void *from, void *to, uint64_t bytes)
{
    uint64_t given;
    if (!from)
        return wrong(sim, KB_WRONG, "%s: %s is NULL", call, what);
    memcpy(&given, from, sizeof given);
    if (given < sizeof given || given > STRUCT_MOST_BYTES)
        return wrong(sim, KB_WRONG, "%s: %s has struct_size %llu: sizeof of the struct is needed", call, what,
                     (unsigned long long)given);
    for (uint64_t i = bytes; i < given; i++)
        if (((const char *)from)[i])
            return wrong(sim, KB_WRONG, "%s: %s sets a field that this library, of version %u, does not have", call, what,
                         (unsigned)KB_ABI_VERSION);
    memset(to, 0, bytes);
    memcpy(to, from, given < bytes ? given : bytes);
    memcpy(to, &bytes, sizeof bytes);
    return KB_OK;
}

/* Checks a struct that a call fills in. */
static enum kb_status struct_out(const kb_sim *sim, const char *call, const char *what, const void *out)
{
    uint64_t given;
    if (!out)
        return wrong(sim, KB_WRONG, "%s: %s is NULL", call, what);
    memcpy(&given, out, sizeof given);
    if (given < sizeof given || given > STRUCT_MOST_BYTES)
        return wrong(sim, KB_WRONG, "%s: %s has struct_size %llu: sizeof of the struct is needed", call, what,
                     (unsigned long long)given);
    return KB_OK;
}

/* Fills it in: fields that are not known here are 0. */
static void struct_give(void *out, const void *from, uint64_t bytes)
{
    uint64_t given;
    memcpy(&given, out, sizeof given);
    memset(out, 0, given);
    memcpy(out, from, given < bytes ? given : bytes);
    memcpy(out, &given, sizeof given);
}

/* ---- images */

/* A file in memory with the image, or -1. */
static int image_file(const struct kb_machine *machine)
{
    unsigned flags = MFD_CLOEXEC;
#ifdef MFD_EXEC
    flags |= MFD_EXEC;
#endif
    int file = memfd_create(machine->name, flags);
    if (file < 0 && errno == EINVAL)
        file = memfd_create(machine->name, MFD_CLOEXEC);        /* of a system that has no MFD_EXEC */
    for (uint64_t at = 0; file >= 0 && at < machine->image_bytes;) {
        ssize_t wrote = write(file, machine->image + at, machine->image_bytes - at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            close(file);
            return -1;
        }
        at += (uint64_t)wrote;
    }
    return file;
}

/* Whether the dynamic linker has an image of this name. */
static bool is_loaded(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    return library;
}

/* Moves the file to a number whose name no loaded image has. */
static void file_name(int *file, char *path, size_t size)
{
    while (snprintf(path, size, "/proc/%ld/fd/%d", (long)getpid(), *file), *file >= 0 && is_loaded(path)) {
        int next = fcntl(*file, F_DUPFD_CLOEXEC, *file + 1);
        close(*file);
        *file = next;
    }
}

/* A number that no other image has: of the time of its making, the process, and random bytes that the system gave it. */
static void image_name(uint64_t id[2])
{
    static _Atomic uint64_t made;
    const void *random = (const void *)getauxval(AT_RANDOM);
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (random)
        memcpy(id, random, 2 * sizeof *id);
    id[0] += (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    id[1] += atomic_fetch_add(&made, 1) << 32 | (uint32_t)getpid();
}

static enum kb_status image_load(struct instance *instance, const struct kb_machine *machine)
{
    char path[64];
    instance->file = image_file(machine);
    file_name(&instance->file, path, sizeof path);
    if (instance->file < 0 || fstat(instance->file, &instance->file_is))
        return wrong(NULL, KB_HOST_FAILED, "kb_sim_create: cannot make a file in memory: %s", strerror(errno));
    instance->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct kb_image *image = instance->library ? dlsym(instance->library, "kb_image") : NULL;
    if (!image)
        return wrong(NULL, KB_HOST_FAILED, "kb_sim_create: cannot load the image of the machine: %s", dlerror());
    if (image->abi != KB_ABI_VERSION || image->table_bytes != sizeof *image)
        return wrong(NULL, KB_WRONG, "kb_sim_create: the image is of another version of the library");
    instance->image = image;
    return KB_OK;
}

/* Reserves addresses: fewer than usual if there are not as many, unless the program has said how many. */
static enum kb_status memory_reserve(struct instance *instance, uint64_t asked)
{
    uint64_t head = (sizeof *instance->host + PAGE - 1) / PAGE * PAGE;
    if (asked && asked < MEMORY_SMALLEST_BYTES)
        return wrong(NULL, KB_WRONG, "kb_sim_create: memory_bytes %llu: at least 2^20", (unsigned long long)asked);
    if (asked > MEMORY_MOST_BYTES)
        return wrong(NULL, KB_WRONG, "kb_sim_create: memory_bytes %llu: at most 2^46", (unsigned long long)asked);
    uint64_t bytes = asked ? (asked + PAGE - 1) / PAGE * PAGE : MEMORY_BYTES;
    char *at;
    for (;; bytes /= 2) {
        at = mmap(NULL, head + bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at != MAP_FAILED || asked || bytes <= MEMORY_LEAST_BYTES)
            break;
    }
    if (at == MAP_FAILED || mprotect(at, head, PROT_READ | PROT_WRITE))
        return wrong(NULL, KB_NO_MEMORY, "kb_sim_create: cannot reserve %llu bytes of addresses", (unsigned long long)bytes);
    instance->host = (struct image_host *)at;
    instance->mapped_bytes = head + bytes;
    instance->host->memory = at + head;
    instance->host->memory_bytes = bytes;
    image_name(instance->host->id);
    return KB_OK;
}

static void instance_free(const struct instance *instance)
{
    if (instance->image)
        instance->image->end();
    if (instance->library)
        dlclose(instance->library);
    struct stat is;
    if (instance->file >= 0 && fstat(instance->file, &is) == 0 && is.st_dev == instance->file_is.st_dev
        && is.st_ino == instance->file_is.st_ino)
        close(instance->file);
    if (instance->host)
        munmap(instance->host, instance->mapped_bytes);
}

/* Calls a function of an image, and returns its status, or that of the failure which has left it. */
#define IMAGE_CALL(instance, ...)                                                                                      \
    (setjmp((instance)->host->out) ? (instance)->host->failed : (instance)->image->__VA_ARGS__)

/* Makes an instance, or sets the text of the error. */
static enum kb_status instance_make(struct instance *instance, const struct kb_sim_config *config)
{
    const struct kb_machine *machine = config->machine ? config->machine : &kb_machine_of_library;
    *instance = (struct instance){.file = -1};
    if (machine->abi != KB_ABI_VERSION)
        return wrong(NULL, KB_WRONG, "kb_sim_create: the machine is of version %u of the library, this is %u",
                     (unsigned)machine->abi, (unsigned)KB_ABI_VERSION);
    enum kb_status status = memory_reserve(instance, config->memory_bytes);
    pthread_mutex_lock(&loading);
    if (status == KB_OK)
        status = image_load(instance, machine);
    if (status == KB_OK) {
        status = IMAGE_CALL(instance, begin(instance->host, config));
        if (status != KB_OK)
            wrong(NULL, status, "kb_sim_create: %s", instance->host->text);
    }
    pthread_mutex_unlock(&loading);
    if (status != KB_OK)
        instance_free(instance);
    return status;
}

/* Copies the texts of a configuration, which a reset may need again. */
static enum kb_status config_keep(struct slot *slot, const struct kb_sim_config *config)
{
    slot->config = *config;
    if (config->set_count && !config->set)
        return wrong(NULL, KB_WRONG, "kb_sim_create: set is NULL, and set_count is not 0");
    uint64_t bytes = config->set_count * sizeof(char *);
    for (uint64_t i = 0; i < config->set_count; i++) {
        if (!config->set[i])
            return wrong(NULL, KB_WRONG, "kb_sim_create: set[%llu] is NULL", (unsigned long long)i);
        bytes += strlen(config->set[i]) + 1;
    }
    slot->texts = malloc(bytes + 1);
    if (!slot->texts)
        return wrong(NULL, KB_NO_MEMORY, "kb_sim_create: no memory for the configuration");
    char **set = (char **)slot->texts, *text = slot->texts + config->set_count * sizeof(char *);
    for (uint64_t i = 0; i < config->set_count; i++) {
        set[i] = text;
        text = stpcpy(text, config->set[i]) + 1;
    }
    slot->config.set = (const char *const *)set;
    return KB_OK;
}

enum kb_status kb_sim_create(const struct kb_sim_config *config, kb_sim **sim)
{
    struct kb_sim_config full;
    if (!sim)
        return wrong(NULL, KB_WRONG, "kb_sim_create: the place for the instance is NULL");
    *sim = NULL;
    enum kb_status status = struct_in(NULL, "kb_sim_create", "the configuration", config, &full, sizeof full);
    if (status != KB_OK)
        return status;
    struct slot *slot = slot_take();
    if (!slot)
        return wrong(NULL, KB_NO_MEMORY, "kb_sim_create: there are %d instances, the most possible", SLOTS);
    status = config_keep(slot, &full);
    if (status == KB_OK)
        status = instance_make(&slot->instance, &slot->config);
    if (status != KB_OK) {
        slot_give_back(slot);
        return status;
    }
    uint64_t use = atomic_load(&slot->word) >> 8;
    *sim = handle_of(slot, use);
    atomic_store(&slot->word, word_of(use, IDLE));
    return KB_OK;
}

enum kb_status kb_sim_destroy(kb_sim *sim)
{
    struct slot *slot = NULL;
    enum kb_status status = enter(sim, __func__, &slot);
    if (status == KB_OK) {
        instance_free(&slot->instance);
        slot_give_back(slot);
    }
    return status;
}

/* ---- the calls of an instance */

/* Notes what is wrong with an argument. */
__attribute__((format(printf, 2, 3)))
static enum kb_status refused(struct slot *slot, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(slot->instance.host->text, IMAGE_TEXT_BYTES, format, args);
    va_end(args);
    return KB_WRONG;
}

/* Enters a call of an instance that has not ended. */
__attribute__((noinline)) static enum kb_status begin(kb_sim *sim, const char *call, struct slot **slot)
{
    enum kb_status status = enter(sim, call, slot);
    if (status != KB_OK || !(*slot)->instance.host->ended)
        return status;
    refused(*slot, "the instance has ended by an earlier failure");
    return leave(sim, call, *slot, KB_ENDED);
}

/* A call: checks `wrong_argument`, the text of what is wrong with its arguments or NULL, and lets the image make it. */
#define CALL(status, sim, wrong_argument, name, ...)                                                                   \
    do {                                                                                                               \
        struct slot *entered_ = NULL, *volatile slot_;                                                                 \
        const char *wrong_ = wrong_argument;                                                                           \
        status = begin(sim, __func__, &entered_);                                                                      \
        slot_ = entered_;                                                                                              \
        if (status != KB_OK)                                                                                           \
            break;                                                                                                     \
        if (wrong_)                                                                                                    \
            status = refused(slot_, "%s", wrong_);                                                                     \
        else                                                                                                           \
            status = IMAGE_CALL(&slot_->instance, name(__VA_ARGS__));                                                  \
        status = leave(sim, __func__, slot_, status);                                                                  \
    } while (0)

/* What is wrong with a pointer, or NULL: the first wrong one is NEEDS(a) ?: NEEDS(b). */
#define NEEDS(pointer) ((pointer) ? NULL : #pointer " is NULL")
#define NEEDS_BYTES(pointer, bytes) ((pointer) || !(bytes) ? NULL : #pointer " is NULL, and " #bytes " is not 0")

/* An instance that has ended still holds things that nobody knows: a new image takes its place. */
static enum kb_status again(struct slot *slot)
{
    struct instance made;
    enum kb_status status = instance_make(&made, &slot->config);
    if (status != KB_OK) {
        refused(slot, "%s", last_error.text);
        return status;
    }
    instance_free(&slot->instance);
    slot->instance = made;
    return KB_OK;
}

enum kb_status kb_sim_reset(kb_sim *sim)
{
    struct slot *entered = NULL, *volatile slot;
    enum kb_status status = enter(sim, __func__, &entered);
    if (status != KB_OK)
        return status;
    slot = entered;
    status = slot->instance.host->ended ? again(slot) : IMAGE_CALL(&slot->instance, reset());
    return leave(sim, __func__, slot, status);
}

enum kb_status kb_sim_save(kb_sim *sim, void *buffer, uint64_t size, uint64_t *needed)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(needed) ?: NEEDS_BYTES(buffer, size), save, buffer, size, needed);
    return status;
}

/* Also of an instance that has ended: all that it has is what it had then. */
enum kb_status kb_sim_restore(kb_sim *sim, const void *buffer, uint64_t size)
{
    struct slot *entered = NULL, *volatile slot;
    enum kb_status status = enter(sim, __func__, &entered);
    if (status != KB_OK)
        return status;
    slot = entered;
    status = buffer ? IMAGE_CALL(&slot->instance, restore(buffer, size)) : refused(slot, "buffer is NULL");
    if (status == KB_OK)
        slot->instance.host->ended = false;
    return leave(sim, __func__, slot, status);
}

enum kb_status kb_sim_run(kb_sim *sim, uint64_t until_ps, uint32_t stop_mask, struct kb_sim_stop *why)
{
    struct kb_sim_stop stop = {.struct_size = sizeof stop};
    enum kb_status status = why ? struct_out(sim, __func__, "why", why) : KB_OK;
    if (status != KB_OK)
        return status;
    CALL(status, sim, NULL, run, until_ps, stop_mask, &stop);
    if (status == KB_OK && why)
        struct_give(why, &stop, sizeof stop);
    return status;
}

enum kb_status kb_sim_now_ps(kb_sim *sim, uint64_t *now_ps)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(now_ps), now_ps, now_ps);
    return status;
}

enum kb_status kb_sim_next_ps(kb_sim *sim, uint64_t *next_ps)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(next_ps), next_ps, next_ps);
    return status;
}

enum kb_status kb_sim_poll(kb_sim *sim, uint64_t request, struct kb_sim_result *result)
{
    struct kb_sim_result full = {.struct_size = sizeof full};
    enum kb_status status = struct_out(sim, __func__, "result", result);
    if (status != KB_OK)
        return status;
    CALL(status, sim, NULL, poll, request, &full);
    if (status == KB_OK)
        struct_give(result, &full, sizeof full);
    return status;
}

enum kb_status kb_sim_poll_pe(kb_sim *sim, uint64_t request, uint64_t i, struct kb_sim_pe_result *result)
{
    struct kb_sim_pe_result full = {.struct_size = sizeof full};
    enum kb_status status = struct_out(sim, __func__, "result", result);
    if (status != KB_OK)
        return status;
    CALL(status, sim, NULL, poll_pe, request, i, &full);
    if (status == KB_OK)
        struct_give(result, &full, sizeof full);
    return status;
}

enum kb_status kb_sim_launch(kb_sim *sim, const struct kb_sim_launch *launch, uint64_t *request)
{
    struct kb_sim_launch full;
    enum kb_status status = struct_in(sim, __func__, "launch", launch, &full, sizeof full);
    if (status != KB_OK)
        return status;
    const char *kernel = full.kernel;
    const uint32_t *pes = full.pes;
    uint64_t pe_count = full.pe_count;
    CALL(status, sim, NEEDS(kernel) ?: NEEDS(request) ?: NEEDS_BYTES(pes, pe_count), launch, &full, request);
    return status;
}

enum kb_status kb_sim_program(kb_sim *sim, const struct kb_sim_launch *launch, uint64_t *request)
{
    struct kb_sim_launch full;
    enum kb_status status = struct_in(sim, __func__, "launch", launch, &full, sizeof full);
    if (status != KB_OK)
        return status;
    const uint32_t *pes = full.pes;
    uint64_t pe_count = full.pe_count;
    CALL(status, sim, NEEDS(request) ?: NEEDS_BYTES(pes, pe_count), program, &full, request);
    return status;
}

enum kb_status kb_sim_replay(kb_sim *sim, const char *text, uint64_t length, uint64_t *request)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(text) ?: NEEDS(request), replay, text, length, request);
    return status;
}

enum kb_status kb_sim_command(kb_sim *sim, uint64_t request, uint32_t pe, const char *text, uint64_t length)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(text), command, request, pe, text, length);
    return status;
}

enum kb_status kb_sim_program_end(kb_sim *sim, uint64_t request)
{
    enum kb_status status;
    CALL(status, sim, NULL, program_end, request);
    return status;
}

enum kb_status kb_sim_map(kb_sim *sim, const uint32_t *pes, const uint64_t *addresses, uint64_t count, uint64_t va,
                          uint64_t pages, uint64_t *request)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(pes) ?: NEEDS(addresses) ?: NEEDS(request), map, pes, addresses, count, va, pages,
         request);
    return status;
}

enum kb_status kb_sim_unmap(kb_sim *sim, const uint32_t *pes, uint64_t count, uint64_t va, uint64_t pages,
                            uint64_t *request)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(pes) ?: NEEDS(request), map, pes, NULL, count, va, pages, request);
    return status;
}

enum kb_status kb_sim_write(kb_sim *sim, const uint64_t *addresses, uint64_t count, uint64_t bytes, const void *data,
                            uint64_t *request)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(addresses) ?: NEEDS(request), transfer, true, addresses, count, bytes, (void *)data, request);
    return status;
}

enum kb_status kb_sim_read(kb_sim *sim, const uint64_t *addresses, uint64_t count, uint64_t bytes, void *data,
                           uint64_t *request)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(addresses) ?: NEEDS(request), transfer, false, addresses, count, bytes, data, request);
    return status;
}

enum kb_status kb_sim_poke(kb_sim *sim, uint64_t address, const void *data, uint64_t bytes)
{
    enum kb_status status;
    CALL(status, sim, NEEDS_BYTES(data, bytes), poke, address, data, bytes);
    return status;
}

enum kb_status kb_sim_peek(kb_sim *sim, uint64_t address, void *data, uint64_t bytes)
{
    enum kb_status status;
    CALL(status, sim, NEEDS_BYTES(data, bytes), peek, address, data, bytes);
    return status;
}

enum kb_status kb_sim_tensor(kb_sim *sim, const struct kb_sim_tensor *tensor, struct tensor **made)
{
    struct kb_sim_tensor full;
    enum kb_status status = struct_in(sim, __func__, "tensor", tensor, &full, sizeof full);
    if (status != KB_OK)
        return status;
    const char *name = full.name;
    const uint32_t *pes = full.pes;
    uint64_t pe_count = full.pe_count;
    CALL(status, sim, NEEDS(name) ?: NEEDS(made) ?: NEEDS_BYTES(pes, pe_count), tensor, &full, made);
    return status;
}

enum kb_status kb_sim_tensor_set(kb_sim *sim, struct tensor *tensor, const void *data, uint64_t bytes)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(tensor) ?: NEEDS(data), tensor_set, tensor, data, bytes);
    return status;
}

enum kb_status kb_sim_tensor_get(kb_sim *sim, struct tensor *tensor, void *data, uint64_t bytes)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(tensor) ?: NEEDS(data), tensor_get, tensor, data, bytes);
    return status;
}

enum kb_status kb_sim_tensor_shard(kb_sim *sim, struct tensor *tensor, uint64_t i, uint64_t *address, uint64_t *bytes)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(tensor) ?: NEEDS(address) ?: NEEDS(bytes), tensor_shard, tensor, i, address, bytes);
    return status;
}

enum kb_status kb_sim_run_bench(kb_sim *sim, const char *bench, const char *const *params, uint64_t count)
{
    enum kb_status status;
    const char *wrong_argument = NEEDS(bench) ?: NEEDS_BYTES(params, count);
    for (uint64_t i = 0; !wrong_argument && i < count; i++)
        wrong_argument = params[i] ? NULL : "one of params is NULL";
    CALL(status, sim, wrong_argument, run_bench, bench, params, count);
    return status;
}

enum kb_status kb_sim_result_json(kb_sim *sim, char *buffer, uint64_t size, uint64_t *needed)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(needed) ?: NEEDS_BYTES(buffer, size), result_json, buffer, size, needed);
    return status;
}

enum kb_status kb_sim_describe(kb_sim *sim, char *buffer, uint64_t size, uint64_t *needed)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(needed) ?: NEEDS_BYTES(buffer, size), describe, buffer, size, needed);
    return status;
}

enum kb_status kb_sim_stat(kb_sim *sim, const char *name, uint64_t *value)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(name) ?: NEEDS(value), stat, name, value);
    return status;
}

enum kb_status kb_sim_stats(kb_sim *sim, int (*visitor)(void *user, const char *name, uint64_t value), void *user)
{
    enum kb_status status;
    CALL(status, sim, NEEDS(visitor), stats, visitor, user);
    return status;
}

enum kb_status kb_sim_trace(kb_sim *sim, void (*visitor)(void *user, const struct kb_sim_event *event), void *user)
{
    enum kb_status status;
    CALL(status, sim, NULL, trace, visitor, user);
    return status;
}
