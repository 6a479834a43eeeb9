/* hbm_banks.c: an hbm_ctrl: pseudo channels with banks, rows that open and close, and refresh.
 *
 * A request is cut as the built-in model cuts it: every interleave_bytes go to the next pseudo channel, whose part is
 * one piece of its own addresses. Rows of a pseudo channel lie in its banks in turn. A row that is not open costs its
 * bank a precharge (tRP, at least tRAS after the row was opened) and an activation (tRCD); between an activation and
 * the fourth after it lies tFAW. Rows behind the first of a piece are opened ahead, while data of those before them
 * move. Every tREFI all banks close for a refresh of tRFC. Data of a read come access_ns after they move, which stands
 * for the column's latency and the way to the controller.
 *
 * In order per pseudo channel; no write-to-read turnaround, no command bus. Parameters: banks (of a pseudo channel),
 * tRCD, tRP, tRAS, tFAW, tRFC, tREFI. */
#include <kb/impl.h>

enum { CHANNELS_MOST = 64, WINDOW = 4 };

_Static_assert(hbm_banks_banks > 0, "a pseudo channel has banks");
_Static_assert(hbm_banks_tREFI > hbm_banks_tRFC, "there is time between refreshes");

struct bank {
    uint64_t open_row;                                  /* its number + 1; 0: closed */
    uint64_t opened_ps, used_ps;                        /* used: the end of what moved last */
    uint64_t refresh;                                   /* how many refreshes had been due when it was opened */
};

struct channel {
    uint64_t free_ps;                                   /* its data lines */
    uint64_t opened_ps[WINDOW];                         /* when the last four rows were opened, + 1; the oldest next */
    unsigned oldest;
    struct bank bank[hbm_banks_banks];
};

struct hbm_banks {
    struct channel channel[CHANNELS_MOST];
};

KB_STATE(hbm_banks);

/* The time, or the end of the refresh that it falls into. The first one is due at tREFI. */
static uint64_t after_refresh(uint64_t t_ps)
{
    uint64_t into_ps = t_ps % hbm_banks_tREFI;
    return t_ps >= hbm_banks_tREFI && into_ps < hbm_banks_tRFC ? kb_sum(t_ps, hbm_banks_tRFC - into_ps) : t_ps;
}

/* Opens a row of a closed bank at the time t_ps or later. */
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

/* When data of a row can move, asked for at t_ps. */
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

/* The part of a pseudo channel: its own first and last byte, and how many between them are asked for. */
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

/* When data of a row begin to move. What waited beyond a refresh finds its row closed, and opens it again. */
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

static void move(struct channel *channel, const struct piece *piece, uint64_t at_ps, struct kb_served *served)
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
        move(&state->channel[block % pcs], &piece, ask->at_ps, &served);
    }
    if (!ask->writes) {
        served.first_ps = kb_sum(served.first_ps, kb_attrs.hbm_ctrl_access_ps);
        served.last_ps = kb_sum(served.last_ps, kb_attrs.hbm_ctrl_access_ps);
    }
    return served;
}
