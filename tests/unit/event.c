/* event.c: instants and rounds of the event queue: order within a round, what waits for the next one. */
#include <stdio.h>
#include <string.h>

#include "sim/event.h"

struct probe {
    struct event event;
    char name;
    struct probe *makes;                                /* due in the same instant, when this fires */
};

static char fired[64];

static void fire(struct event *event)
{
    struct probe *probe = container_of(event, struct probe, event);
    fired[strlen(fired)] = probe->name;
    if (probe->makes)
        event_at(&probe->makes->event, now_ps);
}

static struct probe probe(char name, uint32_t rank, enum event_class class, uint32_t key, uint64_t minor)
{
    return (struct probe){.event = {.order = event_order(rank, class, key), .key = minor, .fire = fire}, .name = name};
}

static int tests;

static void expect(const char *what, const char *want)
{
    bool good = !strcmp(fired, want);
    printf("%s %d - %s\n", good ? "ok" : "not ok", ++tests, what);
    if (!good)
        printf("# got %s, want %s\n", fired, want);
    memset(fired, 0, sizeof fired);
}

/* Moves time to the next instant. Returns false if nothing is due any more. */
static bool next_instant(void)
{
    struct event *events = event_take_instant();
    if (events)
        event_due = events;
    return events;
}

/* Fires the events of the next round. Returns false if nothing is due. */
static bool retire(void)
{
    struct event *events = event_take_round();
    if (events)
        event_fire_round(events);
    return events;
}

static void run_instant(void)
{
    next_instant();
    while (retire())
        strcat(fired, ".");
}

static void in_order(void)
{
    struct probe by_rank = probe('d', 2, CLASS_SERVICE, 0, 0), by_class = probe('c', 1, CLASS_KERNEL, 0, 0);
    struct probe by_key = probe('b', 1, CLASS_MESSAGE, 7, 1), first = probe('a', 1, CLASS_MESSAGE, 6, 9);
    struct probe largest = probe('f', (1u << RANK_BITS) - 1, CLASS_SERVICE, UINT32_MAX, 2);
    struct probe minor = probe('e', (1u << RANK_BITS) - 1, CLASS_SERVICE, UINT32_MAX, 1);
    struct probe *all[] = {&largest, &by_rank, &by_class, &minor, &by_key, &first};
    for (int i = 0; i < 6; i++)
        event_at(&all[i]->event, 100);
    run_instant();
    expect("a round fires by rank, class, key", "abcdef.");
}

static void in_rounds(void)
{
    struct probe second = probe('y', 0, CLASS_SERVICE, 0, 0), third = probe('z', 0, CLASS_SERVICE, 0, 1);
    struct probe first = probe('x', 9, CLASS_KERNEL, 0, 0), other = probe('o', 10, CLASS_KERNEL, 0, 0);
    first.makes = &second;
    second.makes = &third;
    event_at(&other.event, 200);
    event_at(&first.event, 200);
    run_instant();
    expect("an event that becomes due at its own instant waits for the next round", "xo.y.z.");
}

static void in_time(void)
{
    enum { MANY = 1000 };
    static struct probe probes[MANY];
    uint64_t last = 0;
    bool good = true;
    for (int i = 0; i < MANY; i++) {
        probes[i] = probe('t', i, CLASS_SERVICE, 0, 0);
        event_at(&probes[i].event, 1000 + (uint64_t)i * 7919 % MANY);
    }
    int instants = 0;
    for (; next_instant(); instants++) {
        good &= now_ps > last;
        last = now_ps;
        while (retire())
            memset(fired, 0, sizeof fired);
    }
    strcpy(fired, good && instants == MANY ? "good" : "bad");
    expect("instants are in the order of time, each once", "good");
}

/* Tens of thousands of events that wait, each for several times. */
enum { PENDING = 60000 };

static uint64_t pending_fires, pending_again, pending_last_ps;
static bool pending_in_order;

