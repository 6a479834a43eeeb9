/* same_ipcq.c: a pe_ipcq that adds no time to a message, as the built-in one, or `send`, `receive` and `credit`. */
#include <kb/impl.h>

#ifndef same_ipcq_send
#define same_ipcq_send 0
#endif
#ifndef same_ipcq_receive
#define same_ipcq_receive 0
#endif
#ifndef same_ipcq_credit
#define same_ipcq_credit 0
#endif

struct same_ipcq {
    uint64_t messages;
};

KB_STATE(same_ipcq);

uint64_t same_ipcq_service(struct same_ipcq *state, const struct kb_ring_request *ask)
{
    state->messages += ask->event == KB_RING_SEND;
    return ask->event == KB_RING_SEND ? same_ipcq_send
         : ask->event == KB_RING_RECEIVE ? same_ipcq_receive : same_ipcq_credit;
}
