/* payload.c: lengths of data. A run uses few: those of its tiles, shards and messages. */
#include "payload.h"

#include <string.h>

#include "base/rates.h"
#include "common/arena.h"
#include "fabric.h"

static struct key_table payloads;

static const struct payload *payload_add(uint64_t bytes)
{
    struct payload *payload = arena_alloc(1, sizeof *payload + link_speed_count() * sizeof *payload->link_ps);
    *payload = (struct payload){.bytes = bytes,
                                .tcm_read_ps = move_ps(bytes, kb_attrs.pe_tcm_read_bw_bps),
                                .tcm_write_ps = move_ps(bytes, kb_attrs.pe_tcm_write_bw_bps),
                                .sram_read_ps = move_ps(bytes, kb_attrs.sram_read_bw_bps),
                                .sram_write_ps = move_ps(bytes, kb_attrs.sram_write_bw_bps)};
    if (bytes % product(kb_attrs.hbm_ctrl_interleave_bytes, kb_attrs.hbm_ctrl_pcs) == 0)
        payload->share_bytes = bytes / kb_attrs.hbm_ctrl_pcs;
    payload->share_ps = move_ps(payload->share_bytes, kb_attrs.hbm_ctrl_pc_bw_bps);
    for (uint32_t speed = 0; speed < link_speed_count(); speed++)
        payload->link_ps[speed] = move_ps(bytes, link_rate(speed)->bw_bps);
    key_table_add(&payloads, &payload->link, bytes);
    return payload;
}

const struct payload *payload_of(uint64_t bytes)
{
    const struct payload *payload = key_table_find(&payloads, bytes);
    return payload ? payload : payload_add(bytes);
}

void payloads_reset(void)
{
    memset(&payloads, 0, sizeof payloads);
}
