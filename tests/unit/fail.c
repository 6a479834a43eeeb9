/* fail.c: failures of a library: the host leaves by longjmp, and gets the messages. */
#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/diag.h"
#include "tap.h"

static int tests, status;
static char said[1024];
static jmp_buf caller;

static void take(const char *text, void *arg)
{
    strncat(arg, text, sizeof said - 1 - strlen(arg));
}

static void leave(int with, void *arg)
{
    *(int *)arg = with;
    longjmp(caller, 1);
}

static void die_with_errno(void)
{
    errno = ENOENT;
    die("cannot read %s:", "x");
}

static void die_plainly(void)
{
    errno = ENOENT;
    die("it is %s", "full");
}

static void use_wrongly(void)
{
    usage_error("no option %d", 7);
}

static void run_wrongly(void)
{
    run_failed("at %d ps", 3);
}

static void bench_wrongly(void)
{
    misuse("bench.c", 12, "tensor '%s'", "x");
}

static void read_wrongly(void)
{
    error_at((struct where){0}, "what '%s' is", "y");
    errors_end();
}

static void read_well(void)
{
    errors_forget();
    errors_end();
    fail_exit(STATUS_GOOD);
}

static void expect_failure(void (*fail)(void), int with, const char *text, const char *what)
{
    said[0] = 0;
    status = -1;
    if (!setjmp(caller))
        fail();
    bool good = status == with && !strcmp(said, text);
    if (!good)
        printf("# status %d, said: %s\n", status, said);
    expect(good, "%s", what);
}

int main(void)
{
    program_name = "lib";
    fail_set_exit(leave, &status);
    message_set_take(take, said);
    expect_failure(die_with_errno, 3, "lib: cannot read x: No such file or directory\n",
                   "die returns to the host with status 3 and the text of errno");
    expect_failure(die_plainly, 3, "lib: it is full\n",
                   "a message without a colon is not followed by the text of errno");
    expect_failure(use_wrongly, 2, "lib: no option 7\n", "usage_error returns to the host with status 2");
    expect_failure(run_wrongly, 1, "lib: at 3 ps\n", "run_failed returns to the host with status 1");
    expect_failure(bench_wrongly, 2, "bench.c:12: error: tensor 'x'\n",
                   "misuse returns to the host with status 2 and names the bench's line");
    expect_failure(read_wrongly, 2, "lib: error: what 'y' is\n",
                   "errors_end returns to the host with status 2 after an error");
    expect_failure(read_well, 0, "", "errors_end goes on when errors were forgotten");
    return tests_end();
}
