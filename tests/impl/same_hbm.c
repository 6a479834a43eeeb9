/* same_hbm.c: an hbm_ctrl that serves when the built-in one does, byte by byte. */
#include <kb/impl.h>

enum { CHANNELS_MOST = 64 };

struct same_hbm {
    struct channel {
        uint64_t free_ps, open_row;                     /* the row's number + 1 */
    } channel[CHANNELS_MOST];
};

KB_STATE(same_hbm);

/* What a request asks of each pseudo channel. */
struct share {
    uint64_t bytes, first_row, last_row;
};

static void divide(const struct kb_memory_request *ask, struct share *shares)
{
    uint64_t piece = kb_attrs.hbm_ctrl_interleave_bytes, pcs = kb_attrs.hbm_ctrl_pcs;
    for (uint64_t a = ask->offset; a < ask->offset + ask->bytes; a++) {
        struct share *share = &shares[a / piece % pcs];
        uint64_t row = (a / piece / pcs * piece + a % piece) / kb_attrs.hbm_ctrl_row_bytes;
        if (!share->bytes++)
            share->first_row = row;
        share->last_row = row;
    }
}

static void serve(struct channel *channel, const struct share *share, uint64_t at_ps, struct kb_served *served)
{
    uint64_t misses = share->last_row - share->first_row + (channel->open_row != share->first_row + 1);
    uint64_t length_ps = misses * kb_attrs.hbm_ctrl_row_miss_ps + kb_move_ps(share->bytes, kb_attrs.hbm_ctrl_pc_bw_bps);
    uint64_t start_ps = kb_reserve(&channel->free_ps, at_ps, length_ps);
    channel->open_row = share->last_row + 1;
    served->first_ps = start_ps < served->first_ps ? start_ps : served->first_ps;
    served->last_ps = kb_later(served->last_ps, channel->free_ps);
    served->busy_ps += length_ps;
    served->wait_ps += start_ps - at_ps;
}

struct kb_served same_hbm_service(struct same_hbm *state, const struct kb_memory_request *ask)
{
    struct share shares[CHANNELS_MOST] = {{0}};
    struct kb_served served = {.first_ps = UINT64_MAX};
    uint64_t access_ps = ask->writes ? 0 : kb_attrs.hbm_ctrl_access_ps;
    divide(ask, shares);
    for (unsigned i = 0; i < kb_attrs.hbm_ctrl_pcs; i++)
        if (shares[i].bytes)
            serve(&state->channel[i], &shares[i], ask->at_ps, &served);
    served.first_ps += access_ps;
    served.last_ps += access_ps;
    return served;
}
