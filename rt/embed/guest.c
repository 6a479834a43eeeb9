/* guest.c: what an image has in place of what belongs to a process. */
#define _GNU_SOURCE                                     /* fopencookie */
#include "guest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/leave.h"
#include "base/progress.h"
#include "base/threads.h"
#include "common/arena.h"
#include "common/completion.h"
#include "common/fail.h"
#include "common/pool.h"
#include "common/temporary.h"
#include "failure.h"
#include "launch/kernel.h"
#include "launch/trap.h"
#include "launch/watchdog.h"
#include "session/simulation.h"
#include "sim/coroutine.h"

/* The linker would export what the C library has as well. */
#pragma GCC visibility push(hidden)

/* ---- data of the C library: an image has its own, since it is compiled as a program is. There is no command line. */

#undef stdout
#undef stderr
FILE *stdout, *stderr;
int optind, optopt, opterr;
char *optarg;
#ifdef POOL_ASAN
int __asan_option_detect_stack_use_after_return;        /* coroutines have no second stacks for it */
#endif

/* ---- streams */

static struct {
    char *at;                                           /* of the caller; NULL: nobody reads */
    uint64_t size, length;
    char buffer[4096];                                  /* of the stream */
} text;

static ssize_t text_add(void *cookie, const char *bytes, size_t count)
{
    (void)cookie;
    uint64_t left = text.length < text.size ? text.size - text.length : 0;
    if (text.at && left)
        memcpy(text.at + text.length, bytes, count < left ? count : left);
    text.length += count;
    return (ssize_t)count;
}

void guest_begin(void)
{
    stdout = fopencookie(NULL, "w", (cookie_io_functions_t){.write = text_add});
    if (!stdout)
        die("cannot open a stream:");
    setvbuf(stdout, text.buffer, _IOFBF, sizeof text.buffer);
    stderr = stdout;
}

void guest_end(void)
{
    if (stdout)
        fclose(stdout);
    stdout = stderr = NULL;
}

FILE *guest_text_begin(char *buffer, uint64_t size)
{
    fflush(stdout);
    text.at = buffer;
    text.size = size;
    text.length = 0;
    return stdout;
}

uint64_t guest_text_end(void)
{
    fflush(stdout);
    text_add(NULL, "", 1);
    text.at = NULL;
    return text.length;
}

void guest_rests(void)
{
    fflush(stdout);
}

/* ---- ends */

/* A kernel or bench has called what would end the process, or an assertion of it has failed. */
static _Noreturn void ends(const char *text)
{
    if (threads_take_message(text) && threads_take_message("\n"))
        threads_give_up(STATUS_HOST_FAILED);
    struct tl *tl = all_kernels.running;
    if (tl)
        kernel_fault(tl, FAULT_KERNEL_ERROR, NULL, 0, "%s; %s", text, kernel_last_call(tl));
    if (coroutine_current() && simulation_is_under_way())
        simulation_bench_fault(text);
    message("%s: %s\n", program_name, text);
    failure_leave(KB_HOST_FAILED);
}

void leave_process(int status)
{
    ends(arena_printf("the end of the process with status %d", status));
}

void leave_watch(void (*leaves)(const char *call, int status))
{
    (void)leaves;
}

void exit(int status)
{
    ends(arena_printf("it called exit(%d)", status));
}

void quick_exit(int status)
{
    ends(arena_printf("it called quick_exit(%d)", status));
}

void _exit(int status)
{
    ends(arena_printf("it called _exit(%d)", status));
}

void _Exit(int status)
{
    ends(arena_printf("it called _Exit(%d)", status));
}

void pthread_exit(void *value)
{
    (void)value;
    ends("it called pthread_exit(0)");
}

void abort(void)
{
    ends("SIGABRT: abort(), a failed assert(), or a pointer that free() does not know");
}

void __assert_fail(const char *expression, const char *file, unsigned line, const char *function)
{
    message("%s:%u: %s: Assertion `%s' failed.\n", file, line, function, expression);
    abort();
}

/* ---- texts that the C library would allocate */

char *strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

int vasprintf(char **text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    *text = length < 0 ? NULL : malloc((size_t)length + 1);
    return *text ? vsnprintf(*text, (size_t)length + 1, format, args) : -1;
}

/* ---- a process that is the simulator's */

bool progress_lines;
void (*progress_attend)(void);
const char *watchdog_prefix = "";

void progress(const char *what, uint64_t done, uint64_t all)
{
    (void)what, (void)done, (void)all;
}

bool progress_is_due(void)
{
    return false;
}

void progress_show(const char *text)
{
    (void)text;
}

void progress_part(const char *name, uint64_t done, uint64_t all)
{
    (void)name, (void)done, (void)all;
}

void progress_end(void)
{
}

void progress_clear(void)
{
}

void completion_offer(const char *word, const char *about)
{
    (void)word, (void)about;
}

void temporary_add(const char *path)
{
    (void)path;
}

void temporary_forget(const char *path)
{
    (void)path;
}

void temporary_remove_all(void)
{
}

void watchdog_start(const struct watchdog_limits *limits, const struct watchdog_run *run)
{
    (void)limits, (void)run;
}

void watchdog_stop(void)
{
}

bool watchdog_ends_here(void)
{
    return false;
}

const char *watchdog_ended(void)
{
    return NULL;
}

int watchdog_status(void)
{
    return STATUS_GOOD;
}

void watchdog_print_kernels(void)
{
}
