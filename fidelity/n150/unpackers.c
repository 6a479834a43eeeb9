/* unpackers.c: a pe_fetch_store whose fetches take no time of their own: the unpackers bring tiles while the matrix unit works on a
 * block, and tensix.c counts both together. Stores take the TCM's write channel. */
#include <kb/impl.h>

struct kb_moved unpackers_service(const struct kb_move_request *ask)
{
    return (struct kb_moved){ask->stores ? kb_move_ps(ask->bytes, kb_attrs.pe_tcm_write_bw_bps) : 0, 0};
}
