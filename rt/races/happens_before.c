/* happens_before.c: vector clocks of kernels, and the operations that they order.
 *
 * Each PE has a clock, which rises whenever its kernel waits for an operation or sends a message: the events by which
 * others can come to know more. The end of an operation a is the pair (PE, clock at which it was waited for). A vector
 * clock has for each PE a clock of which all is known: whoever knows clock c of a PE knows what its kernel knew at c.
 * So a ended before b began if b's vector clock, taken at its call, has at least a's clock for a's PE; and it has that
 * only if a chain of messages and launches leads from the wait for a to the call of b, for nothing else raises it.
 *
 * A message carries the vector clock and the clock of its send. Who waits for its receive learns both; so a third one
 * knows the message if it knows the clock of that wait. That also orders what the send comes after by tl_after, which
 * its own kernel may never wait for.
 *
 * What b comes after by tl_after, over any number of operations, is a chain decomposition of that order: operations that
 * are named form chains, and b has the last place in each chain that it comes after. An operation joins the chain of one
 * that it comes after if it is the first to follow that one, so there are as many chains as operations go on side by
 * side. b knows all that those before it in its kernel know, so they need not be asked.
 *
 * Operations that know the same share one vector clock, which is copied when one of its holders learns something. */
#include "happens_before.h"

#include <string.h>

#include "common/arena.h"
#include "common/array.h"
#include "common/pool.h"
#include "kb/arith.h"
#include "machine/emitted.h"
#include "sim/loop.h"

struct vector_clock {
    uint32_t holders;
    uint32_t at[];                                      /* by PE over the machine; 0: nothing is known */
};

/* The kernels of a PE, one after the other. */
struct thread {
    struct vector_clock *known;                         /* of others; of itself, what others have told it */
    uint32_t clock;
    struct hb_op *newest;                               /* list of operations not waited for */
    struct hb_link *after;                              /* what the next command comes after */
};

static struct {
    struct thread *threads;                             /* by PE over the machine */
    struct vector_clock *host;
    struct pool clocks, ops, links, chains, places, receipts;
    uint64_t searches;
    struct ARRAY(struct hb_op *) found;                 /* of the search along tl_after that is under way */
} hb;

/* ---- vector clocks */

static struct vector_clock *vector_clock_new(void)
{
    struct vector_clock *clock = pool_take(&hb.clocks, sizeof *clock + pe_count() * sizeof *clock->at);
    clock->holders = 1;
    return clock;
}

static struct vector_clock *vector_clock_hold(struct vector_clock *clock)
{
    clock->holders++;
    return clock;
}

static void vector_clock_drop(struct vector_clock *clock)
{
    if (clock && --clock->holders == 0)
        pool_give_back(&hb.clocks, clock);
}

/* Makes *clock one that nobody else holds. */
static void vector_clock_unshare(struct vector_clock **clock)
{
    struct vector_clock *shared = *clock;
    if (shared->holders == 1)
        return;
    *clock = vector_clock_new();
    memcpy((*clock)->at, shared->at, pe_count() * sizeof *shared->at);
    vector_clock_drop(shared);
}

static void vector_clock_learn(struct vector_clock **clock, const struct vector_clock *other)
{
    if (!other || other == *clock)
        return;
    uint32_t pe = 0, pes = pe_count();
    while (pe < pes && other->at[pe] <= (*clock)->at[pe])
        pe++;
    if (pe == pes)
        return;
    vector_clock_unshare(clock);
    for (; pe < pes; pe++)
        if (other->at[pe] > (*clock)->at[pe])
            (*clock)->at[pe] = other->at[pe];
}

static void vector_clock_learn_of(struct vector_clock **clock, uint32_t pe, uint32_t at)
{
    if (at <= (*clock)->at[pe])
        return;
    vector_clock_unshare(clock);
    (*clock)->at[pe] = at;
}

static struct vector_clock **host_clock(void)
{
    if (!hb.host)
        hb.host = vector_clock_new();
    return &hb.host;
}

static struct thread *thread_of(uint32_t pe)
{
    if (!hb.threads)
        hb.threads = arena_alloc(pe_count(), sizeof *hb.threads);
    if (!hb.threads[pe].known)
        hb.threads[pe].known = vector_clock_hold(*host_clock());
    return &hb.threads[pe];
}

/* ---- operations */

static void link_add(struct hb_link **list, struct hb_op *op)
{
    struct hb_link *link = pool_take(&hb.links, sizeof *link);
    *link = (struct hb_link){hb_hold(op), *list};
    *list = link;
}

static void links_drop(struct hb_link **list)
{
    for (struct hb_link *link; (link = *list);) {
        *list = link->next;
        hb_drop(link->op);
        pool_give_back(&hb.links, link);
    }
}

/* ---- chains of tl_after */

static void chain_drop(struct hb_chain *chain)
{
    if (chain && --chain->holders == 0)
        pool_give_back(&hb.chains, chain);
}

