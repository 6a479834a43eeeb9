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

static volatile struct {
    const char *name;
    uint64_t done, all;
} part;

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
    if (state.began == 0) {
        progress_clear();                               /* the line of set-up */
        state.began = now;
    }
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

void progress_part(const char *name, uint64_t done, uint64_t all)
{
    part.done = done;
    part.all = all;
    part.name = name;
}

/* snprintf takes no lock and no memory for these formats. A phase that shows its own progress is not set-up. */
void progress_setup(const char *prefix, double seconds)
{
    double now = clock_seconds(), every_s = on_terminal() ? TERMINAL_S : LINES_S;
    const char *name = part.name;
    bool shows = on_terminal() ? seconds >= FIRST_S : progress_lines && seconds >= LINES_S;
    if (!shows || state.began || now - state.shown < every_s)
        return;
    char text[240];
    int length = snprintf(text, sizeof text, "%s%sset-up, %.0f s", on_terminal() ? "\r\033[K" : "", prefix, seconds);
    if (name && part.all && length < (int)sizeof text)
        length += snprintf(text + length, sizeof text - (size_t)length, ", %.60s %.0f %%", name,
                           100 * (double)part.done / (double)part.all);
    length = length < (int)sizeof text ? length : (int)sizeof text - 1;
    state.line = on_terminal();
    state.shown = now;
    if (!on_terminal())
        text[length++] = '\n';
    if (write(STDERR_FILENO, text, (size_t)length) < 0)
        return;
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
