/* happens_before.c: operations as far as their order goes. */
#include "happens_before.h"

#include <stdlib.h>

#include "clocks.h"
#include "machine/emitted.h"
#include "sim/loop.h"
#include "common/arena.h"
#include "common/diag.h"

/* The kernels of a PE, one after the other. */
struct thread {
    struct clocks *seen;                                /* of others; of itself, what others have told it */
    uint32_t clock;                                     /* rises with each command waited for and each send */
    struct racer *newest;                               /* operations not waited for */
    struct racer **after;                               /* what the next command comes after */
    uint32_t afters, after_room;
};

/* In a list of sends. */
struct teller {
    struct racer *send;
    struct teller *next;
};

static struct thread *threads;                          /* by PE over the machine */
static struct clocks *host;
static struct racer *unused;
static struct teller *unused_tellers;
static uint64_t visits;

static struct clocks **host_clocks(void)
{
    if (!host)
        host = clocks_new();
    return &host;
}

static struct thread *thread_of(uint32_t pe)
{
    if (!threads)
        threads = arena_alloc(pe_count(), sizeof *threads);
    if (!threads[pe].seen)
        threads[pe].seen = clocks_hold(*host_clocks());
    return &threads[pe];
}

/* ---- lists of racers */

static void list_add(struct racer ***list, uint32_t *count, uint32_t *room, struct racer *racer)
{
    if (*count == *room) {
        *room = *room ? 2 * *room : 4;
        *list = realloc(*list, *room * sizeof **list);
        if (!*list)
            die("no memory for the order of operations:");
    }
    (*list)[(*count)++] = racer;
}

/* What is still to be looked at in a search along tl_after. */
static struct racer **stack;
static uint32_t stacked, stack_room;

static void push(struct racer *racer)
{
    if (racer->visit == visits)
        return;
    racer->visit = visits;
    list_add(&stack, &stacked, &stack_room, racer);
}

static void push_afters(const struct racer *racer)
{
    for (uint32_t i = 0; i < racer->afters; i++)
        push(racer->after[i]);
}

static void search_from(struct racer *racer)
{
    visits++;
    stacked = 0;
    push(racer);
}

/* ---- one operation */

static struct racer *racer_new(void)
{
    enum { CHUNK = 64 };
    if (!unused) {
        struct racer *chunk = arena_alloc(CHUNK, sizeof *chunk);
        for (int i = 0; i < CHUNK; i++) {
            chunk[i].older = unused;
            unused = &chunk[i];
        }
    }
    struct racer *racer = unused;
    unused = racer->older;
    *racer = (struct racer){.holders = 1};
    return racer;
}

static void seen_drop(struct racer *racer)
{
    clocks_drop(racer->seen);
    racer->seen = NULL;
}

static void afters_drop(struct racer *racer)
{
    while (racer->afters)
        racer_drop(racer->after[--racer->afters]);
    free(racer->after);
    racer->after = NULL;
}

static void tellers_add(struct racer *racer, struct racer *send)
{
    struct teller *teller = unused_tellers ? unused_tellers : arena_alloc(1, sizeof *teller);
    unused_tellers = teller->next;
    *teller = (struct teller){send, racer->tellers};
    racer->tellers = teller;
    send->holders++;
}

static void tellers_drop(struct racer *racer)
{
    for (struct teller *teller; (teller = racer->tellers); ) {
        racer->tellers = teller->next;
        racer_drop(teller->send);
        teller->next = unused_tellers;
        unused_tellers = teller;
    }
}

void racer_drop(struct racer *racer)
{
    if (!racer || --racer->holders)
        return;
    afters_drop(racer);
    tellers_drop(racer);
    racer_drop(racer->from);
    seen_drop(racer);
    racer->origin->racer = NULL;
    origin_drop(racer->origin);
    racer->older = unused;
    unused = racer;
}

/* What it comes after is what the thread was told. */
static void take_afters(struct racer *racer, struct thread *thread)
{
    racer->after = thread->after;
    racer->afters = thread->afters;
    thread->after = NULL;
    thread->afters = thread->after_room = 0;
}

struct racer *racer_called(uint32_t pe, uint32_t number, struct origin *origin)
{
    struct thread *thread = thread_of(pe);
    struct racer *racer = thread->newest;
    if (racer && racer->number == number)
        return racer;
    racer = racer_new();
    racer->origin = origin_hold(origin);
    racer->pe = pe;
    racer->number = number;
    racer->at_ps = sim_now_ps();
    racer->own = thread->clock;
    racer->seen = clocks_hold(thread->seen);
    racer->older = thread->newest;
    if (thread->newest)
        thread->newest->newer = racer;
    thread->newest = racer;
    take_afters(racer, thread);
    return origin->racer = racer;
}

void racer_known(struct racer *racer)
{
    if (!racer->sent)                                   /* what a message tells of is still to be learned */
        seen_drop(racer);
}

/* ---- messages */

