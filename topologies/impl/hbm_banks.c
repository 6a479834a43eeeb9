/* hbm_banks.c: a model of hbm_ctrl: pseudo channels with banks, row activation and precharge, and refresh.
 *
 * A request is cut as the built-in model cuts it: every interleave_bytes go to the next pseudo channel, and the part of
 * a pseudo channel is one piece of its own addresses. Consecutive rows of a pseudo channel lie in consecutive banks. A
 * bank needs a precharge (tRP, at least tRAS after the activation) and an activation (tRCD) before it can access a
 * row that is not open; any five activations take at least tFAW. The rows of a piece after the first are opened
 * ahead, while the data of earlier rows move. Every tREFI all banks close for a refresh of tRFC. The data of a read
 * arrive access_ns after they move: the column's latency and the way to the controller.
 *
 * Each pseudo channel works in order. Not modelled: write-to-read turnaround, the command bus. Parameters: banks (of a
 * pseudo channel), tRCD, tRP, tRAS, tFAW, tRFC, tREFI. */
#include <kb/impl.h>

enum { CHANNELS_MOST = 64, WINDOW = 4 };

_Static_assert(hbm_banks_banks > 0, "a pseudo channel has banks");
_Static_assert(hbm_banks_tREFI > hbm_banks_tRFC, "there is time between refreshes");

struct bank {
    uint64_t open_row;                                  /* number + 1; 0: closed */
    uint64_t opened_ps, used_ps;                        /* used_ps: the end of the last transfer */
    uint64_t refresh;                                   /* the number of refreshes that were due when it was opened */
};

struct channel {
    uint64_t free_ps;                                   /* when its data lines are free */
    uint64_t opened_ps[WINDOW];                         /* a ring: when the last four rows were opened, + 1 */
    unsigned oldest;                                    /* in opened_ps */
    struct bank bank[hbm_banks_banks];
};

struct hbm_banks {
    struct channel channel[CHANNELS_MOST];
};

KB_STATE(hbm_banks);

/* A time, or the end of the refresh that it falls into. The first refresh is due at tREFI. */
static uint64_t after_refresh(uint64_t t_ps)
{
    uint64_t into_ps = t_ps % hbm_banks_tREFI;
    return t_ps >= hbm_banks_tREFI && into_ps < hbm_banks_tRFC ? kb_sum(t_ps, hbm_banks_tRFC - into_ps) : t_ps;
}

/* Activates a row of a closed bank at t_ps or later. Returns the time of the activation. */
static uint64_t open_row(struct channel *channel, struct bank *bank, uint64_t row, uint64_t t_ps)
{
    uint64_t *window = &channel->opened_ps[channel->oldest];
    if (*window)
        t_ps = kb_later(t_ps, kb_sum(*window - 1, hbm_banks_tFAW));
    t_ps = after_refresh(t_ps);
    *window = kb_sum(t_ps, 1);
    channel->oldest = (channel->oldest + 1) % WINDOW;
    *bank = (struct bank){row + 1, t_ps, t_ps, t_ps / hbm_banks_tREFI};
    return t_ps;
}

/* When the data of a row that is requested at t_ps can move. */
static uint64_t row_ready(struct channel *channel, uint64_t row, uint64_t t_ps)
{
    struct bank *bank = &channel->bank[row % hbm_banks_banks];
    uint64_t now_ps = after_refresh(t_ps);
    bool open = bank->open_row && bank->refresh >= now_ps / hbm_banks_tREFI;
    if (open && bank->open_row == row + 1)
        return kb_later(now_ps, kb_sum(bank->opened_ps, hbm_banks_tRCD));
    if (open) {
        uint64_t closed_ps = kb_later(bank->used_ps, kb_sum(bank->opened_ps, hbm_banks_tRAS));
        now_ps = kb_sum(kb_later(now_ps, closed_ps), hbm_banks_tRP);
    }
    return kb_sum(open_row(channel, bank, row, now_ps), hbm_banks_tRCD);
}

/* The part of a request in a pseudo channel: its first and last byte there, and how many of those between are
 * requested. */
struct piece {
    uint64_t from, to, bytes;
};

static struct piece piece_of(const struct kb_memory_request *ask, uint64_t block)
{
    uint64_t size = kb_attrs.hbm_ctrl_interleave_bytes, pcs = kb_attrs.hbm_ctrl_pcs;
    uint64_t end = ask->offset + ask->bytes - 1, first = ask->offset / size, last = end / size;
    uint64_t to = block + (last - block) / pcs * pcs;
    uint64_t skip = block == first ? ask->offset % size : 0, drop = to == last ? size - 1 - end % size : 0;
    return (struct piece){block / pcs * size + skip, to / pcs * size + size - 1 - drop,
                          ((to - block) / pcs + 1) * size - skip - drop};
}

/* When the data of a row begin to move. A request that waited past a refresh finds its row closed and opens it
 * again. */
static uint64_t move_row(struct channel *channel, uint64_t row, uint64_t length_ps, uint64_t at_ps)
{
    struct bank *bank = &channel->bank[row % hbm_banks_banks];
    uint64_t start_ps = kb_later(row_ready(channel, row, at_ps), channel->free_ps);
    if (bank->refresh < start_ps / hbm_banks_tREFI)
        start_ps = kb_later(row_ready(channel, row, start_ps), channel->free_ps);
    kb_reserve(&channel->free_ps, start_ps, length_ps);
    bank->used_ps = channel->free_ps;
    return start_ps;
}

/* Moves the data of a piece row by row. */
static void move_piece(struct channel *channel, const struct piece *piece, uint64_t at_ps, struct kb_served *served)
{
    uint64_t row_bytes = kb_attrs.hbm_ctrl_row_bytes, left = piece->bytes, at = piece->from;
    served->wait_ps += kb_later(channel->free_ps, at_ps) - at_ps;
    for (uint64_t row = at / row_bytes; left; row++) {
        uint64_t in_row = (row + 1) * row_bytes - at, bytes = in_row < left ? in_row : left;
        uint64_t length_ps = kb_move_ps(bytes, kb_attrs.hbm_ctrl_pc_bw_bps);
        uint64_t start_ps = move_row(channel, row, length_ps, at_ps);
        if (served->first_ps > start_ps)
            served->first_ps = start_ps;
        served->last_ps = kb_later(served->last_ps, channel->free_ps);
        served->busy_ps += length_ps;
        left -= bytes;
        at += bytes;
    }
}

struct kb_served hbm_banks_service(struct hbm_banks *state, const struct kb_memory_request *ask)
{
    uint64_t size = kb_attrs.hbm_ctrl_interleave_bytes, pcs = kb_attrs.hbm_ctrl_pcs;
    uint64_t first = ask->offset / size, last = (ask->offset + ask->bytes - 1) / size;
    struct kb_served served = {.first_ps = UINT64_MAX};
    for (uint64_t block = first; block <= last && block < first + pcs; block++) {
        struct piece piece = piece_of(ask, block);
        move_piece(&state->channel[block % pcs], &piece, ask->at_ps, &served);
    }
    if (!ask->writes) {
        served.first_ps = kb_sum(served.first_ps, kb_attrs.hbm_ctrl_access_ps);
        served.last_ps = kb_sum(served.last_ps, kb_attrs.hbm_ctrl_access_ps);
    }
    return served;
}
