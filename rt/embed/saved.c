/* saved.c: a state is the pages of the image's variables and of its memory that are not 0.
 *
 * Between two calls nothing of the machine is on a stack of the program: kernels in flight are suspended on stacks that
 * are in the memory as well, or have none (launch/kernel.h), so they are saved with the rest. All these pages point to one another, and go back to where
 * they were: a state is one of the image that it was saved from, in this process or in one that fork() has made of it.
 *
 *     struct state, { struct pages, their bytes } ..., by address
 *
 * While pages are put back, the functions here use no variable. */
#define _GNU_SOURCE                                     /* link.h: ElfW */
#include "saved.h"

#include <inttypes.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "common/hash.h"
#include "common/pool.h"
#include "failure.h"
#include "guest.h"
#include "memory.h"
#include "sim/coroutine.h"

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_DEFINED(at, bytes) ((void)(at), (void)(bytes))
#endif

/* Pages have bytes that the program may not read by itself: below the tops of stacks, in free lists. */
#define ANY_BYTES __attribute__((noinline, no_sanitize("address", "undefined")))

enum { PAGE = 4096, WORDS = PAGE / 8, SPANS = 8 };

struct state {
    char magic[8];
    uint64_t hash;                                      /* of what follows */
    uint64_t bytes;                                     /* of all of it */
    uint64_t instance[2];                               /* image_host.id */
    uint64_t memory_bytes;                              /* memory_used() */
};

struct pages {
    uint64_t at, bytes;
};

static const char magic[8] = "kbstate";

static uint64_t state_hash(const char *buffer, uint64_t bytes)
{
    const size_t from = offsetof(struct state, bytes);
    return hash_bytes(0, buffer + from, bytes - from);
}

/* Addresses of whole pages. */
struct span {
    char *begin, *end;
    bool is_memory;                                     /* not variables */
};

static const struct image_host *owner;

void saved_begin(const struct image_host *host)
{
    owner = host;
    coroutines_protect();                               /* memory_open opens the guards */
}

/* ---- what an image consists of */

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));    /* of the linker: the image as it is loaded */

static char *page_of(uint64_t offset)
{
    return (char *)&__ehdr_start + offset / PAGE * PAGE;
}

/* Finds the spans by address, the memory of `memory_bytes` last or first. What is constant once it is loaded is not among
 * them, nor are numbers of the machine, which stay as kb_sim_create has set them. */
static unsigned find_spans(struct span spans[SPANS], uint64_t memory_bytes)
{
    const char *image = (const char *)&__ehdr_start;
    __asm__("" : "+r"(image));                          /* the sanitizer takes it for the header alone */
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)(image + __ehdr_start.e_phoff);
    char *constant_begin = NULL, *constant_end = NULL;
    unsigned count = 0;
    for (unsigned i = 0; i < __ehdr_start.e_phnum; i++)
        if (segments[i].p_type == PT_GNU_RELRO) {
            constant_begin = page_of(segments[i].p_vaddr);
            constant_end = page_of(segments[i].p_vaddr + segments[i].p_memsz);
        }
    spans[count++] = (struct span){owner->memory, owner->memory + memory_bytes, true};
    for (unsigned i = 0; i < __ehdr_start.e_phnum && count + 1 < SPANS; i++) {
        if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_W))
            continue;
        char *begin = page_of(segments[i].p_vaddr), *end = page_of(segments[i].p_vaddr + segments[i].p_memsz + PAGE - 1);
        if (constant_begin >= begin && constant_begin < end) {
            spans[count++] = (struct span){begin, constant_begin, false};
            begin = constant_end;
        }
        spans[count++] = (struct span){begin, end, false};
    }
    return count;
}

/* ---- pages */

ANY_BYTES static bool is_zero(const char *page)
{
    const uint64_t *word = (const uint64_t *)page;
    uint64_t any = 0;
    for (unsigned i = 0; i < WORDS && !any; i += 8)
        any = word[i] | word[i + 1] | word[i + 2] | word[i + 3] | word[i + 4] | word[i + 5] | word[i + 6] | word[i + 7];
    return !any;
}

ANY_BYTES static void copy(char *to, const char *from, uint64_t bytes)
{
#ifdef POOL_ASAN
    for (uint64_t i = 0; i < bytes; i += 8)             /* the sanitizer watches memcpy */
        *(volatile uint64_t *)(to + i) = *(const uint64_t *)(from + i);
#else
    memcpy(to, from, bytes);
#endif
}

/* The end of the pages from `at` on that are all 0, or all not. */
static char *piece_end(const struct span *span, char *at, bool *zero)
{
    *zero = is_zero(at);
    do
        at += PAGE;
    while (at < span->end && is_zero(at) == *zero);
    return at;
}

/* ---- save */

