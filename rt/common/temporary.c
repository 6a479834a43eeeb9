/* temporary.c: a list of paths that a signal handler can walk.
 *
 * Signals interrupt the thread that changes the list, so each change is one store: a node is complete before the list
 * leads to it, and out of the list before it is freed. */
#include "temporary.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "arena.h"
#include "fail.h"

struct temporary {
    struct temporary *older;
    const char *path;
    pid_t owner;                                        /* a child has a copy of the list */
};

static struct {
    struct temporary *volatile newest;
    void (*volatile before)(void);
    bool watching;
} temporaries;

void temporary_remove_all(void)
{
    for (const struct temporary *t = temporaries.newest; t; t = t->older)
        if (t->owner == getpid() && unlink(t->path))
            rmdir(t->path);
}

static void leave(void)
{
    if (temporaries.before)
        temporaries.before();
    temporary_remove_all();
}

/* The default action is in place again (SA_RESETHAND); it is taken when this returns. */
static void ended(int signal)
{
    leave();
    raise(signal);
}

/* The handler runs on the alternate stack, if there is one: a kernel's stack may be short. A signal that is ignored, as
 * under nohup, stays ignored. */
static void watch(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct sigaction action = {.sa_handler = ended, .sa_flags = SA_RESETHAND | SA_ONSTACK}, before;
    if (temporaries.watching)
        return;
    temporaries.watching = true;
    for (unsigned i = 0; i < COUNT_OF(signals); i++)
        if (!sigaction(signals[i], NULL, &before) && before.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
    atexit(leave);
}

void temporary_add(const char *path)
{
    struct temporary *t = malloc(sizeof *t);
    if (!t)
        die("out of memory for %zu bytes:", sizeof *t);
    watch();
    *t = (struct temporary){temporaries.newest, path, getpid()};
    temporaries.newest = t;
}

void temporary_forget(const char *path)
{
    struct temporary *t = temporaries.newest, *newer = NULL;
    while (t && t->path != path) {
        newer = t;
        t = t->older;
    }
    if (!t)
        return;
    if (newer)
        newer->older = t->older;
    else
        temporaries.newest = t->older;
    free(t);
}

void temporary_set_before(void (*before)(void))
{
    watch();
    temporaries.before = before;
}
