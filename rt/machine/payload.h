/* payload.h: lengths of data, and how long bytes of a length occupy each channel that they may move through. */
#ifndef KB_PAYLOAD_H
#define KB_PAYLOAD_H

#include <stdint.h>

#include "base/tables.h"
#include "common/key_table.h"

/* Each length that is used has one. */
struct payload {
    struct key_link link;                               /* in the table of payloads, by their length */
    uint64_t bytes;
    uint64_t tcm_read_ps, tcm_write_ps, sram_read_ps, sram_write_ps;
    uint64_t share_bytes, share_ps;                     /* whole stripes of HBM: of each pseudo channel; else 0 */
    uint64_t link_ps[];                                 /* by speed of a link */
};

/* Returns the payload of a length, which may be any number of bytes. */
const struct payload *payload_of(uint64_t bytes);

/* Forgets all payloads. */
void payloads_reset(void);

#endif
