/* same_move.c: a pe_fetch_store that takes what the built-in one takes. */
#include <kb/impl.h>

struct kb_moved same_move_service(const struct kb_move_request *ask)
{
    uint64_t tcm_ps = kb_move_ps(ask->bytes, ask->stores ? kb_attrs.pe_tcm_write_bw_bps : kb_attrs.pe_tcm_read_bw_bps);
    uint64_t link_ps = kb_move_ps(ask->bytes, kb_attrs.links_fetch_store_to_tcm_bw_bps);
    return (struct kb_moved){kb_later(tcm_ps, link_ps), kb_attrs.pe_fetch_store_overhead_ps};
}
