/* quantity.h: "2 MiB", "1.4 GHz", "0x10" as exact numbers in base units.
 *
 * Base units are ps, B, B/s, kHz and um; a number without dimension counts ones. Numbers are exact rationals, apart from
 * those over 1e40 or under 1e-40, which become that, so that a large exponent costs nothing. The caller rounds, once. */
#ifndef KB_QUANTITY_H
#define KB_QUANTITY_H

#include <gmp.h>
#include <stdbool.h>
#include <stdint.h>

enum dimension {
#define DIMENSION(name, ...) DIMENSION_##name,
#define UNIT(name, dimension, up, down)
#include "units.def"
#undef DIMENSION
#undef UNIT
    DIMENSIONS
};

struct unit {
    const char *name;
    enum dimension dimension;
    uint64_t up, down;                                  /* one is up / down base units */
};

/* All units, by dimension; a NULL name ends the list. */
extern const struct unit units[];

/* "size", "a size", "bytes" ... */
extern const char *const dimension_name[DIMENSIONS], *const dimension_phrase[DIMENSIONS], *const dimension_base[DIMENSIONS];

/* The unit with a name, or NULL. */
const struct unit *unit_named(const char *name);

/* The base unit of a dimension, or NULL for a number without one. */
const struct unit *unit_base(enum dimension dimension);

/* The grammar of numbers as a regular expression, for the JSON Schema. */
extern const char quantity_pattern[];

/* Reads a number into `value`, which the caller has initialised, and sets *unit to the rest of the text, the unit.
 * Returns NULL, or why the text is not a number; "" if it does not look like one. */
const char *quantity_lex(const char *text, mpq_t value, const char **unit);

/* Scales a number of a unit to base units of `dimension`; without a unit ("") it counts `bare` (NULL: ones). Returns
 * NULL, or why the unit is wrong. */
const char *quantity_scale(mpq_t value, const char *unit, enum dimension dimension, const struct unit *bare);

/* Rounds half up; returns false if the result needs more than 64 bits. */
bool quantity_round(const mpq_t value, uint64_t *out);

/* Returns false if the number is not whole, or needs more than 64 bits. */
bool quantity_whole(const mpq_t value, uint64_t *out);

#endif
