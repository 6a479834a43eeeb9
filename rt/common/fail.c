/* fail.c: the one exit of programs that cannot go on, and the one way out for their messages. */
#define _GNU_SOURCE                                     /* vasprintf */
#include "fail.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"

const char *program_name = "kbgen";

static struct {
    void (*leave)(int status, void *arg);
    void *leave_arg;
    void (*take)(const char *text, void *arg);
    void *take_arg;
    void (*before)(void);
} hooks;

void fail_set_exit(void (*leave)(int status, void *arg), void *arg)
{
    hooks.leave = leave;
    hooks.leave_arg = arg;
}

void fail_exit(int status)
{
    if (hooks.leave)
        hooks.leave(status, hooks.leave_arg);
    exit(status);
}

void message_set_take(void (*take)(const char *text, void *arg), void *arg)
{
    hooks.take = take;
    hooks.take_arg = arg;
}

void message_set_before(void (*before)(void))
{
    hooks.before = before;
}

void message_list(const char *format, va_list args)
{
    if (hooks.before)
        hooks.before();
    char *text;
    bool made = vasprintf(&text, format, args) >= 0;
    if (made)
        make_printable(text, true);
    if (hooks.take)
        hooks.take(made ? text : format, hooks.take_arg);   /* without memory, better that than nothing */
    else
        fputs(made ? text : format, stderr);
    if (made)
        free(text);
}

void message(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    message_list(format, args);
    va_end(args);
}

/* A text of one line: a line break can only be of a name that the user has given. */
static void message_line(const char *format, va_list args)
{
    char *text;
    if (vasprintf(&text, format, args) < 0) {
        message("%s", format);
        return;
    }
    make_printable(text, false);
    message("%s", text);
    free(text);
}

/* What the program has printed so far comes before its last words. */
__attribute__((nonnull(1))) static void complain(const char *format, va_list args)
{
    int error = errno;
    fflush(stdout);
    message("%s: ", program_name);
    message_line(format, args);
    size_t length = strlen(format);
    if (length && format[length - 1] == ':')
        message(" %s\n", strerror(error));
    else
        message("\n");
}

void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(format, args);
    va_end(args);
    fail_exit(STATUS_HOST_FAILED);
}

void usage_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(format, args);
    va_end(args);
    fail_exit(STATUS_WRONG_USE);
}

void run_failed(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(format, args);
    va_end(args);
    fail_exit(STATUS_RUN_FAILED);
}

static _Noreturn void misuse_list(struct call_site call, const char *format, va_list args)
{
    fflush(stdout);
    message("%s:%u: error: ", call.file, (unsigned)call.line);
    if (call.name)
        message("%s: ", call.name);
    message_line(format, args);
    message("\n");
    fail_exit(STATUS_WRONG_USE);
}

void misuse_of(struct call_site call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    misuse_list(call, format, args);
}

void misuse(const char *file, uint32_t line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    misuse_list((struct call_site){NULL, file, line}, format, args);
}
