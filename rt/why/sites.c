/* sites.c: numbers for calls in sources. There are as many as calls in the programs: few, so a short search does. */
#include "sites.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/array.h"
#include "common/fail.h"
#include "common/hash.h"
#include "items.h"

enum { CHAIN_BITS = 8 };

struct entry {
    struct site site;
    uint32_t next;
};

struct site_known sites_known[1 << SITES_KNOWN_BITS];
static struct ARRAY(struct entry) entries;
static uint32_t chains[1 << CHAIN_BITS];                /* numbers: positions + 1 */
static const char *stream;

/* The same source can have several texts: one in each object that was compiled from it. */
static bool is_at(const struct site *site, const char *file, uint32_t line)
{
    return site->line == line && (site->file == file || (site->file && file && !strcmp(site->file, file)));
}

static uint32_t number_of(const char *file, uint32_t line)
{
    if (!line)
        return 0;
    uint32_t *chain = &chains[hash_bits(line, CHAIN_BITS)];
    for (uint32_t i = *chain; i; i = entries.at[i - 1].next)
        if (is_at(&entries.at[i - 1].site, file, line))
            return i;
    if (entries.count == (UINT32_C(1) << SITE_BITS) - 1)
        run_failed("--why: the programs have more than 2^28 calls");
    *array_add(&entries) = (struct entry){{file, line}, *chain};
    return *chain = (uint32_t)entries.count;
}

uint32_t site_number_found(struct site_known *known, const char *file, uint32_t line)
{
    *known = (struct site_known){file, line, number_of(file, line)};
    return known->number;
}

static struct site site_of(uint32_t number)
{
    struct site site = {NULL, 0};
    if (number)
        site = entries.at[number - 1].site;
    if (number && !site.file)
        site.file = stream;
    return site;
}

const char *site_name(uint32_t number)
{
    struct site site = site_of(number);
    return site.line ? arena_printf("%s:%" PRIu32, site.file ? site.file : "-", site.line) : "";
}

void sites_name_stream(const char *path)
{
    stream = path;
}

void sites_reset(void)
{
    entries.count = 0;
    memset(chains, 0, sizeof chains);
    memset(sites_known, 0, sizeof sites_known);
    stream = NULL;
}
