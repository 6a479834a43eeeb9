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

static void run_instant(void)
{
    event_next_instant();
    while (event_retire())
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
    for (; event_next_instant(); instants++) {
        good &= now_ps > last;
        last = now_ps;
        while (event_retire())
            memset(fired, 0, sizeof fired);
    }
    strcpy(fired, good && instants == MANY ? "good" : "bad");
    expect("instants are in the order of time, each once", "good");
}

/* Events that make others at every distance, some of them at once: none comes early, late, or out of order. */
enum { CHAINS = 300, STEPS = 200 };

static struct chain {
    struct event event;
    uint64_t due_ps;
    uint32_t steps;
} chains[CHAINS];

static bool chains_good = true;

static void chain_fire(struct event *event)
{
    static uint64_t random = 1;
    struct chain *chain = container_of(event, struct chain, event);
    chains_good &= chain->due_ps == now_ps;
    if (++chain->steps == STEPS)
        return;
    random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
    uint64_t distance = random >> 20 & ((UINT64_C(1) << (random >> 58) % 40) - 1);
    chain->due_ps = now_ps + distance;
    event_at(event, chain->due_ps);
}

static void at_all_distances(void)
{
    uint64_t last = now_ps;
    uint32_t steps = 0;
    for (uint32_t i = 0; i < CHAINS; i++) {
        event_set(&chains[i].event, event_order(i * 7919 % CHAINS, CLASS_SERVICE, 0), i, chain_fire);
        chains[i].due_ps = now_ps + 1 + i % 3;
        event_at(&chains[i].event, chains[i].due_ps);
    }
    while (event_next_instant()) {
        chains_good &= now_ps > last;
        last = now_ps;
        while (event_retire())
            ;
    }
    for (uint32_t i = 0; i < CHAINS; i++)
        steps += chains[i].steps;
    strcpy(fired, chains_good && steps == CHAINS * STEPS ? "good" : "bad");
    expect("every event fires at its time, however far ahead", "good");
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
    strcpy(fired, event_next_instant() || now_ps != end ? "an instant" : "none");
    expect("a cancelled event makes no instant", "none");
}

int main(void)
{
    in_order();
    in_rounds();
    in_time();
    at_all_distances();
    cancelled();
    printf("1..%d\n", tests);
    return 0;
}