/* Writes pages to a buffer as long as they fit. Returns the bytes of all. */
static uint64_t write_pages(char *buffer, uint64_t size)
{
    struct span spans[SPANS];
    unsigned count = find_spans(spans, memory_used());
    uint64_t length = 0;
    for (const struct span *span = spans; span < spans + count; span++)
        for (char *at = span->begin, *end; at < span->end; at = end) {
            bool zero;
            end = piece_end(span, at, &zero);
            if (zero)
                continue;
            struct pages pages = {(uintptr_t)at, (uint64_t)(end - at)};
            if (length + sizeof pages + pages.bytes <= size) {
                memcpy(buffer + length, &pages, sizeof pages);
                copy(buffer + length + sizeof pages, at, pages.bytes);
            }
            length += sizeof pages + pages.bytes;
        }
    return length;
}

/* Writes a state to a buffer if that is large enough. Returns the bytes of the state. */
static uint64_t write_state(char *buffer, uint64_t size)
{
    struct state state = {.instance = {owner->id[0], owner->id[1]}, .memory_bytes = memory_used()};
    uint64_t head = size < sizeof state ? size : sizeof state;
    state.bytes = sizeof state + write_pages(size ? buffer + head : NULL, size - head);
    if (size < state.bytes)
        return state.bytes;
    VALGRIND_MAKE_MEM_DEFINED(buffer + sizeof state, state.bytes - sizeof state);
    memcpy(state.magic, magic, sizeof magic);
    memcpy(buffer, &state, sizeof state);
    state.hash = state_hash(buffer, state.bytes);
    memcpy(buffer, &state, sizeof state);
    return state.bytes;
}

/* Makes guards of stacks inaccessible again. If the system refuses, the instance has ended. */
static enum kb_status guard(void)
{
    if (coroutines_guard())
        return KB_OK;
    failure_ends();
    return refuse(KB_NO_MEMORY, "the system does not guard the stacks of kernels again");
}

enum kb_status saved_write(char *buffer, uint64_t size, uint64_t *needed)
{
    guest_rests();
    if (!memory_open(memory_used()))
        return refuse(KB_NO_MEMORY, "the system does not open the guards of the stacks of kernels");
    *needed = write_state(buffer, size);
    enum kb_status status = guard();
    if (status == KB_OK && size && size < *needed)
        return refuse(KB_TOO_SMALL, "the state has %" PRIu64 " bytes, the buffer %" PRIu64, *needed, size);
    return status;
}

/* ---- restore */

static enum kb_status check(const char *buffer, uint64_t size, struct state *state)
{
    if (size >= sizeof *state)
        memcpy(state, buffer, sizeof *state);
    if (size < sizeof *state || memcmp(state->magic, magic, sizeof magic))
        return refuse(KB_WRONG, "that is no state of kb_sim_save");
    if (state->instance[0] != owner->id[0] || state->instance[1] != owner->id[1])
        return refuse(KB_WRONG, "the state is of another instance: a state goes back to where it was saved, in this process or "
                                "in its forks");
    if (state->bytes > size)
        return refuse(KB_WRONG, "the state has %" PRIu64 " bytes, the buffer %" PRIu64, state->bytes, size);
    if (state->bytes < sizeof *state || state->hash != state_hash(buffer, state->bytes))
        return refuse(KB_WRONG, "the state is damaged");
    return KB_OK;
}

static const char zeros[PAGE];

/* Makes pages 0. */
static void clear(const struct span *span, char *from, char *to)
{
    if (span->is_memory && from < to)
        madvise(from, (size_t)(to - from), MADV_DONTNEED);
    for (char *page = from; !span->is_memory && page < to; page += PAGE)
        if (!is_zero(page))
            copy(page, zeros, PAGE);
}

/* Puts the pages of a span back. Returns what follows them in the buffer. */
static const char *put_pages(const struct span *span, const char *buffer, const char *end)
{
    char *at = span->begin;
    while (buffer < end) {
        struct pages pages;
        memcpy(&pages, buffer, sizeof pages);
        char *from = (char *)(uintptr_t)pages.at;
        if (from < span->begin || from >= span->end)
            break;
        clear(span, at, from);
        copy(from, buffer + sizeof pages, pages.bytes);
        at = from + pages.bytes;
        buffer += sizeof pages + pages.bytes;
    }
    clear(span, at, span->end);
    return buffer;
}

enum kb_status saved_restore(const char *buffer, uint64_t size)
{
    struct state state;
    enum kb_status status = check(buffer, size, &state);
    if (status != KB_OK)
        return status;
    struct span spans[SPANS];
    uint64_t most = memory_used() > state.memory_bytes ? memory_used() : state.memory_bytes;
    unsigned count = find_spans(spans, most);
    if (!memory_open(most))
        return refuse(KB_NO_MEMORY, "the system does not open the memory of the instance");
    memory_forget(most);
    guest_rests();
    const char *end = buffer + state.bytes;
    buffer += sizeof state;
    for (unsigned i = 0; i < count; i++)
        buffer = put_pages(&spans[i], buffer, end);
    memory_close(most);
    return guard();
}