void racer_sends(struct racer *racer)
{
    racer->sent = ++thread_of(racer->pe)->clock;
    racer->holders++;                                   /* who receives it */
    search_from(racer);
    for (uint32_t i = 0; i < stacked; i++)
        push_afters(stack[i]);
    while (--stacked) {
        tellers_add(stack[stacked], racer);
    }
}

void racer_received(struct racer *receive, struct racer *send)
{
    receive->from = send;
}

/* ---- order */

/* How far the work of a PE is known to an operation, but for what its own kernel knows of itself. */
static uint32_t known_of(const struct racer *racer, uint32_t pe)
{
    const struct racer *from = racer->from;
    uint32_t at = racer->seen ? racer->seen->at[pe] : 0;
    if (from && from->pe == pe && from->sent > at)
        at = from->sent;
    if (from && from->seen && from->seen->at[pe] > at)
        at = from->seen->at[pe];
    return at;
}

/* Whether an operation knows of a clock of a PE; 0 is none. */
static bool knows(const struct racer *racer, uint32_t pe, uint32_t clock)
{
    return clock && (clock <= known_of(racer, pe) || (pe == racer->pe && clock <= racer->own));
}

static bool message_known(const struct racer *send, const struct racer *b)
{
    return b->from == send || knows(b, send->heard_by, send->heard);
}

static bool known_to(const struct racer *a, const struct racer *b)
{
    if (knows(b, a->pe, a->waited) || message_known(a, b))
        return true;
    for (const struct teller *teller = a->tellers; teller; teller = teller->next)
        if (message_known(teller->send, b))
            return true;
    return false;
}

bool racer_before(const struct racer *a, struct racer *b)
{
    if (known_to(a, b))
        return true;
    if (!b->afters)
        return false;
    visits++;
    stacked = 0;
    push_afters(b);
    while (stacked) {
        const struct racer *c = stack[--stacked];
        if (c == a || known_to(a, c))
            return true;
        push_afters(c);
    }
    return false;
}

/* ---- what kernels do */

/* It is known to its kernel, and so is whatever it told of. */
static void wait_ended(struct thread *thread, struct racer *racer)
{
    racer->waited = ++thread->clock;
    if (racer->from) {
        clocks_learn(&thread->seen, racer->from->seen);
        clocks_learn_of(&thread->seen, racer->from->pe, racer->from->sent);
        racer->from->heard = racer->waited;
        racer->from->heard_by = racer->pe;
        seen_drop(racer->from);
    }
    if (!racer->sent)
        seen_drop(racer);
    *(racer->newer ? &racer->newer->older : &thread->newest) = racer->older;
    if (racer->older)
        racer->older->newer = racer->newer;
    racer->older = racer->newer = NULL;
    afters_drop(racer);
    racer_drop(racer->from);
    racer->from = NULL;
    racer_drop(racer);
}

/* What it comes after has ended before it. */
static void ended(struct thread *thread, struct racer *racer)
{
    search_from(racer);
    for (uint32_t i = 0; i < stacked; i++)
        push_afters(stack[i]);
    while (stacked) {
        struct racer *last = stack[--stacked];
        if (!last->waited)
            wait_ended(thread, last);
    }
}

static struct racer *find(const struct thread *thread, uint32_t number)
{
    struct racer *racer = thread->newest;
    while (racer && racer->number != number)
        racer = racer->older;
    return racer;
}

void racer_waited(uint32_t pe, uint32_t number)
{
    struct thread *thread = thread_of(pe);
    struct racer *racer = find(thread, number);
    if (racer)
        ended(thread, racer);
}

void racer_after(uint32_t pe, uint32_t number)
{
    struct thread *thread = thread_of(pe);
    struct racer *racer = find(thread, number);
    if (!racer || racer->received.rank)
        return;
    racer->holders++;
    list_add(&thread->after, &thread->afters, &thread->after_room, racer);
}

void racer_submitted(uint32_t pe)
{
    struct thread *thread = thread_of(pe);
    while (thread->afters)                              /* of a command that moves nothing */
        racer_drop(thread->after[--thread->afters]);
    if (thread->newest && !thread->newest->received.rank)
        racer_known(thread->newest);
}

/* ---- launches */

struct clocks *racers_known_to_host(void)
{
    return clocks_hold(*host_clocks());
}

void racers_kernel_begins(uint32_t pe, const struct clocks *known)
{
    clocks_learn(&thread_of(pe)->seen, known);
}

void racers_kernel_ended(uint32_t pe)
{
    struct thread *thread = thread_of(pe);
    while (thread->newest)
        ended(thread, thread->newest);
    racer_submitted(pe);
    clocks_learn(host_clocks(), thread->seen);
    clocks_learn_of(host_clocks(), pe, thread->clock);
}

void racers_reset(void)
{
    for (uint32_t pe = 0; threads && pe < pe_count(); pe++)
        free(threads[pe].after);
    threads = NULL;
    host = NULL;
    unused = NULL;
    unused_tellers = NULL;
    clocks_reset();
}
