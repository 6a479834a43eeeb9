/* hbm.h: requests for whole stripes of an HBM slice whose pseudo channels are all in the same state. All shares are the same
 * then, and the channels stay in the same state: what the first does, all do. */
#ifndef KB_HBM_H
#define KB_HBM_H

#include "base/rates.h"
#include "emitted.h"
#include "memory.h"
#include "stats.h"

/* A stripe: a piece of each pseudo channel; the bytes of a slice that are in rows of one number. */
extern struct divisor hbm_stripe, hbm_rows_bytes;

bool hbm_are_level(const struct pseudo_channel *channels);

/* The length and the last row of the share of a request; it asks a pseudo channel at t_ps. */
static inline struct hbm_turn hbm_turn_of(const struct pseudo_channel *pc, uint64_t row, uint64_t row_end, uint64_t move_ps,
                                          uint64_t t_ps)
{
    uint64_t misses = row_end - row + (pc->open_row != row + 1);
    uint64_t length = sum(product(misses, kb_attrs.hbm_ctrl_row_miss_ps), move_ps);
    return (struct hbm_turn){t_ps, pc->free_ps > t_ps ? pc->free_ps : t_ps, length, row_end};
}

static inline void hbm_turn_take(struct pseudo_channel *pc, const struct hbm_turn *turn)
{
    pc->open_row = turn->row_end + 1;
    pc->free_ps = time_after(turn->start_ps, turn->length_ps);
}

static inline void hbm_count(struct hbm_slice *slice, uint64_t busy_ps, uint64_t wait_ps)
{
    slice->busy_ps += busy_ps;
    slice->wait_ps += wait_ps;
    stats.read_busy_ps[SPACE_HBM] += busy_ps;
    stats.read_wait_ps[SPACE_HBM] += wait_ps;
}

/* The turn of a request at every pseudo channel of a slice; `first` is that of the slice. Returns false if the request is not
 * for whole stripes, or the channels are in several states. It takes effect by hbm_level_take. */
static inline bool hbm_level_turn(const struct hbm_slice *slice, const struct pseudo_channel *first, uint64_t offset,
                                  const struct payload *payload, uint64_t t_ps, struct hbm_turn *turn)
{
    if (!payload->share_bytes || rest(offset, hbm_stripe) || !(slice->level || hbm_are_level(first)))
        return false;
    *turn = hbm_turn_of(first, quotient(offset, hbm_rows_bytes), quotient(offset + payload->bytes - 1, hbm_rows_bytes),
                        payload->share_ps, t_ps);
    return true;
}

static inline void hbm_level_take(struct hbm_slice *slice, struct pseudo_channel *first, const struct hbm_turn *turn)
{
    uint64_t channels = kb_attrs.hbm_ctrl_pcs;
    hbm_turn_take(first, turn);
    slice->level = true;
    hbm_count(slice, turn->length_ps * channels, (turn->start_ps - turn->asked_ps) * channels);
}

#endif
