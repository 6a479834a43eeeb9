/* quantity.h: "2 MiB", "1.4 GHz", "0x10": text -> an exact number in base units.
 *
 * Base units: ps, B, B/s, kHz, um; a number without dimension counts ones. Numbers are rationals of as many digits as
 * are written; only what is beyond any use (over 1e40, or under 1e-40) is brought to that, so that an exponent costs
 * nothing. Rounding is up to the caller, once. */
#ifndef TEXT_QUANTITY_H
#define TEXT_QUANTITY_H

#include <gmp.h>
#include <stdbool.h>
#include <stdint.h>

enum dimension {
#define DIMENSION(name, phrase) DIMENSION_##name,
#define UNIT(name, dimension, up, down)
#include "units.def"
#undef DIMENSION
#undef UNIT
    DIMENSIONS
};

struct unit {
    const char *name;
    enum dimension dimension;
    uint64_t up, down;                                  /* one of it is up / down base units */
};

/* All units, dimension after dimension; a NULL name ends them. */
extern const struct unit units[];

/* "time", "a time" ... */
extern const char *const dimension_name[DIMENSIONS], *const dimension_phrase[DIMENSIONS];

/* The unit of a name, or NULL. */
const struct unit *unit_named(const char *name);

/* A number as a regular expression, for those who describe the grammar to others. */
extern const char quantity_pattern[];

/* Reads a number: `value` (initialised by the caller) gets it, `*unit` the rest of the text, where a unit would stand.
 * Returns NULL, or why the text is no number; "": it is nothing like one. */
const char *quantity_lex(const char *text, mpq_t value, const char **unit);

/* Brings a number of a unit to base units of `dimension`; without a unit ("") it counts `bare` (NULL: ones). Returns
 * NULL, or why that unit will not do. */
const char *quantity_scale(mpq_t value, const char *unit, enum dimension dimension, const struct unit *bare);

/* Rounds half up; false: beyond 64 bits. */
bool quantity_round(const mpq_t value, uint64_t *out);

/* False: no whole number, or beyond 64 bits. */
bool quantity_whole(const mpq_t value, uint64_t *out);

#endif
