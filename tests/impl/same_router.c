/* same_router.c: a router that handles messages as the built-in one does: one head at a time, for its overhead and `more`
 * besides; a link takes them in the order of their arrival, or with `last: 1` the one that came last. With another word
 * in place of "router" this file models any part that messages pass through. */
#include <kb/impl.h>

#ifndef same_router_more
#define same_router_more 0
#endif
#ifndef same_router_last
#define same_router_last 0
#endif

struct same_router {
    uint64_t free_ps;
};

KB_STATE(same_router);

struct kb_handled same_router_service(struct same_router *state, const struct kb_head_request *ask)
{
    uint64_t length_ps = kb_attrs.router_overhead_ps + same_router_more;
    if (!ask->bytes)                                    /* control messages do not wait */
        return (struct kb_handled){length_ps, 0};
    uint64_t start_ps = kb_reserve(&state->free_ps, ask->at_ps, length_ps);
    return (struct kb_handled){state->free_ps, start_ps - ask->at_ps};
}

uint32_t same_router_next(struct same_router *state, const struct kb_head_queue *ask)
{
    (void)state;
    return same_router_last ? ask->count - 1 : 0;
}
