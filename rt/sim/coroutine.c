/* coroutine.c: coroutines by Boost.Context, which switches in user space.
 *
 * Code of the user runs here, and may jump (longjmp) from one stack to another. So every switch goes to whoever resumed
 * the coroutine that runs, whatever coroutine the caller names and whatever stack it is on; a coroutine that was found on
 * the stack of another one is lost, and the other one too: its frames are overwritten.
 *
 * Each stack has a guard of several pages below: one would not do, since functions of the C library, unlike kernels, skip
 * pages when they take a large frame. Address sanitizer and valgrind are told of the stacks. */
#include "coroutine.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/diag.h"

#if defined(__SANITIZE_ADDRESS__)
#define KB_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KB_ASAN 1
#endif
#endif

#ifdef KB_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
enum { STACK_FACTOR = 4 };                              /* instrumented frames are larger */
#else
enum { STACK_FACTOR = 1 };
#endif

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(from, to) ((void)(from), (void)(to), 0)
#endif

/* Boost.Context's C interface; it has no C header. */
typedef void *fcontext;
struct switched {
    fcontext context;                                   /* of the side that was left */
    void *data;
};
struct switched jump_fcontext(fcontext to, void *data);
fcontext make_fcontext(void *stack_top, size_t bytes, void (*entry)(struct switched));

struct coroutine {
    fcontext context, resumer;
    void (*body)(void *);
    void *arg;
    char *mapping;                                      /* the guard, and the stack above it */
    char *stack;
    size_t bytes;                                       /* of the stack */
    struct coroutine *next;                                  /* free list */
    struct coroutine *older;                                 /* the one made before it */
    bool returned, lost;
#ifdef KB_ASAN
    void *fake_stack, *resumer_fake_stack;
    const void *resumer_bottom;
    size_t resumer_bytes;
#endif
};

static struct {
    struct coroutine *unused, *newest;                  /* free list; all, the newest first */
    struct coroutine *current;                          /* that runs; NULL: none */
    uint64_t resumed;
    bool closed;                                        /* a switch ends the process */
    bool protects, marks;                               /* guards are protected pages; marked ones have proved to be guards */
} coroutines;

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t guard_bytes(void)
{
    return 4 * page_bytes();
}

/* Marks a guard (Linux 6.13): with a stack, that takes half the time of protecting pages, and all stacks can be one mapping. A
 * system that ignores advice may say that it has made it: the first one is tried, by a call for which valgrind reads nothing
 * itself. */
static bool guard_mark(const struct coroutine *coro)
{
    enum { POPULATE_READ = 22, GUARD_INSTALL = 102 };   /* as MADV_..., which older headers lack */
    if (coroutines.protects || madvise(coro->mapping, guard_bytes(), GUARD_INSTALL))
        return false;
    coroutines.marks = coroutines.marks || (madvise(coro->mapping, guard_bytes(), POPULATE_READ) && errno == EFAULT);
    return coroutines.marks;
}

static bool stack_guard(const struct coroutine *coro)
{
    coroutines.protects = !guard_mark(coro);
    return !coroutines.protects || mprotect(coro->mapping, guard_bytes(), PROT_NONE) == 0;
}

