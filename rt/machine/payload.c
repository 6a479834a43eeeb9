/* payload.c: lengths of data. A run uses few: those of its tiles, shards and messages. */
#include "payload.h"

#include <string.h>

#include "base/rates.h"
#include "common/arena.h"
#include "common/hash.h"

enum { HASH_BITS = 10 };                                /* at first */

static struct {
    struct payload **chains;                            /* by the hash of the length */
    unsigned bits;
    uint32_t count;
} payloads;

static struct payload **payload_chain(uint64_t bytes)
{
    return &payloads.chains[hash_bits(bytes, payloads.bits)];
}

static void payload_link(struct payload *payload)
{
    struct payload **chain = payload_chain(payload->bytes);
    payload->next = *chain;
    *chain = payload;
}

/* Makes the table of payloads as large as their number. */
static void payloads_grow(void)
{
    struct payload **old = payloads.chains;
    size_t chains = old ? (size_t)1 << payloads.bits : 0;
    payloads.bits = old ? payloads.bits + 1 : HASH_BITS;
    payloads.chains = arena_alloc((size_t)1 << payloads.bits, sizeof *payloads.chains);
    for (size_t i = 0; i < chains; i++)
        for (struct payload *payload = old[i], *next; payload; payload = next) {
            next = payload->next;
            payload_link(payload);
        }
}

static const struct payload *payload_add(uint64_t bytes)
{
    struct payload *payload = arena_alloc(1, sizeof *payload);
    *payload = (struct payload){.bytes = bytes,
                                .tcm_read_ps = move_ps(bytes, kb_attrs.pe_tcm_read_bw_bps),
                                .tcm_write_ps = move_ps(bytes, kb_attrs.pe_tcm_write_bw_bps),
                                .sram_read_ps = move_ps(bytes, kb_attrs.sram_read_bw_bps),
                                .sram_write_ps = move_ps(bytes, kb_attrs.sram_write_bw_bps)};
    if (bytes % product(kb_attrs.hbm_ctrl_interleave_bytes, kb_attrs.hbm_ctrl_pcs) == 0)
        payload->share_bytes = bytes / kb_attrs.hbm_ctrl_pcs;
    payload->share_ps = move_ps(payload->share_bytes, kb_attrs.hbm_ctrl_pc_bw_bps);
#define LINK(name, bw, latency) payload->link_ps[LINK_##name] = move_ps(bytes, kb_attrs.bw);
#include "kb/links.def"
#undef LINK
    payloads.count++;
    payload_link(payload);
    return payload;
}

const struct payload *payload_of(uint64_t bytes)
{
    if (!payloads.chains || payloads.count >> payloads.bits)
        payloads_grow();
    for (const struct payload *payload = *payload_chain(bytes); payload; payload = payload->next)
        if (payload->bytes == bytes)
            return payload;
    return payload_add(bytes);
}

void payloads_reset(void)
{
    memset(&payloads, 0, sizeof payloads);
}
