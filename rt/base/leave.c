/* leave.c: exit and its relatives, in place of those of the C library. */
#define _GNU_SOURCE                                     /* RTLD_NEXT */
#include "leave.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void (*watch)(const char *call, int status);

void leave_watch(void (*leaves)(const char *call, int status))
{
    watch = leaves;
}

static void said(const char *call, int status)
{
    if (watch)
        watch(call, status);
}

static _Noreturn void leave_at_once(int status)
{
    for (;;)
        syscall(SYS_exit_group, status);
}

static _Noreturn void leave_by(const char *name, int status)
{
    void (*function)(int) = (void (*)(int))dlsym(RTLD_NEXT, name);
    if (function)
        function(status);
    leave_at_once(status);
}

void leave_process(int status)
{
    leave_by("exit", status);
}

void exit(int status)
{
    said("exit", status);
    leave_by("exit", status);
}

void quick_exit(int status)
{
    said("quick_exit", status);
    leave_by("quick_exit", status);
}

void _exit(int status)
{
    said("_exit", status);
    leave_at_once(status);
}

void _Exit(int status)
{
    said("_Exit", status);
    leave_at_once(status);
}

void pthread_exit(void *value)
{
    said("pthread_exit", 0);
    void (*function)(void *) = (void (*)(void *))dlsym(RTLD_NEXT, "pthread_exit");
    if (function)
        function(value);
    leave_at_once(EXIT_FAILURE);
}
