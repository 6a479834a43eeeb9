/* progress.c: the progress line. */
#include "progress.h"

#include <stdio.h>
#include <unistd.h>

#include "human.h"
#include "stopwatch.h"

static const double FIRST_S = 2, TERMINAL_S = 0.2, LINES_S = 10;

bool progress_lines;
void (*progress_attend)(void);

static struct {
    double began, shown;                                /* of this phase, its last text; 0: none */
    bool line;                                          /* there is one on the terminal */
} state;

static bool on_terminal(void)
{
    static int known = -1;
    if (known < 0)
        known = isatty(STDERR_FILENO);
    return known;
}

bool progress_is_due(void)
{
    double now = clock_seconds();
    if (state.began == 0)
        state.began = now;
    if (on_terminal())
        return now - state.began >= FIRST_S && now - state.shown >= TERMINAL_S;
    return progress_lines && now - (state.shown > state.began ? state.shown : state.began) >= LINES_S;
}

void progress_show(const char *text)
{
    bool terminal = on_terminal();
    fprintf(stderr, terminal ? "\r\033[K%s" : "%s\n", text);
    fflush(stderr);
    state.line = terminal;
    state.shown = clock_seconds();
}

void progress(const char *what, uint64_t done, uint64_t all)
{
    char text[200];
    if (progress_attend)
        progress_attend();
    if (!progress_is_due())
        return;
    double share = (double)done / (double)all, elapsed = clock_seconds() - state.began;
    int length = snprintf(text, sizeof text, "%s %3.0f %%", what, 100 * share);
    if (share > 0)
        snprintf(text + length, sizeof text - (size_t)length, ", about %s left",
                 human_seconds(elapsed * (1 - share) / share));
    progress_show(text);
}

void progress_clear(void)
{
    if (state.line)
        fputs("\r\033[K", stderr);
    state.line = false;
}

void progress_end(void)
{
    progress_clear();
    state.began = state.shown = 0;
}
