/* same_sram.c: an sram that serves when the built-in one does. */
#include <kb/impl.h>

struct same_sram {
    uint64_t read_free_ps, write_free_ps;
};

KB_STATE(same_sram);

struct kb_served same_sram_service(struct same_sram *state, const struct kb_memory_request *ask)
{
    uint64_t bw_bps = ask->writes ? kb_attrs.sram_write_bw_bps : kb_attrs.sram_read_bw_bps;
    uint64_t *free_ps = ask->writes ? &state->write_free_ps : &state->read_free_ps;
    uint64_t length_ps = kb_move_ps(ask->bytes, bw_bps), start_ps = kb_reserve(free_ps, ask->at_ps, length_ps);
    return (struct kb_served){start_ps, *free_ps, length_ps, start_ps - ask->at_ps};
}
