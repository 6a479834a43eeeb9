/* search_store.c: the store of searches, opened by several at once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gen/search/store.h"
#include "tap.h"

enum { ROUNDS = 60, SEARCHES = 4 };

/* Several open a store in the same moment. Returns how many could not. */
static int refused(const char *path, bool shared)
{
    int count = 0;
    for (int i = 0; i < SEARCHES; i++)
        if (!fork()) {
            store_close(store_open(path, shared));
            _exit(0);
        }
    for (int status; wait(&status) > 0;)
        count += status != 0;
    return count;
}

int main(void)
{
    char folder[] = "/tmp/kbgen-store-XXXXXX", path[sizeof folder + 16];
    if (!mkdtemp(folder))
        return 1;
    int new = 0, old = 0;
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(path, sizeof path, "%s/%d.db", folder, i);
        new += refused(path, false);
        old += refused(path, true);
        unlink(path);
    }
    rmdir(folder);
    expect(new == 0, "several searches make one store at once");
    expect(old == 0, "and change the kind of its log at once");
    return tests_end();
}
