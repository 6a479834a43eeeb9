/* observer.c: which observers are told of which moment. */
#include "observer.h"

#include <assert.h>

#include "event.h"

_Static_assert((int)MOMENTS <= 64, "a bit of `observed` for each moment");

uint64_t observed;
struct cause observed_cause;
const struct message *observed_message;

static struct {
    struct observer *const *list;
    uint32_t watchers[MOMENTS];                         /* a bit for each observer that watches, by its position */
} observers;

/* tells_NAME: calls the observers that watch, in the order of the list. One that a handler switches on is told from the
 * next time on. */
#define MOMENT(name, parameters, arguments)                                                                            \
    static void tells_##name parameters                                                                                \
    {                                                                                                                  \
        for (uint32_t left = observers.watchers[MOMENT_##name]; left; left &= left - 1)                                \
            observers.list[__builtin_ctz(left)]->name arguments;                                                       \
    }                                                                                                                  \
    void (*tell_##name) parameters = tells_##name;
#include "observer.def"
#undef MOMENT

static void set_tellers(void)
{
#define MOMENT(name, parameters, arguments)                                                                            \
    {                                                                                                                  \
        uint32_t those = observers.watchers[MOMENT_##name];                                                            \
        bool one = those && !(those & (those - 1));                                                                    \
        tell_##name = one ? observers.list[__builtin_ctz(those)]->name : tells_##name;                                 \
    }
#include "observer.def"
#undef MOMENT
}

void observers_use(struct observer *const *list)
{
    observers.list = list;
    for (unsigned i = 0; list[i]; i++) {
        assert(i < 32);
        list[i]->bit = 1u << i;
#define MOMENT(name, parameters, arguments) list[i]->moments |= list[i]->name ? MOMENT_BIT(MOMENT_##name) : 0;
#include "observer.def"
#undef MOMENT
    }
}

void observer_watch(struct observer *observer, bool watches)
{
    if (observer->watches == watches)
        return;
    assert(observer->bit);                              /* it is in the list */
    observer->watches = watches;
    for (uint64_t left = observer->moments; left; left &= left - 1) {
        uint32_t *those = &observers.watchers[__builtin_ctzll(left)];
        uint64_t moment = left & -left;
        *those = watches ? *those | observer->bit : *those & ~observer->bit;
        observed = *those ? observed | moment : observed & ~moment;
    }
    set_tellers();
    event_last_added = NULL;
}

bool observers_need_every_event(void)
{
    for (struct observer *const *observer = observers.list; *observer; observer++)
        if ((*observer)->watches && (*observer)->needs_every_event)
            return true;
    return false;
}
