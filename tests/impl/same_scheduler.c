/* same_scheduler.c: a pe_scheduler that takes what the built-in one takes. */
#include <kb/impl.h>

uint64_t same_scheduler_service(const struct kb_schedule_request *ask)
{
    return ask->feeds ? kb_attrs.pe_scheduler_tile_overhead_ps : kb_attrs.pe_scheduler_overhead_ps;
}