static void pending_fire(struct event *event)
{
    pending_in_order &= event->t_ps == now_ps && now_ps >= pending_last_ps;
    pending_last_ps = now_ps;
    if (++pending_fires % 4 == 0)
        return;
    pending_again++;
    event_at(event, now_ps + 1 + pending_fires * 7919 % (pending_fires % 5 ? 100000 : 1000000000));
}

/* Most of the events are due close together at several times, or some of them at one time; the others are `apart_ps` apart. One
 * event in `one_in` is cancelled. */
static void many_pending(bool most, uint64_t apart_ps, uint64_t one_in, const char *what)
{
    static struct probe probes[PENDING];
    uint64_t fires = 0;
    pending_in_order = true;
    pending_fires = pending_again = 0;
    for (uint64_t i = 0; i < PENDING; i++) {
        probes[i] = probe('t', i, CLASS_SERVICE, 0, 0);
        probes[i].event.fire = pending_fire;
        bool apart = most ? i % 7 == 0 : i % 7 != 0;
        uint64_t begin_ps = most && i % 2 && !apart ? PENDING * apart_ps / 8 * (i / 2 % 8) : 0;
        event_at(&probes[i].event, now_ps + 1 + begin_ps + i * 7919 % PENDING * (apart ? apart_ps : 1));
    }
    uint64_t gone = 0;
    for (uint64_t i = 0; i < PENDING; i += one_in, gone++)
        event_cancel(&probes[i].event);
    pending_last_ps = now_ps;
    uint64_t before = event_count;
    while (next_instant())
        while (retire())
            ;
    fires = event_count - before;
    strcpy(fired, pending_in_order && fires == PENDING - gone + pending_again ? "good" : "bad");
    expect(what, "good");
}

/* When the queue knows the next event, which is far off, time goes on to before it, and many events are put before it. */
static void passed(void)
{
    enum { EACH = 100 };
    static struct probe probes[3][EACH];
    const uint64_t after_ps[3] = {1000, 1000000000, 500000000};
    uint64_t start_ps = now_ps;
    bool good = true;
    for (unsigned part = 0; part < 3; part++)
        for (uint64_t i = 0; i < EACH; i++)
            probes[part][i] = probe('t', i, CLASS_SERVICE, 0, 0);
    for (unsigned part = 0; part < 2; part++)
        for (uint64_t i = 0; i < EACH; i++)
            event_at(&probes[part][i].event, start_ps + after_ps[part] + i * 10);
    for (unsigned turn = 0; turn < 3; turn++) {
        unsigned part = turn ? 3 - turn : 0;
        if (turn == 1) {
            good &= event_next_ps() == start_ps + after_ps[1];
            event_pass(start_ps + 400000000);
            for (uint64_t i = 0; i < EACH; i++)
                event_at(&probes[2][i].event, start_ps + after_ps[2] + i * 10);
        }
        for (uint64_t i = 0; i < EACH; i++) {
            good &= next_instant() && now_ps == start_ps + after_ps[part] + i * 10;
            while (retire())
                memset(fired, 0, sizeof fired);
        }
    }
    strcpy(fired, good ? "good" : "bad");
    expect("events before one that was the next one fire first", "good");
    event_reset();
}

/* Random events against a model that knows of each event whether it waits, and until when. */
enum { MODEL_MOST = 3000 };

static struct model_event {
    struct event event;
    uint64_t t_ps;
    bool waits, in_round;
} model[MODEL_MOST];

static struct profile {
    const char *what;
    unsigned events;                                    /* how many of the model there are */
    unsigned bits;                                      /* delays are below 2^bits ps, most of them far below */
    unsigned ties;                                      /* share of the events that are due with another one, in 1/16 */
    unsigned fires;                                     /* of so many events others become due */
} profile;

static bool model_agrees;

