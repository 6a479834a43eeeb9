/* stats.c: the statistics of a run. */
#include "stats.h"

#include "fabric.h"

struct stats stats;

void stats_init(void)
{
    stats = (struct stats){0};
}

uint64_t link_busiest_ps(enum link_class class)
{
    uint64_t most = 0;
    for (uint64_t link = 0; link < link_count(); link++)
        if (kb_links[link].busy_ps > most && link_class(link) == class)
            most = kb_links[link].busy_ps;
    return most;
}
