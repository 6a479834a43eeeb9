/* output.c: files that appear whole or not at all: written beside their name, then renamed. */
#include "output.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/diag.h"

/* Temporary files that still wait for their name; removed when the program ends early. */
static struct {
    const char *volatile path;
    pid_t owner;
} unfinished[8];

static void remove_unfinished(void)
{
    for (unsigned i = 0; i < COUNT_OF(unfinished); i++)
        if (unfinished[i].path && unfinished[i].owner == getpid())
            unlink(unfinished[i].path);
}

/* The default action is in place again; it is taken when this returns. */
static void ended(int signal)
{
    remove_unfinished();
    raise(signal);
}

/* On the stack that trap.c provides, for a kernel's may be short. What is ignored, as below nohup, stays so. */
static void signals_catch(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = ended, .sa_flags = SA_RESETHAND | SA_ONSTACK}, before;
    for (unsigned i = 0; i < COUNT_OF(signals); i++)
        if (!sigaction(signals[i], NULL, &before) && before.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
}

static void remember(const char *path)
{
    static bool registered;
    if (!registered) {
        atexit(remove_unfinished);
        signals_catch();
    }
    registered = true;
    for (unsigned i = 0; i < COUNT_OF(unfinished); i++)
        if (!unfinished[i].path) {
            unfinished[i].owner = getpid();
            unfinished[i].path = path;
            return;
        }
}

static void forget(const char *path)
{
    for (unsigned i = 0; i < COUNT_OF(unfinished); i++)
        if (unfinished[i].path == path)
            unfinished[i].path = NULL;
}

struct output output_open(const char *path)
{
    struct stat status;
    if (!*path)
        usage_error("an output file needs a name");
    if (!strcmp(path, "-"))
        return (struct output){.path = path, .file = stdout};
    /* What is no regular file (a pipe, /dev/null) is written as it is. */
    if (!stat(path, &status) && !S_ISREG(status.st_mode)) {
        struct output output = {.path = path, .file = fopen(path, "w")};
        if (!output.file)
            usage_error("cannot write %s:", path);
        return output;
    }
    struct output output = {.path = path, .temporary = arena_printf("%s.%ld.tmp", path, (long)getpid())};
    remember(output.temporary);                         /* first: a signal may come at any time */
    output.file = fopen(output.temporary, "w+");         /* an op log is read back */
    if (!output.file)
        usage_error("cannot write %s:", path);
    return output;
}

void output_close(struct output *output)
{
    bool failed = fflush(output->file) || ferror(output->file);
    if (output->file != stdout)
        failed |= fclose(output->file) != 0;
    if (failed)
        die("cannot write %s:", output->path);
    if (!output->temporary)
        return;
    if (rename(output->temporary, output->path))
        die("cannot rename %s to %s:", output->temporary, output->path);
    forget(output->temporary);
}