static void behind_drop(struct hb_op *op)
{
    for (struct hb_place *place; (place = op->behind);) {
        op->behind = place->next;
        chain_drop(place->chain);
        pool_give_back(&hb.places, place);
    }
}

/* The operation comes after a place, and so after all before it in its chain. */
static void behind_add(struct hb_op *op, const struct hb_place *after)
{
    struct hb_place *place = op->behind;
    if (!after->chain || after->place <= after->chain->waited)
        return;
    while (place && place->chain != after->chain)
        place = place->next;
    if (!place) {
        place = pool_take(&hb.places, sizeof *place);
        *place = (struct hb_place){after->chain, 0, op->behind};
        place->chain->holders++;
        op->behind = place;
    }
    place->place = kb_max(place->place, after->place);
}

static void behind_all(struct hb_op *op)
{
    for (const struct hb_link *link = op->after; link; link = link->next) {
        behind_add(op, &link->op->place);
        for (const struct hb_place *place = link->op->behind; place; place = place->next)
            behind_add(op, place);
    }
}

/* The operation is named: it gets a place behind the last one of a chain, or in a new chain. */
static void place_in_chain(struct hb_op *op)
{
    struct hb_chain *chain = op->place.chain;
    if (chain)
        return;
    for (const struct hb_place *place = op->behind; place && !chain; place = place->next)
        if (place->chain->newest == place->place)
            chain = place->chain;
    if (!chain)
        chain = pool_take(&hb.chains, sizeof *chain);
    chain->holders++;
    op->place = (struct hb_place){chain, ++chain->newest, NULL};
}

static bool comes_after(const struct hb_op *b, const struct hb_op *a)
{
    for (const struct hb_place *place = b->behind; a->place.chain && place; place = place->next)
        if (place->chain == a->place.chain)
            return place->place >= a->place.place;
    return false;
}

/* ---- operations that are over */

static void receipts_drop(struct hb_op *send)
{
    for (struct hb_receipt *receipt; (receipt = send->received.next);) {
        send->received.next = receipt->next;
        pool_give_back(&hb.receipts, receipt);
    }
}

static void known_drop(struct hb_op *op)
{
    vector_clock_drop(op->known);
    op->known = NULL;
}

void hb_drop(struct hb_op *op)
{
    if (!op || --op->holders)
        return;
    links_drop(&op->after);
    links_drop(&op->later_sends);
    behind_drop(op);
    chain_drop(op->place.chain);
    receipts_drop(op);
    hb_drop(op->from);
    known_drop(op);
    op->op->hb = NULL;
    op_ref_drop(op->op);
    pool_give_back(&hb.ops, op);
}

struct hb_op *hb_called(uint32_t pe, uint32_t number, struct op_ref *ref)
{
    struct thread *thread = thread_of(pe);
    struct hb_op *op = thread->newest;
    if (op && op->number == number)
        return op;
    op = pool_take(&hb.ops, sizeof *op);
    *op = (struct hb_op){.op = op_ref_hold(ref), .pe = pe, .number = number, .called_ps = sim_now_ps(),
                         .clock = thread->clock, .known = vector_clock_hold(thread->known), .after = thread->after,
                         .holders = 1, .older = thread->newest};
    thread->after = NULL;
    behind_all(op);
    if (thread->newest)
        thread->newest->newer = op;
    thread->newest = op;
    return ref->hb = op;
}

void hb_compared(struct hb_op *op)
{
    if (!op->sent)                                      /* who receives its message will learn what it knows */
        known_drop(op);
}

/* ---- searches along tl_after */

static void search_add(struct hb_op *op)
{
    if (op->search == hb.searches)
        return;
    op->search = hb.searches;
    *array_add(&hb.found) = op;
}

static void search_add_list(const struct hb_link *list)
{
    for (const struct hb_link *link = list; link; link = link->next)
        search_add(link->op);
}

static void search_begin(void)
{
    hb.searches++;
    hb.found.count = 0;
}

/* Finds an operation and all that it comes after. */
static void search_all(struct hb_op *op)
{
    search_begin();
    search_add(op);
    for (size_t i = 0; i < hb.found.count; i++)
        search_add_list(hb.found.at[i]->after);
}

/* ---- messages */

void hb_sends(struct hb_op *send, uint32_t receivers)
{
    send->sent = ++thread_of(send->pe)->clock;
    send->unreceived = receivers;
    send->holders += receivers;
    search_all(send);
    for (size_t i = 1; i < hb.found.count; i++)
        link_add(&hb.found.at[i]->later_sends, send);
}

void hb_received(struct hb_op *receive, struct hb_op *send)
{
    receive->from = send;
}

/* ---- order */

/* The clock of a PE up to which an operation knows all, apart from what its own kernel knows of itself. */
static uint32_t known_of(const struct hb_op *op, uint32_t pe)
{
    const struct hb_op *from = op->from;
    uint32_t at = op->known ? op->known->at[pe] : 0;
    if (from && from->pe == pe && from->sent > at)
        at = from->sent;
    if (from && from->known && from->known->at[pe] > at)
        at = from->known->at[pe];
    return at;
}

