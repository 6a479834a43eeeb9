/* state.h: the machine's state as a whole: reset, and save and restore between launches. */
#ifndef KB_MACHINE_STATE_H
#define KB_MACHINE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of fields, as state.def explains them. */
enum state_kind {
    STATE_VALUE, STATE_FREE, STATE_TIME, STATE_DUE, STATE_ORDER, STATE_NUMBER, STATE_TILE, STATE_FED, STATE_LEFT,
    STATE_SERVICE, STATE_RANK, STATE_WAY, STATE_OFFSET, STATE_OWNER, STATE_ZERO, STATE_EMPTY, STATE_COUNTED, STATE_BASE,
    STATE_SINCE, STATE_PART, STATE_DERIVED, STATE_CACHE, STATE_CONST, STATE_UNUSED
};

/* Checks that the rows of a struct in state.def name each of its members: a literal of the struct with an initializer
 * for each row does not compile if one is missing. Between STATE_LISTED and STATE_LISTED_END state.def is included. */
#define STATE_LISTED(type)                                                                                             \
    _Pragma("GCC diagnostic push")                                                                                     \
    _Pragma("GCC diagnostic error \"-Wmissing-field-initializers\"")                                                   \
    __attribute__((unused)) static void type##_is_listed(const struct type *all)                                       \
    {                                                                                                                  \
        struct type copy = {
#define STATE_LISTED_END                                                                                               \
        };                                                                                                             \
        (void)copy;                                                                                                    \
    }                                                                                                                  \
    _Pragma("GCC diagnostic pop")
#define STATE_LISTED_FIELD(field, ...) all->field,
#define STATE_LISTED_ARRAY(field, ...) {all->field[0]},

/* The room's reset (cli/reset.c): all that the machine consists of is as at the start of a run. */
void machine_reset(void);

#endif
