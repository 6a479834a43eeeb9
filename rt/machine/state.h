/* state.h: the machine's state as a whole: reset, and save and restore between launches. */
#ifndef KB_MACHINE_STATE_H
#define KB_MACHINE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/array.h"

/* Tests compile the code that reads state.def with another one, to leave out a row at a time. */
#ifndef ROW_IS_READ
#define ROW_IS_READ(operation, structure, field) true
#endif

/* Kinds of fields, as state.def explains them. */
enum state_kind {
    STATE_VALUE, STATE_FREE, STATE_TIME, STATE_DUE, STATE_ORDER, STATE_NUMBER, STATE_TILE, STATE_STAGE, STATE_FED,
    STATE_LEFT, STATE_SERVICE, STATE_RANK, STATE_WAY, STATE_OFFSET, STATE_OWNER, STATE_ZERO, STATE_EMPTY, STATE_COUNTED,
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

/* ---- save and restore */

/* The state between launches, in the order of state.def, for the process that made it. All 0: no image. */
struct state_image {
    struct ARRAY(uint8_t) bytes;
    size_t at;                                          /* bytes restored so far */
    bool restores;
};

/* Saves time and state of the machine in an image, over what is there. Called on a host program's coroutine when no
 * command, message or timeout is under way. Returns NULL, or why it is refused. Not saved are results, and the contents
 * of memories. */
const char *machine_state_save(struct state_image *image);

/* Puts the machine back to the time and the state of an image of it; under the same conditions, and with the same
 * answer. */
const char *machine_state_restore(struct state_image *image);

void state_image_free(struct state_image *image);

/* For the files of this room: saves a field, or restores it; a field of a kind that an image holds. */
void state_carry(struct state_image *image, void *field, size_t bytes);
bool state_is_carried(enum state_kind kind);
#define STATE_CARRY(STRUCT, from, field, kind)                                                                         \
    if (state_is_carried(STATE_##kind) && ROW_IS_READ(CARRY, STRUCT, field))                                           \
        state_carry(image, &(from)->field, sizeof (from)->field);

#endif
