/* packed.c: a packed file that is broken is an internal error, not a failed run. */
#include <string.h>

#include "base/packed.h"
#include "common/fail.h"
#include "tap.h"

static char said[1024];

static void take(const char *text, void *arg)
{
    strncat(arg, text, sizeof said - 1 - strlen(arg));
}

static void leave(int status, void *arg)
{
    (void)arg;
    expect(status == STATUS_HOST_FAILED && !strcmp(said, "sim: internal error: zlib cannot unpack the page\n"),
           "a packed file that is broken is an internal error: status 3");
    exit(tests_end());
}

int main(void)
{
    static const unsigned char broken[] = "this is no gzip file\0\0\0";
    program_name = "sim";
    fail_set_exit(leave, NULL);
    message_set_take(take, said);
    unpack(broken, broken + sizeof broken, "the page");
    expect(false, "a packed file that is broken is unpacked");
    return tests_end();
}
