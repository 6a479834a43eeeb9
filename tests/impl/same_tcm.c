/* same_tcm.c: a pe_tcm like the built-in one: a channel for reads and one for writes, or, with `ports: 1`, one for
 * both. */
#include <kb/impl.h>

#ifndef same_tcm_ports
#define same_tcm_ports 2
#endif

struct same_tcm {
    uint64_t free_ps[2];
};

KB_STATE(same_tcm);

struct kb_served same_tcm_service(struct same_tcm *state, const struct kb_tcm_request *ask)
{
    uint64_t at_ps = kb_sum(ask->at_ps, ask->user == KB_TCM_OUTSIDE ? kb_attrs.pe_tcm_overhead_ps : 0);
    uint64_t *free_ps = &state->free_ps[same_tcm_ports == 2 && ask->writes];
    uint64_t start_ps = kb_reserve(free_ps, at_ps, ask->length_ps);
    return (struct kb_served){start_ps, *free_ps, ask->length_ps, start_ps - at_ps};
}
