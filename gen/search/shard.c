/* shard.c: a part of a search, which one task of a job array evaluates. */
#include "shard.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/fail.h"

enum { SHARDS_MOST = 1000000 };

struct engine {
    const char *name, *index, *first, *last, *step, *count;
};

static const struct engine engines[] = {
#define ENGINE(name, index, first, last, step, count) {name, index, first, last, step, count},
#include "shards.def"
#undef ENGINE
};

/* Reads a whole number. Returns false if the text is none, as "undefined" of Grid Engine. */
static bool read_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return isdigit((unsigned char)*text) && !*end && !errno;
}

/* The number that a variable has, or that is given instead of its name; `otherwise` without a name or variable. */
static uint64_t number_of(const char *name, uint64_t otherwise)
{
    uint64_t number;
    const char *text = !name ? NULL : isdigit((unsigned char)*name) ? name : getenv(name);
    if (!text)
        return otherwise;
    if (!read_number(text, &number))
        usage_error("--shard auto: %s is '%s', which is no whole number", name, text);
    return number;
}

static const struct engine *engine_here(void)
{
    const char *text;
    uint64_t number;
    for (size_t i = 0; i < COUNT_OF(engines); i++)
        if ((text = getenv(engines[i].index)) && read_number(text, &number)
            && number >= number_of(engines[i].first, 0))        /* LSB_JOBINDEX is 0 outside arrays */
            return &engines[i];
    return NULL;
}

static _Noreturn void refuse_auto(void)
{
    const char *names = "";
    for (size_t i = 0; i < COUNT_OF(engines); i++)
        names = arena_printf("%s%s%s", names, i ? ", " : "", engines[i].index);
    usage_error("--shard auto: this is no task of a job array: none of %s is set", names);
}

/* The shard that the environment tells. tasks: how many there are, 0: the environment tells that as well. */
static struct shard shard_here(uint64_t tasks)
{
    const struct engine *engine = engine_here();
    if (!engine)
        refuse_auto();
    uint64_t first = number_of(engine->first, 0), step = number_of(engine->step, 1);
    uint64_t last = number_of(engine->last, UINT64_MAX), count = number_of(engine->count, 0);
    step += !step;
    if (tasks)
        count = tasks;
    else if (!count && last != UINT64_MAX && last >= first)
        count = (last - first) / step + 1;
    if (!count)
        usage_error("--shard auto: a %s does not tell how many tasks there are; --shard auto/N does", engine->name);
    return (struct shard){(number_of(engine->index, 0) - first) / step, count};
}

struct shard shard_read(const char *text)
{
    struct shard shard = {0, 0};
    const char *slash = strchr(text, '/');
    size_t length = slash ? (size_t)(slash - text) : strlen(text);
    bool is_auto = length == 4 && !memcmp(text, "auto", 4);
    bool good = slash ? read_number(slash + 1, &shard.count) && shard.count : is_auto;
    if (good && is_auto)
        shard = shard_here(shard.count);
    else if (good)
        good = read_number(arena_text(text, length), &shard.index);
    if (!good)
        usage_error("--shard takes I/N, such as 0/8, or auto, or auto/N; not '%s'", text);
    if (shard.index >= shard.count || shard.count > SHARDS_MOST)
        usage_error("--shard %s: part %" PRIu64 " of %" PRIu64 ", where parts count from 0, and there are at most %d", text,
                    shard.index, shard.count, SHARDS_MOST);
    return shard;
}

const char *shard_store(const char *whole, struct shard shard)
{
    size_t length = strlen(whole);
    bool suffix = length > 3 && !strcmp(whole + length - 3, ".db");
    return arena_printf("%.*s.%" PRIu64 "-of-%" PRIu64 ".db", (int)(suffix ? length - 3 : length), whole, shard.index, shard.count);
}
