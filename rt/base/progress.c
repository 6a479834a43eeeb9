/* progress.c: the progress line. */
#include "progress.h"

#include <stdio.h>
#include <unistd.h>

#include "stopwatch.h"

static double began, shown;                             /* 0: there is no work; shown > began: there is a line */

void progress(const char *what, uint64_t done, uint64_t all)
{
    double now = clock_seconds();
    if (began == 0)
        began = shown = now;
    if (now - began < 1 || now - shown < 0.1 || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r%s %3.0f %%", what, 100 * (double)done / (double)all);
    fflush(stderr);
    shown = now;
}

void progress_end(void)
{
    if (shown > began)
        fputs("\r\033[K", stderr);
    began = shown = 0;
}
