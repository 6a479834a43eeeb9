/* payload.c: lengths of data. A run uses few: those of its tiles, shards and messages. */
#include "payload.h"

#include <string.h>

#include "base/rates.h"
#include "common/arena.h"
#include "common/hash.h"

enum { HASH_BITS = 10 };

static const struct payload *payloads[1 << HASH_BITS];

static const struct payload *payload_add(const struct payload **chain, uint64_t bytes)
{
    struct payload *payload = arena_alloc(1, sizeof *payload);
    *payload = (struct payload){.bytes = bytes,
                                .tcm_read_ps = move_ps(bytes, kb_attrs.pe_tcm_read_bw_bps),
                                .tcm_write_ps = move_ps(bytes, kb_attrs.pe_tcm_write_bw_bps),
                                .sram_read_ps = move_ps(bytes, kb_attrs.sram_read_bw_bps),
                                .sram_write_ps = move_ps(bytes, kb_attrs.sram_write_bw_bps),
                                .next = *chain};
    if (bytes % product(kb_attrs.hbm_ctrl_interleave_bytes, kb_attrs.hbm_ctrl_pcs) == 0)
        payload->share_bytes = bytes / kb_attrs.hbm_ctrl_pcs;
    payload->share_ps = move_ps(payload->share_bytes, kb_attrs.hbm_ctrl_pc_bw_bps);
#define LINK(name, bw, latency) payload->link_ps[LINK_##name] = move_ps(bytes, kb_attrs.bw);
#include "kb/links.def"
#undef LINK
    return *chain = payload;
}

const struct payload *payload_of(uint64_t bytes)
{
    const struct payload **chain = &payloads[hash_bits(bytes, HASH_BITS)];
    for (const struct payload *payload = *chain; payload; payload = payload->next)
        if (payload->bytes == bytes)
            return payload;
    return payload_add(chain, bytes);
}

void payloads_reset(void)
{
    memset(payloads, 0, sizeof payloads);
}
