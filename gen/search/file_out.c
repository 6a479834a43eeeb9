/* file_out.c: an output of a subcommand. */
#include "file_out.h"

#include <string.h>

#include "../../rt/common/fail.h"
#include "../build/output.h"

struct file_out file_out_open(const char *path, const char *input)
{
    if (!path || !strcmp(path, "-"))
        return (struct file_out){.file = stdout};
    if (!*path)
        usage_error("-o takes the path of a file; not ''");
    out_check_file(path, input);
    struct file_out out = {.path = path, .temporary = temporary(temporary_folder(path, false), "out")};
    out.file = fopen(out.temporary, "w");
    if (!out.file)
        die("write %s:", path);
    return out;
}

void file_out_close(struct file_out *out)
{
    if (ferror(out->file) || (out->path ? fclose(out->file) : fflush(out->file)))
        die("write to %s:", out->path ? out->path : "standard output");
    if (out->path)
        move_into_place(out->temporary, out->path);
}
