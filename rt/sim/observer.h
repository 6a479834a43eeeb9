/* observer.h: the one interface through which everything else watches the machine.
 *
 * The machine says what happens in it, at the moments of observer.def, and does not know who watches: trace, op log,
 * race check, rows of results, profile, fast-forward. An observer is a struct of handlers, one for each moment that it
 * watches. A moment that nobody watches costs a test of one bit. Statistics, which always watch, are counted in place
 * (machine/stats.h).
 *
 * To add an observer:
 *     1. define a struct observer with the handlers of its moments in the room it belongs to, and declare it in the
 *        header of that file;
 *     2. add it to the list in session/observers.c: of one moment, observers are told in the order of that list;
 *     3. call observer_watch where an option or the start of a run turns it on.
 * To add a moment: a row in observer.def, and a call of observe_NAME where it happens.
 *
 * Handlers read their arguments and what these refer to. Only fast-forward also changes the machine: it replaces a
 * simulated state by a computed one. The cause of a moment is the event that fires (event_fires) and, after a wait, what
 * was waited for: `reserved` has the times of the request and of the grant, a token the time of its arrival in the
 * queue. */
#ifndef KB_OBSERVER_H
#define KB_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

struct command;
struct data_message;
struct event;
struct group_pair;
struct launch;
struct memory_request;
struct message;
struct pe;
struct sender;
struct tl;
struct token;
struct transfer;

/* What something in the machine happens for: a command of a kernel, or a request of the host. */
struct cause {
    uint32_t kernel;                                    /* its serial number over the run; 0: the host */
    uint32_t number;                                    /* of the command in its kernel; of the host's request */
};

/* What the machine acts for, at the moments `reserved` and `translated`. It is known while `reserved` is watched. */
extern struct cause observed_cause;

/* The message that takes a link, at the moment `reserved` of a link. */
extern const struct message *observed_message;

/* A part of the machine that serves one request at a time. The comments say what its number counts, over the machine. */
enum resource_kind {
    RESOURCE_NODE,                                      /* rank */
    RESOURCE_LINK,                                      /* link */
    RESOURCE_TCM_READ,                                  /* PE */
    RESOURCE_TCM_WRITE,
    RESOURCE_SRAM_READ,                                 /* cube */
    RESOURCE_SRAM_WRITE,
    RESOURCE_PSEUDO_CHANNEL,                            /* pseudo channel, slice by slice */
    RESOURCE_HBM_MODEL,                                 /* slice, with the model of a user */
    RESOURCE_SRAM_MODEL,                                /* cube, likewise */
    RESOURCE_KINDS
};

/* Why a kernel acts at a time of its own. */
enum kernel_act { KERNEL_BEGINS, KERNEL_LAUNCHES, KERNEL_SUBMITS, KERNEL_DELAYS };

enum moment {
    MODELS_WATCH, PLANES_MEET,                          /* no moments: see `observed` */
#define MOMENT(name, parameters, arguments) MOMENT_##name,
#include "observer.def"
#undef MOMENT
    MOMENTS
};

struct observer {
    const char *name;
    bool needs_every_event;                             /* there is no fast-forward while it watches */
    bool watches;                                       /* set by observer.c, like the next two */
    uint64_t moments;                                   /* a bit for each moment that it has a handler for */
    uint32_t bit;                                       /* its bit in a set of observers */
#define MOMENT(name, parameters, arguments) void (*name) parameters;
#include "observer.def"
#undef MOMENT
};

/* The list of all observers, at most 32, NULL at the end. Before any of them watches. */
void observers_use(struct observer *const *observers);

/* Switches an observer on or off: whether it is told of its moments. */
void observer_watch(struct observer *observer, bool watches);

/* Whether one of those that watch needs every event. */
bool observers_need_every_event(void);

/* A bit for each moment that an observer watches; MODELS_WATCH, which is set if models of users serve the fabric or TCMs;
 * PLANES_MEET, which is set if data come to a pe_dma in several planes. */
extern uint64_t observed;

/* A moment as a bit of `observed`. */
#define MOMENT_BIT(moment) (UINT64_C(1) << (moment))

/* Whether an observer watches a moment. A hot function that cannot afford a call in its middle, because registers would
 * have to be saved around it, asks this first and is compiled twice: with and without the call. */
static inline bool is_observed(enum moment moment)
{
    return __builtin_expect(observed >> moment & 1, 0);
}

/* The same for any of several bits. */
static inline bool is_any_observed(uint64_t bits)
{
    return __builtin_expect((observed & bits) != 0, 0);
}

/* Says that models of users serve the fabric or TCMs. */
static inline void observe_models(void)
{
    observed |= MOMENT_BIT(MODELS_WATCH);
}

/* Says that data come to a pe_dma in several planes. */
static inline void observe_planes(void)
{
    observed |= MOMENT_BIT(PLANES_MEET);
}

/* The same for a function whose watched version also asks models of users. */
static inline bool is_observed_or_modelled(enum moment moment)
{
    return __builtin_expect((observed & (MOMENT_BIT(moment) | MOMENT_BIT(MODELS_WATCH))) != 0, 0);
}

/* observe_NAME: tells the observers that watch it of a moment. tell_NAME is the handler of the one that does, or a function
 * that calls those of several; only observer.c sets it. */
#define MOMENT(name, parameters, arguments)                                                                            \
    extern void (*tell_##name) parameters;                                                                             \
    static inline void observe_##name parameters                                                                       \
    {                                                                                                                  \
        if (is_observed(MOMENT_##name))                                                                                \
            tell_##name arguments;                                                                                     \
    }
#include "observer.def"
#undef MOMENT

#endif
