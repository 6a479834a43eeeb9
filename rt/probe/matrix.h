/* matrix.h: the transfers between all ends of one kind and all of another, each alone in an idle machine. */
#ifndef KB_PROBE_MATRIX_H
#define KB_PROBE_MATRIX_H

#include "probe.h"

/* The ends of one side: all of a kind, or one for each cube. */
struct matrix_side {
    const char *word;                                   /* "pe" */
    enum end_kind kind;
    uint32_t count, each;                               /* the number of the i-th end is i * each */
};

struct matrix {
    struct matrix_side from, to;
    struct probe probe;                                 /* what all have in common: bytes, load, kind */
    uint64_t *ps;                                       /* rows are of `from`; UINT64_MAX: the machine has no such transfer */
};

/* Simulates every pair of "pe:hbm": a machine that was reset for each, by `reset`. `asked` has bytes, load and
 * is_virtual. Words that are no ends, and pairs of which none has a transfer, are a usage error. */
const struct matrix *matrix_measure(const char *pairs, const struct probe *asked, void (*reset)(void));

/* "sip0.cube3.pe5", or "sip0.cube3", in the arena. */
const char *matrix_name(const struct matrix_side *side, uint32_t i);

/* Bytes per second of a pair; 0: it has no transfer, or no bytes. */
double matrix_bps(const struct matrix *matrix, uint32_t row, uint32_t column);

static inline uint64_t matrix_ps(const struct matrix *matrix, uint32_t row, uint32_t column)
{
    return matrix->ps[(uint64_t)row * matrix->to.count + column];
}

/* Writes it as the object of a key; with_bandwidths: also those, which follow from the times. */
void matrix_write(struct json *json, const char *key, const struct matrix *matrix, bool with_bandwidths);

/* Writes it as a NumPy file of f8, shape (2, rows, columns): ps, and bytes per second; NaN where there is no transfer. */
void matrix_write_npy(FILE *out, const struct matrix *matrix);

#endif