/* Whether an operation knows a clock of a PE; 0 is no clock. */
static bool knows(const struct hb_op *op, uint32_t pe, uint32_t clock)
{
    return clock && (clock <= known_of(op, pe) || (pe == op->pe && clock <= op->clock));
}

static bool knows_message(const struct hb_op *op, const struct hb_op *send)
{
    bool known = op->from == send;
    for (const struct hb_receipt *receipt = &send->received; receipt && !known; receipt = receipt->next)
        known = knows(op, receipt->pe, receipt->clock);
    return known;
}

static bool knows_end(const struct hb_op *b, const struct hb_op *a)
{
    if (knows(b, a->pe, a->waited) || knows_message(b, a))
        return true;
    for (const struct hb_link *later = a->later_sends; later; later = later->next)
        if (knows_message(b, later->op))
            return true;
    return false;
}

bool happens_before(const struct hb_op *a, const struct hb_op *b)
{
    return knows_end(b, a) || comes_after(b, a);
}

/* ---- what kernels do */

/* A receive was waited for: who knows of that knows the message. The last one leaves nobody who will learn from it. */
static void receipt_add(struct hb_op *send, uint32_t pe, uint32_t clock)
{
    if (send->received.clock) {
        struct hb_receipt *receipt = pool_take(&hb.receipts, sizeof *receipt);
        *receipt = send->received;
        send->received.next = receipt;
    }
    send->received.clock = clock;
    send->received.pe = pe;
    if (--send->unreceived == 0)
        known_drop(send);
}

/* A kernel knows the end of an operation, and what its message carried. */
static void waited_for(struct thread *thread, struct hb_op *op)
{
    op->waited = ++thread->clock;
    if (op->from) {
        vector_clock_learn(&thread->known, op->from->known);
        vector_clock_learn_of(&thread->known, op->from->pe, op->from->sent);
        receipt_add(op->from, op->pe, op->waited);
    }
    hb_compared(op);
    *(op->newer ? &op->newer->older : &thread->newest) = op->older;
    if (op->older)
        op->older->newer = op->newer;
    op->older = op->newer = NULL;
    if (op->place.chain && op->place.chain->waited < op->place.place)
        op->place.chain->waited = op->place.place;
    links_drop(&op->after);
    behind_drop(op);
    hb_drop(op->from);
    op->from = NULL;
    hb_drop(op);
}

/* What an operation comes after has ended before it. */
static void ended(struct thread *thread, struct hb_op *op)
{
    search_all(op);
    while (hb.found.count) {
        struct hb_op *last = hb.found.at[--hb.found.count];
        if (!last->waited)
            waited_for(thread, last);
    }
}

static struct hb_op *op_of(const struct thread *thread, uint32_t number)
{
    struct hb_op *op = thread->newest;
    while (op && op->number != number)
        op = op->older;
    return op;
}

void hb_waited(uint32_t pe, uint32_t number)
{
    struct thread *thread = thread_of(pe);
    struct hb_op *op = op_of(thread, number);
    if (op)
        ended(thread, op);
}

void hb_after(uint32_t pe, uint32_t number)
{
    struct thread *thread = thread_of(pe);
    struct hb_op *op = op_of(thread, number);
    if (!op || op->writes.rank)
        return;
    place_in_chain(op);
    link_add(&thread->after, op);
}

void hb_submitted(uint32_t pe)
{
    struct thread *thread = thread_of(pe);
    links_drop(&thread->after);                         /* of a command without an operation */
    if (thread->newest && !thread->newest->writes.rank)
        hb_compared(thread->newest);
}

/* ---- launches */

struct vector_clock *hb_known_to_host(void)
{
    return vector_clock_hold(*host_clock());
}

void hb_kernel_begins(uint32_t pe, const struct vector_clock *known)
{
    vector_clock_learn(&thread_of(pe)->known, known);
}

void hb_kernel_ended(uint32_t pe)
{
    struct thread *thread = thread_of(pe);
    while (thread->newest)
        ended(thread, thread->newest);
    hb_submitted(pe);
    vector_clock_learn(host_clock(), thread->known);
    vector_clock_learn_of(host_clock(), pe, thread->clock);
}

void hb_stop(void)
{
    for (uint32_t pe = 0; hb.threads && pe < pe_count(); pe++) {
        struct thread *thread = &hb.threads[pe];
        links_drop(&thread->after);
        for (struct hb_op *op; (op = thread->newest); hb_drop(op))
            thread->newest = op->older;
    }
}

void hb_reset(void)
{
    pool_release(&hb.clocks);
    pool_release(&hb.ops);
    pool_release(&hb.links);
    pool_release(&hb.chains);
    pool_release(&hb.places);
    pool_release(&hb.receipts);
    array_free(&hb.found);
    memset(&hb, 0, sizeof hb);
}