static void stack_map(struct coroutine *coro)
{
    size_t guard = guard_bytes();
    coro->mapping = mmap(NULL, coro->bytes + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (coro->mapping == MAP_FAILED || !stack_guard(coro))
        die("no memory for a kernel's stack of %zu bytes (vm.max_map_count, or a limit on address space?):",
            coro->bytes);
    coro->stack = coro->mapping + guard;
    (void)VALGRIND_STACK_REGISTER(coro->stack, coro->stack + coro->bytes);
}

/* What functions of the runtime that a kernel calls need of its stack, printf included. */
enum { LEAST_STACK_BYTES = 32 << 10 };

struct coroutine *coroutine_new(void (*body)(void *), void *arg, size_t stack_bytes)
{
    if (stack_bytes < LEAST_STACK_BYTES)
        stack_bytes = LEAST_STACK_BYTES;
    size_t page = page_bytes(), bytes = (stack_bytes * STACK_FACTOR + page - 1) / page * page;
    struct coroutine **link = &coroutines.unused;
    while (*link && (*link)->bytes != bytes)
        link = &(*link)->next;
    struct coroutine *coro = *link;
    if (coro) {
        *link = coro->next;
    } else {
        coro = calloc(1, sizeof *coro);
        if (!coro)
            die("no memory for a coroutine");
        coro->bytes = bytes;
        coro->older = coroutines.newest;
        coroutines.newest = coro;
        stack_map(coro);
    }
    coro->body = body;
    coro->arg = arg;
    coro->context = NULL;
    coro->returned = coro->lost = false;
    return coro;
}

static bool holds(const struct coroutine *coro, const char *address)
{
    return (uintptr_t)address - (uintptr_t)coro->stack < coro->bytes;
}

/* The coroutine on whose stack the one that runs is; NULL: its own, or a stack that belongs to no coroutine, which is
 * not wrong. */
static struct coroutine *strayed_to(void)
{
    const char *here = __builtin_frame_address(0);
    if (holds(coroutines.current, here))
        return NULL;
    struct coroutine *coro = coroutines.newest;
    while (coro && !holds(coro, here))
        coro = coro->older;
    return coro;
}

bool coroutine_strayed(void)
{
    return strayed_to();
}

/* Marks those as lost that the switch finds on a wrong stack. */
static void check_stack(const struct coroutine *named)
{
    struct coroutine *current = coroutines.current, *other = strayed_to();
    if (named != current || other)
        current->lost = true;
    if (other)
        other->lost = true;
}

/* Switches to the resumer of the coroutine that runs, and tells the address sanitizer before and after. */
static void leave(const struct coroutine *named)
{
    if (coroutines.closed)
        _exit(EXIT_FAILURE);
    check_stack(named);
    struct coroutine *coro = coroutines.current;
#ifdef KB_ASAN
    __sanitizer_start_switch_fiber(coro->returned ? NULL : &coro->fake_stack, coro->resumer_bottom,
                                   coro->resumer_bytes);
#endif
    coro->resumer = jump_fcontext(coro->resumer, coro).context;
#ifdef KB_ASAN
    __sanitizer_finish_switch_fiber(coro->fake_stack, &coro->resumer_bottom, &coro->resumer_bytes);
#endif
}

static void run(struct switched from)
{
    struct coroutine *coro = from.data;
#ifdef KB_ASAN
    __sanitizer_finish_switch_fiber(NULL, &coro->resumer_bottom, &coro->resumer_bytes);
#endif
    coro->resumer = from.context;
    coro->body(coro->arg);
    coro->returned = coro == coroutines.current;
    leave(coro);
}

uint64_t coroutine_resumed(void)
{
    return coroutines.resumed;
}

enum coroutine_end coroutine_resume(struct coroutine *coro)
{
    if (coro->lost)
        return COROUTINE_LOST;
    coroutines.resumed++;
    coroutines.current = coro;
    if (!coro->context)
        coro->context = make_fcontext(coro->stack + coro->bytes, coro->bytes, run);
#ifdef KB_ASAN
    __sanitizer_start_switch_fiber(&coro->resumer_fake_stack, coro->stack, coro->bytes);
#endif
    coro->context = jump_fcontext(coro->context, coro).context;
#ifdef KB_ASAN
    __sanitizer_finish_switch_fiber(coro->resumer_fake_stack, NULL, NULL);
#endif
    coroutines.current = NULL;
    return coro->lost ? COROUTINE_LOST : coro->returned ? COROUTINE_RETURNED : COROUTINE_SUSPENDED;
}

struct coroutine *coroutine_current(void)
{
    return coroutines.current;
}

void coroutines_close(void)
{
    coroutines.closed = true;
}

void coroutine_suspend(struct coroutine *coro)
{
    leave(coro);
}

size_t coroutine_stack_bytes(const struct coroutine *coro)
{
    return coro->bytes;
}

bool coroutine_guards(const struct coroutine *coro, const void *address)
{
    return (uintptr_t)address - (uintptr_t)coro->mapping < guard_bytes();
}

bool coroutines_guard(void)
{
    bool all = true;
    for (const struct coroutine *coro = coroutines.newest; coro; coro = coro->older)
        all &= stack_guard(coro);
    return all;
}

void coroutines_protect(void)
{
    coroutines.protects = true;
}

bool coroutine_announced(void)
{
#ifdef KB_ASAN
    return true;
#else
    return false;
#endif
}

void coroutine_free(struct coroutine *coro)
{
#ifdef KB_ASAN
    ASAN_UNPOISON_MEMORY_REGION(coro->stack, coro->bytes);      /* its variables are gone */
#endif
    coro->next = coroutines.unused;
    coroutines.unused = coro;
}

void coroutine_reset(void)
{
    coroutines.unused = coroutines.current = NULL;
    for (struct coroutine *coro = coroutines.newest; coro; coro = coro->older)
        coroutine_free(coro);
}
