/* places.c: arrays of numbers, in memory and in a file, hold what they were given. */
#include "store/places.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "open_file.h"
#include "tap.h"

enum { ARRAYS = 40, STEPS = 4000, MEMORY = 20000 };

static struct {
    struct places places;
    uint32_t seed;
    bool used;
} arrays[ARRAYS];

static uint32_t number(uint32_t seed, uint64_t i)
{
    return (seed + (uint32_t)i) * UINT32_C(2654435761);
}

static void make(uint32_t which, uint64_t count)
{
    arrays[which].places = places_new(count);
    arrays[which].seed = (uint32_t)rand();
    arrays[which].used = true;
    for (uint64_t i = 0; i < count; i++)
        arrays[which].places.at[i] = number(arrays[which].seed, i);
    places_keep(&arrays[which].places);
}

static void drop(uint32_t which)
{
    places_drop(&arrays[which].places);
    arrays[which].used = false;
}

static bool is_right(uint32_t which, uint64_t first, uint64_t count)
{
    uint32_t read[PLACES_MOST];
    const uint32_t *at = places_read(&arrays[which].places, first, count, read);
    for (uint64_t i = 0; i < count; i++)
        if (at[i] != number(arrays[which].seed, first + i))
            return false;
    return true;
}

static void drop_all(void)
{
    for (uint32_t i = 0; i < ARRAYS; i++)
        if (arrays[i].used)
            drop(i);
    places_reset();
}

/* Arrays come and go, and are read in between. */
static void random_steps(void)
{
    bool right = true, filed = true;
    uint64_t most = 0;
    places_memory_bytes = MEMORY;
    for (int step = 0; step < STEPS; step++) {
        uint32_t which = (uint32_t)below(ARRAYS);
        uint64_t used = 0, held = 0, long_bytes = 0;
        if (!arrays[which].used) {
            make(which, 1 + (below(2) ? below(20) : below(PLACES_MOST)));
        } else if (below(3)) {
            uint64_t first = below(arrays[which].places.count);
            right &= is_right(which, first, 1 + below(arrays[which].places.count - first));
        } else {
            drop(which);
        }
        for (uint32_t i = 0; i < ARRAYS; i++) {
            uint64_t bytes = arrays[i].used && arrays[i].places.at ? arrays[i].places.count * sizeof(uint32_t) : 0;
            used += arrays[i].used && !arrays[i].places.at;
            held += bytes;
            long_bytes += arrays[i].places.count >= PLACES_LONG ? bytes : 0;
        }
        most = used > most ? used : most;
        filed &= held <= MEMORY || long_bytes <= MEMORY;
    }
    expect(right, "arrays in memory and in a file hold what they were given");
    expect(filed, "long ones are in the file once all take more than there may be in memory");
    expect(most > 5 && file_bytes() <= (int64_t)(most * PLACES_MOST * sizeof(uint32_t)),
           "the file is no longer than the most that were in it at a time: %u arrays", (unsigned)most);
    drop_all();
    expect(file_bytes() < 0, "the file is closed when all are gone");
}

/* Long arrays stay in memory and hold what they were given. */
static void stay(const char *why)
{
    bool good = true;
    for (uint32_t i = 0; i < 3; i++)
        make(i, PLACES_MOST);
    for (uint32_t i = 0; i < 3; i++)
        good &= arrays[i].places.at && is_right(i, 0, PLACES_MOST);
    expect(good, "long arrays stay in memory %s", why);
}

int main(void)
{
    random_steps();
    places_memory_bytes = UINT64_MAX;
    stay("if no file is wanted");
    expect(file_bytes() < 0, "there is none then");
    drop_all();

    places_memory_bytes = 0;
    setenv("TMPDIR", "/no/such/folder", 1);
    stay("if no file can be made");
    drop_all();
    unsetenv("TMPDIR");

    struct rlimit before, none = {0};
    getrlimit(RLIMIT_FSIZE, &before);
    none.rlim_max = before.rlim_max;
    none.rlim_cur = PLACES_MOST * sizeof(uint32_t) / 2;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    stay("if the file cannot be written");
    setrlimit(RLIMIT_FSIZE, &before);
    make(3, PLACES_MOST);
    expect(!arrays[3].places.at && is_right(3, 0, PLACES_MOST) && is_right(1, 5, 7), "they go there again when it can be");
    drop_all();
    return tests_end();
}
