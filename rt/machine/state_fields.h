/* state_fields.h: the rows of state.def: kinds, the check that no field is missing, save and restore of a field. */
#ifndef KB_STATE_FIELDS_H
#define KB_STATE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/array.h"

/* Tests define it otherwise for the code that reads state.def, to leave out one row at a time. */
#ifndef ROW_IS_READ
#define ROW_IS_READ(operation, structure, field) true
#endif

/* Kinds of fields, as state.def explains them. */
enum state_kind {
    STATE_VALUE, STATE_FREE, STATE_TIME, STATE_DUE, STATE_ORDER, STATE_NUMBER, STATE_TILE, STATE_STAGE, STATE_STEP, STATE_FED,
    STATE_LEFT, STATE_SERVICE, STATE_ROUTE, STATE_OFFSET, STATE_OWNER, STATE_ZERO, STATE_EMPTY, STATE_COUNTED,
    STATE_SINCE, STATE_PART, STATE_DERIVED, STATE_CACHE, STATE_CONST, STATE_UNUSED
};

/* STATE_LISTED(type), the rows of that struct, STATE_LISTED_END: checks that state.def names each member of the struct. A
 * literal of the struct, with an initializer for each row, does not compile if one is missing. */
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

/* ---- save and restore of fields */

/* The state between launches, in the order of state.def, for the process that made it. All 0: no image. */
struct state_image {
    struct ARRAY(uint8_t) bytes;
    size_t at;                                          /* bytes restored so far */
    bool restores;
};

/* Saves a field in the image, or restores it: the same code does both. */
void state_carry(struct state_image *image, void *field, size_t bytes);

/* Whether an image has fields of a kind. */
bool state_is_carried(enum state_kind kind);

#define STATE_CARRY(STRUCT, from, field, kind)                                                                         \
    if (state_is_carried(STATE_##kind) && ROW_IS_READ(CARRY, STRUCT, field))                                           \
        state_carry(image, &(from)->field, sizeof (from)->field);

#endif
