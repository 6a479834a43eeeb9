/* memory.h: HBM slices, srams, and TCMs as the fabric sees them: when a request is served. */
#ifndef KB_MEMORY_H
#define KB_MEMORY_H

#include "base/address.h"
#include "fabric.h"

struct pseudo_channel {
    uint64_t free_ps;
    uint64_t open_row;                                  /* its number + 1; 0: closed */
};

/* A PE's slice; its pseudo channels are `pcs` rows of kb_pseudo_channels. Nothing else of it has state. */
struct hbm_slice {
    uint64_t busy_ps;                                   /* sum over its pseudo channels */
};

/* Of an sram or a TCM: one serves reads, the other writes. */
struct channels {
    uint64_t read_free_ps, write_free_ps;
};

/* When a request's bytes begin to come, and when the last has come. A write's are taken likewise. */
struct served {
    uint64_t first_ps, last_ps;
};

/* The node that answers for a range: hbm_ctrl, sram, or the pe_dma of a TCM's PE. */
struct place range_place(const struct range *range);

/* A read that reaches the memory at t_ps: the response leaves at first_ps, fed until last_ps. Emitted, as is the write:
 * they pick the model. */
struct served memory_read(const struct range *range, uint64_t t_ps);

/* A write whose head is done at t_ps: last_ps is when the memory has taken all of it, if that has been delivered. */
struct served memory_write(const struct range *range, uint64_t t_ps);

/* When a write is done, whose head is done at head_ps and which is delivered at delivered_ps. */
uint64_t memory_write_done_ps(const struct range *range, uint64_t head_ps, uint64_t delivered_ps);

/* How many pseudo channels a request for n bytes from offset a of an HBM slice touches; and of the i-th of them, its
 * number in the slice, and the first and the last row. */
uint64_t hbm_touches(uint64_t a, uint64_t n);

struct hbm_rows {
    uint32_t channel;
    uint64_t row, row_end;
};

struct hbm_rows hbm_rows(uint64_t a, uint64_t n, uint64_t i);

/* Before the first request. */
void memory_init(void);

/* The built-in models. */
struct served hbm_read(const struct range *range, uint64_t t_ps);
struct served hbm_write(const struct range *range, uint64_t t_ps);
struct served sram_read(const struct range *range, uint64_t t_ps);
struct served sram_write(const struct range *range, uint64_t t_ps);
struct served tcm_serve_read(const struct range *range, uint64_t t_ps);
struct served tcm_serve_write(const struct range *range, uint64_t t_ps);

/* What a model of the user's own is asked of an hbm slice or an sram, and what it said, counted; the run stops with a
 * message when no memory can do that. */
struct kb_memory_request;
struct kb_served;
struct kb_memory_request own_ask(const struct range *range, uint64_t t_ps, bool writes);
struct served own_served(const char *model, enum space space, const struct kb_memory_request *ask,
                         const struct kb_served *said);

#endif