static uint64_t random_bits(void)
{
    static uint64_t state = 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t random_below(uint64_t bound)
{
    return random_bits() % bound;
}

static struct model_event *random_event(void)
{
    return &model[random_below(profile.events)];
}

static void model_add(struct model_event *added)
{
    const struct model_event *other = random_event();
    added->t_ps = now_ps + random_below(UINT64_C(1) << (random_below(2) ? random_below(profile.bits) : profile.bits / 3));
    if (other->waits && random_below(16) < profile.ties)
        added->t_ps = other->t_ps;
    added->waits = true;
    event_at(&added->event, added->t_ps);
}

static void model_cancel(struct model_event *cancelled)
{
    cancelled->waits = false;
    event_cancel(&cancelled->event);
}

static bool is_before(const struct event *a, const struct event *b)
{
    return a->order != b->order ? a->order < b->order : a->key < b->key;
}

static void model_fire(struct event *event)
{
    struct model_event *fires = container_of(event, struct model_event, event);
    model_agrees &= fires->waits && fires->in_round;
    fires->waits = fires->in_round = false;
    for (unsigned i = 0; i < profile.events; i++)
        model_agrees &= !model[i].waits || !model[i].in_round || is_before(event, &model[i].event);
    for (unsigned i = 0; i < 3 && profile.fires; i++) {
        struct model_event *other = i ? random_event() : fires;
        if (!other->waits && random_below(16) < (i ? 1 : 15))
            model_add(other);
    }
    profile.fires -= profile.fires > 0;
    if (random_below(8) == 0)
        model_cancel(random_event());
}

static bool round_begins(void)
{
    bool any = false;
    for (unsigned i = 0; i < profile.events; i++) {
        model[i].in_round = model[i].waits && model[i].t_ps == now_ps;
        any |= model[i].in_round;
    }
    return any;
}

/* What waits: how many events that are not of kernels, and the first time of those of each kind. */
static size_t model_waiting(uint64_t *other_ps, uint64_t *kernel_ps)
{
    size_t others = 0;
    *other_ps = *kernel_ps = UINT64_MAX;
    for (unsigned i = 0; i < profile.events; i++) {
        if (!model[i].waits)
            continue;
        bool of_kernel = order_class(model[i].event.order) == CLASS_KERNEL;
        uint64_t *first = of_kernel ? kernel_ps : other_ps;
        *first = model[i].t_ps < *first ? model[i].t_ps : *first;
        others += !of_kernel;
    }
    return others;
}

static bool drops(uint32_t rank)
{
    return rank % 2;
}

/* What fast-forward does between two instants. */
static void model_forward(void)
{
    uint64_t other_ps, kernel_ps, said_ps;
    size_t others = model_waiting(&other_ps, &kernel_ps);
    model_agrees &= event_waiting(&said_ps) == others && said_ps == kernel_ps;
    uint64_t skipped_ps = random_below(UINT64_C(1) << profile.bits);
    if (kernel_ps - now_ps <= skipped_ps)
        skipped_ps = kernel_ps - now_ps - 1;
    event_skip(skipped_ps);
    bool dropping = random_below(4) == 0;
    if (dropping)
        event_drop(drops);
    for (unsigned i = 0; i < profile.events; i++) {
        if (order_class(model[i].event.order) == CLASS_KERNEL)
            continue;
        model[i].t_ps += skipped_ps;
        model[i].waits &= !dropping || !drops(event_rank(&model[i].event));
    }
}

static void model_run(struct profile of)
{
    uint64_t other_ps, kernel_ps;
    profile = of;
    memset(model, 0, sizeof model);
    for (unsigned i = 0; i < of.events; i++)
        event_set(&model[i].event, event_order(random_below(4), random_below(8) ? CLASS_MESSAGE : CLASS_KERNEL, i % 3), i,
                  model_fire);
    event_restart(random_below(now_ps + 1));
    model_agrees = true;
    for (unsigned i = 0; i < of.events / 2; i++)
        model_add(&model[i]);
    do {
        while (round_begins()) {
            model_agrees &= retire();
            for (unsigned i = 0; i < of.events; i++)
                model_agrees &= !model[i].in_round || !model[i].waits;
        }
        model_agrees &= !retire();
        if (random_below(16) == 0)
            model_forward();
        bool any = model_waiting(&other_ps, &kernel_ps) || kernel_ps != UINT64_MAX;
        uint64_t t_ps = other_ps < kernel_ps ? other_ps : kernel_ps;
        model_agrees &= next_instant() == any && (!any || now_ps == t_ps);
    } while (model_agrees && (other_ps & kernel_ps) != UINT64_MAX);
    if (!model_agrees)
        event_reset();
    strcpy(fired, model_agrees ? "good" : "bad");
    expect(of.what, "good");
}

static void against_model(void)
{
    model_run((struct profile){"few events agree with the model", 4, 20, 4, 4000});
    model_run((struct profile){"tens of events agree with the model", 60, 24, 4, 4000});
    model_run((struct profile){"events that are mostly due together agree with the model", 200, 8, 14, 2000});
    model_run((struct profile){"many events agree with the model", MODEL_MOST, 30, 2, 6000});
    model_run((struct profile){"events of far times agree with the model", 300, 44, 2, 4000});
}

static void at_the_end_of_time(void)
{
    enum { MANY = 100 };
    static struct probe probes[MANY];
    bool good = true;
    for (uint64_t i = 0; i < MANY; i++) {
        probes[i] = probe('t', i, CLASS_SERVICE, 0, 0);
        event_at(&probes[i].event, UINT64_MAX - i * 7919 % MANY * 1000);
    }
    for (uint64_t i = MANY; i-- > 0;) {
        good &= next_instant() && now_ps == UINT64_MAX - i * 1000;
        while (retire())
            memset(fired, 0, sizeof fired);
    }
    strcpy(fired, good && !next_instant() ? "good" : "bad");
    expect("events fire up to the last time that there is", "good");
    event_reset();
}

static void cancelled(void)
{
    struct probe never = probe('n', 1, CLASS_KERNEL, 0, 0), far = probe('f', 1, CLASS_KERNEL, 0, 0);
    struct probe left = probe('l', 2, CLASS_KERNEL, 0, 0);
    uint64_t end = now_ps + 2;
    event_at(&never.event, now_ps + 1);
    event_at(&left.event, end);
    event_at(&far.event, now_ps + 1000000000);
    event_cancel(&never.event);
    event_cancel(&far.event);
    run_instant();
    expect("a cancelled event does not fire", "l.");
    strcpy(fired, next_instant() || now_ps != end ? "an instant" : "none");
    expect("a cancelled event makes no instant", "none");
}

/* Events that were put off, which an event catches up with when it fires. */
static struct probe put_off[3];
static bool all_done;                                   /* the events of the round are */

static void catch_up(struct event *event)
{
    fire(event);
    for (unsigned i = 0; i < sizeof put_off / sizeof *put_off; i++)
        event_catch_up(&put_off[i].event, all_done ? NULL : event);
}

static void fire_again(struct event *event)
{
    fire(event);
    if (event->t_ps + 2 < event->note)                  /* of these tests: until when */
        event_at(event, now_ps + 2);
}

static void catch_up_at(uint64_t t_ps, bool alone)
{
    struct probe meets = probe('m', 5, CLASS_MESSAGE, 0, 0), last = probe('z', 9, CLASS_MESSAGE, 0, 0);
    meets.event.fire = catch_up;
    for (unsigned i = 0; i < 3; i++)
        put_off[i].event.t_ps = t_ps;
    event_at(&meets.event, t_ps);
    if (!alone)
        event_at(&last.event, t_ps);
    run_instant();
}

static void caught_up(void)
{
    uint64_t t_ps = now_ps + 100;
    for (unsigned i = 0; i < 3; i++)
        put_off[i] = probe('a' + (char)i, 4 + i, CLASS_MESSAGE, 1, 0);
    catch_up_at(t_ps, false);
    expect("an event that was put off fires at its place in a round", "mabcz.");
    catch_up_at(t_ps + 10, true);
    expect("the same behind the only event of a round", "mabc.");
    all_done = true;
    catch_up_at(t_ps + 20, true);
    expect("when a round has fired, so has what was put off until then", "mabc.");

    struct probe again = probe('r', 1, CLASS_MESSAGE, 0, 0);
    event_at(&put_off[0].event, t_ps + 30);
    run_instant();
    memset(fired, 0, sizeof fired);
    again.event.fire = fire_again;
    again.event.t_ps = t_ps + 21;
    again.event.note = t_ps + 35;
    event_catch_up(&again.event, NULL);
    strcat(fired, now_ps == t_ps + 30 ? "|" : "?");
    while (next_instant())
        retire();
    expect("what was put off fires as often as it was due, and then when it is due", "rrrrr|rr");
    all_done = false;
}

/* Many events close together, alone, far behind the start of what they are kept in; each makes one a little later. */
enum { CROWD = 80, BEFORE = 61 };

static struct probe crowd[CROWD], crowd_later[CROWD], before_crowd[BEFORE];
static uint64_t crowd_last_ps;
static unsigned crowd_fired;

static void crowd_fire(struct event *event)
{
    model_agrees &= event->t_ps == now_ps && now_ps > crowd_last_ps;
    crowd_last_ps = now_ps;
    crowd_fired++;
    if (event >= &crowd[0].event && event <= &crowd[CROWD - 1].event)
        event_at(&crowd_later[container_of(event, struct probe, event) - crowd].event, now_ps + 10005);
}

static void crowd_add(struct probe *added, uint64_t t_ps)
{
    event_set(&added->event, event_order(1, CLASS_SERVICE, 0), 0, crowd_fire);
    event_at(&added->event, t_ps);
}

static void in_crowd(void)
{
    event_reset();
    model_agrees = true;
    for (unsigned i = 0; i < BEFORE; i++)
        crowd_add(&before_crowd[i], i < BEFORE - 1 ? 1000 * (i + 1) : 999000);
    for (unsigned i = 0; i < CROWD; i++) {
        event_set(&crowd_later[i].event, event_order(1, CLASS_SERVICE, 0), 0, crowd_fire);
        crowd_add(&crowd[i], 1000000 + 10 * i);
    }
    while (next_instant())
        while (retire())
            ;
    strcpy(fired, model_agrees && crowd_fired == BEFORE + 2 * CROWD ? "good" : "bad");
    expect("a crowd of events at once keeps its order", "good");
    event_reset();
}

static void set_back(void)
{
    event_reset();
    struct probe taken = probe('t', 1, CLASS_SERVICE, 0, 0), added = probe('a', 1, CLASS_SERVICE, 0, 1);
    event_at(&taken.event, 100);
    struct event *events = event_take_instant();
    event_return(50);
    event_at(&added.event, 100);
    strcpy(fired, events == &taken.event && !events->next ? "alone," : "joined,");
    run_instant();
    expect("what is due again at a time that was set back does not join what was taken", "alone,a.");
    event_reset();
}

int main(void)
{
    in_order();
    in_rounds();
    in_time();
    cancelled();
    caught_up();
    against_model();
    at_the_end_of_time();
    in_crowd();
    many_pending(false, 4000, 3, "tens of thousands of events fire in the order of time, each once");
    for (int shift = 4; shift <= 28; shift += 2)
        many_pending(true, UINT64_C(1) << shift, 1000, "they do if most of them are close together at several times");
    passed();
    set_back();
    printf("1..%d\n", tests);
    return 0;
}
