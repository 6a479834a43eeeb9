/* home.c: where kbgen finds its own files. */
#include "home.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "../../rt/common/hash.h"

const char *home_program(void)
{
    static char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0)
        die("read /proc/self/exe:");
    path[length] = 0;
    return path;
}

/* Returns the first of `places` below `root` that contains `file`, as an absolute path. */
static const char *find(const char *root, const char *const *places, const char *file)
{
    char *looked = "";
    for (; *places; places++) {
        const char *folder = arena_printf("%s%s", root, *places);
        if (access(arena_printf("%s/%s", folder, file), R_OK) == 0) {
            char *real = arena_alloc(PATH_MAX, 1);
            if (!realpath(folder, real))
                die("find %s:", folder);
            return real;
        }
        looked = arena_printf("%s%s%s", looked, *looked ? ", " : "", folder);
    }
    die("no %s in %s; build kbgen with make, or set KBGEN_HOME to its source tree or prefix", file, looked);
}

static const char *look(const char *const *at_home, const char *const *at_program, const char *file)
{
    const char *home = getenv("KBGEN_HOME");
    if (home && *home)
        return find(home, at_home, file);
    char *folder = arena_printf("%s", home_program());
    *strrchr(folder, '/') = 0;
    return find(folder, at_program, file);
}

const char *home_sources(void)
{
    static const char *const at_home[] = {"", "/share/kbgen", NULL};
    static const char *const at_program[] = {"/..", "/../..", "/../share/kbgen", NULL};
    return look(at_home, at_program, "templates/machine.c.in");
}

#define RUNTIME "runtime.o"

static const char *compiled(void)
{
    static const char *const at_home[] = {"", "/build", "/lib/kbgen", NULL};
    static const char *const at_program[] = {"", "/../lib/kbgen", NULL};
    static const char *known;
    return known ? known : (known = look(at_home, at_program, RUNTIME));
}

const char *home_runtime(void)
{
    return arena_printf("%s/" RUNTIME, compiled());
}

const char *home_image(void)
{
    return arena_printf("%s/image.o", compiled());
}

const char *home_front(void)
{
    return arena_printf("%s/front.o", compiled());
}

const char *home_prebuilt(void)
{
    return arena_printf("%s/prebuilt", compiled());
}

const char *home_identity(void)
{
    static const char *known;
    if (known)
        return known;
    size_t length;
    const char *bytes = read_file(home_program(), &length);
    if (!bytes)
        die("read %s:", home_program());
    struct hash *hash = hash_begin();
    hash_add(hash, bytes, length);
    return known = hash_end(hash);
}
