/* waiting.c: copies and results wait in their order, in memory and in a file. */
#include "store/waiting.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/unnamed.h"
#include "open_file.h"
#include "tap.h"

/* MOST: more than wait in memory at first; FULL: more than wait in memory later. */
enum { STEPS = 2000, MOST = 120000, FULL = 13000 };

static uint64_t added, took;                            /* each has the next number, from 0 on */
static uint64_t tried_in_vain;

static uint64_t scattered(uint64_t number, uint64_t salt)
{
    return (number + salt * 1000) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

/* What the one of a number is. */
static struct view view_of(uint64_t number, uint64_t salt)
{
    struct view view = {.memory = (uint32_t)scattered(number, salt), .dtype = (enum dtype)(number % 3), .rank = 1 + (uint32_t)(number % VIEW_RANK),
                        .offset = scattered(number, salt + 1), .shape = {1, 1, 1, 1}};
    for (uint32_t i = 0; i < view.rank; i++) {
        view.shape[i] = scattered(number, 7 + i);
        view.stride[i] = scattered(number, salt + 2 + i);
    }
    return view;
}

static bool is_strided(uint64_t number)
{
    return scattered(number, 1) % 3 == 0;
}

/* Returns whether there was space in memory. */
static bool add(void)
{
    struct view to = view_of(added, 20), from = view_of(added, 30);
    struct waiting *one = is_strided(added) ? waiting_new(&to, &from) : waiting_new(NULL, NULL);
    if (!one) {
        tried_in_vain++;
        return false;
    }
    *one = (struct waiting){to.memory, from.memory, to.offset, from.offset, is_strided(added) ? 0 : 1 + added,
                            added % 2 ? (const struct maker *)(uintptr_t)added : NULL};
    added++;
    return true;
}

static bool views_are(const struct waiting *one)
{
    struct view to, from, to_was = view_of(took, 20), from_was = view_of(took, 30);
    waiting_views(one, &to, &from);
    bool good = to.dtype == to_was.dtype && to.rank == to_was.rank && from.dtype == to_was.dtype && from.rank == to_was.rank;
    for (uint32_t i = 0; i < VIEW_RANK; i++)
        good &= to.shape[i] == to_was.shape[i] && from.shape[i] == to_was.shape[i] && to.stride[i] == to_was.stride[i]
                && from.stride[i] == from_was.stride[i];
    return good;
}

/* Whether the next one is taken as it was added; if none waits, whether all were taken. */
static bool take(void)
{
    const struct waiting *one = waiting_take();
    if (!one)
        return took == added;
    struct view to = view_of(took, 20), from = view_of(took, 30);
    bool good = one->to_memory == to.memory && one->from_memory == from.memory && one->to == to.offset && one->from == from.offset
                && one->maker == (took % 2 ? (const struct maker *)(uintptr_t)took : NULL)
                && (is_strided(took) ? one->bytes == 0 && views_are(one) : one->bytes == 1 + took);
    took++;
    return good;
}

static bool take_all(void)
{
    bool good = true;
    while (took < added && good)
        good = take();
    return good && take();
}

static void add_many(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (!add() && (!waiting_to_file() || !add()))
            return;
}

static void clear(void)
{
    waiting_clear();
    took = added;
}

static void random_steps(void)
{
    bool good = true;
    uint64_t filed = 0;
    for (int step = 0; step < STEPS && good; step++) {
        uint64_t kind = below(100), count = below(2000);
        if (kind < 70)
            add_many(count);
        else if (kind < 94)
            for (uint64_t i = 0; i < count && good; i++)
                good = take();
        else if (kind < 97)
            good = waiting_to_file();
        else if (kind < 99)
            good = take_all();
        else
            clear();
        filed += file_bytes() > 0;
    }
    expect(good && take_all(), "all are taken as they were added, in their order");
    expect(filed > STEPS / 4 && tried_in_vain > 20, "many of them waited in a file: it was there after %u of %u steps", (unsigned)filed, STEPS);
    expect(file_bytes() < 0, "there is no file when none waits");
}

/* As many as may wait in memory do: returns how many. */
static uint64_t fill(void)
{
    uint64_t before = added;
    while (added - before < MOST && add()) {
    }
    return added - before;
}

static void no_file(const char *why)
{
    fill();
    bool stay = !waiting_to_file();
    expect(stay && !add() && take_all() && file_bytes() < 0, "those in memory stay there, in their order, %s", why);
}

/* The file has some, and then no more. */
static void full_file(const char *why)
{
    fill();
    bool stay = !waiting_to_file();
    expect(stay && file_bytes() > 0 && !add() && take_all(), "those behind a file that is full stay in memory, in their order: %s", why);
}

int main(void)
{
    uint64_t first = fill();
    expect(first > 50000 && first < MOST && take_all(), "%u wait in memory at first", (unsigned)first);
    uint64_t later = fill();
    expect(later > 5000 && later < FULL && take_all(), "%u do later", (unsigned)later);
    random_steps();

    fill();
    take();
    clear();
    expect(take() && fill() > 0 && waiting_to_file() && file_bytes() > 0, "those that are forgotten are not taken");
    clear();
    expect(take() && file_bytes() < 0, "the file is gone with them");

    fill();
    for (int i = 0; i < 100; i++)
        take();
    expect(waiting_to_file() && take_all(), "of a block that was taken in part, the rest goes to the file");

    bool good = add();
    for (int i = 0; i < 3; i++)
        good &= take() && add();
    expect(good && take_all(), "one that is added behind the last one that was taken waits");

    unnamed_allowed = false;
    no_file("if there may be none");
    unnamed_allowed = true;
    uint64_t most = waiting_file_bytes;
    waiting_file_bytes = 1 << 17;
    full_file("it has as many bytes as it may");
    waiting_file_bytes = most;
    setenv("TMPDIR", "/no/such/folder", 1);
    no_file("if there can be none");
    unsetenv("TMPDIR");

    struct rlimit before, few;
    getrlimit(RLIMIT_FSIZE, &before);
    few = (struct rlimit){100000, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &few);
    full_file("no more can be written");
    setrlimit(RLIMIT_FSIZE, &before);

    fill();
    waiting_to_file();
    waiting_reset();
    took = added;
    expect(take() && file_bytes() < 0 && fill() > 50000, "all begins again");
    waiting_reset();
    took = added;
    expect(fill() > 50000 && waiting_to_file() && fill() < FULL && take_all(), "fewer wait in memory once some are in the file");
    waiting_reset();
    return tests_end();
}
