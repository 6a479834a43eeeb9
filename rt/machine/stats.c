/* stats.c: the statistics of a run. */
#include "stats.h"

#include "common/arena.h"
#include "fabric.h"

struct stats stats;
uint64_t *link_busy_ps;

void stats_init(void)
{
    stats = (struct stats){0};
    link_busy_ps = arena_alloc(link_count(), sizeof *link_busy_ps);
}

uint64_t link_busiest_ps(enum link_class class)
{
    uint64_t most = 0;
    for (uint64_t link = 0; link < link_count(); link++)
        if (link_busy_ps[link] > most && link_class(link) == class)
            most = link_busy_ps[link];
    return most;
}
