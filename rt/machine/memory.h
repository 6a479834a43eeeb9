/* memory.h: HBM slices, srams, and TCMs as the fabric sees them: when each request is served. */
#ifndef KB_MEMORY_H
#define KB_MEMORY_H

#include "base/address.h"
#include "fabric.h"

struct pe;

struct pseudo_channel {
    uint64_t free_ps;
    uint64_t open_row;                                  /* its number + 1; 0: closed */
};

/* A slice. Its state is in its pseudo channels, `pcs` rows of kb_pseudo_channels. */
struct hbm_slice {
    uint64_t busy_ps, wait_ps;                          /* sums over its pseudo channels */
    bool level;                                         /* all are in the state of the first, and only that is kept */
};

/* Of an sram or a TCM: one for reads, one for writes. */
struct channels {
    uint64_t read_free_ps, write_free_ps;
};

/* The hbm_ctrl of a slice. */
struct place slice_place(uint32_t slice);

/* The node that answers for a range: hbm_ctrl, sram, or the pe_dma of a TCM's PE. */
struct place range_place(const struct range *range);

/* Whether a range is in the TCM of a PE. */
bool range_is_own_tcm(const struct range *range, const struct pe *pe);

/* Serves a write whose head is handled at head_ps and which is delivered at delivered_ps. Returns when it is complete. */
uint64_t memory_write_done_ps(const struct range *range, const struct payload *payload, uint64_t head_ps,
                              uint64_t delivered_ps);

/* Reads the attributes of memories, at the start of each run. */
void memory_init(void);

/* ---- open rows of HBM */

/* How many pseudo channels a request for n bytes from offset a of a slice uses; and the i-th of them, with the first
 * and the last row that the request opens there. */
uint64_t hbm_touches(uint64_t a, uint64_t n);

struct hbm_rows {
    uint32_t channel;
    uint64_t row, row_end;
};

struct hbm_rows hbm_rows(uint64_t a, uint64_t n, uint64_t i);

/* The turn of a request at a pseudo channel: when it asks for it, when it is served, and the last row that it opens. */
struct hbm_turn {
    uint64_t asked_ps, start_ps, length_ps, row_end;
};

/* ---- built-in models: a request that reaches its memory at t_ps. The payload is that of the range. Those of srams and TCMs
 * are in ports.h. */

struct served hbm_read(const struct range *range, const struct payload *payload, uint64_t t_ps);
struct served hbm_write(const struct range *range, const struct payload *payload, uint64_t t_ps);

/* ---- models of users: own_ask makes the request for such a model; own_served takes its answer, and counts it in the
 * statistics. Ends the run with a message if no memory can serve a request as the answer says. */

struct kb_memory_request;
struct kb_served;
struct kb_memory_request own_ask(const struct range *range, uint64_t t_ps, bool writes);
struct served own_served(const char *model, enum space space, const struct kb_memory_request *ask,
                         const struct kb_served *said);

#endif
