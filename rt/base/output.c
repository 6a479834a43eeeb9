/* output.c: output files: written under a temporary name, then renamed. */
#include "output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/fail.h"
#include "common/temporary.h"

struct output output_open(const char *path)
{
    struct stat status;
    if (!*path)
        usage_error("an output file needs a name");
    if (!strcmp(path, "-"))
        return (struct output){.path = path, .file = stdout};
    /* A pipe, /dev/null or another special file is written directly. */
    if (!stat(path, &status) && !S_ISREG(status.st_mode)) {
        struct output output = {.path = path, .file = fopen(path, "w")};
        if (!output.file)
            usage_error("cannot write %s:", path);
        return output;
    }
    struct output output = {.path = path, .temporary = arena_printf("%s.%ld.tmp", path, (long)getpid())};
    temporary_add(output.temporary);                    /* first: a signal may come at any time */
    output.file = fopen(output.temporary, "w+");        /* an op log is read back */
    if (!output.file)
        usage_error("cannot write %s:", path);
    return output;
}

struct output output_open_lines(const char *path)
{
    if (!*path || !strcmp(path, "-"))
        return output_open(path);
    struct output output = {.path = path, .file = fopen(path, "w")};
    if (!output.file)
        usage_error("cannot write %s:", path);
    return output;
}

static bool closing_several, one_failed;

void outputs_begin_closing(void)
{
    closing_several = true;
    one_failed = false;
}

void outputs_end_closing(void)
{
    closing_several = false;
    if (one_failed)
        fail_exit(STATUS_HOST_FAILED);
}

static void close_failed(const struct output *output)
{
    if (!closing_several)
        die("cannot write %s:", output->path);
    message("%s: cannot write %s: %s\n", program_name, output->path, strerror(errno));
    one_failed = true;
}

void output_close(struct output *output)
{
    bool failed = fflush(output->file) || ferror(output->file);
    if (output->file != stdout)
        failed |= fclose(output->file) != 0;
    if (failed) {
        close_failed(output);
        return;
    }
    if (!output->temporary)
        return;
    if (rename(output->temporary, output->path))
        die("cannot rename %s to %s:", output->temporary, output->path);
    temporary_forget(output->temporary);
}
