/* defect.h: defects that are put into the data pass, to see whether the verification of a run finds them (--inject).
 *
 * A defect edits the records of one operation between the op log and the data pass: it leaves one out, changes its views,
 * or adds records to it. Nothing else knows of defects. */
#ifndef KB_DEFECT_H
#define KB_DEFECT_H

#include "oplog/oplog.h"

/* DEFECT(name, what it is) */
#define DEFECT_KINDS(DEFECT)                                                                                             \
    DEFECT(skipped, "an operation skipped")                                                                             \
    DEFECT(shifted, "an operand shifted by one row")                                                                    \
    DEFECT(k_tile, "a k tile dropped")                                                                                  \
    DEFECT(swapped, "two tiles of a result swapped")                                                                    \
    DEFECT(lost, "a message lost")                                                                                      \
    DEFECT(doubled, "a message delivered twice, the second time instead of the next one")                               \
    DEFECT(changed, "an element changed by 2^-3 of its size")                                                           \
    DEFECT(shortened, "a sum or reduction short by one term")                                                           \
    DEFECT(stale, "an operand as it was before the buffer was last written")

enum defect_kind {
#define DEFECT(name, ...) DEFECT_##name,
    DEFECT_KINDS(DEFECT)
#undef DEFECT
    DEFECTS
};

extern const char *const defect_names[DEFECTS], *const defect_words[DEFECTS];

struct defect {
    enum defect_kind kind;
    uint64_t place;                                     /* among the operations of an interval that the kind fits */
    uint64_t random;                                    /* chooses the operand, tile or element */
    uint64_t op, earlier;                               /* ids: of the operation; of the one before it that is part of it */
    unsigned operand;
    const char *name, *kernel, *file;                   /* of the operation */
    uint32_t line;
    int64_t pe;
};

/* Counts the operations of the interval that each kind of defect fits; and of `defects`, which are sorted by kind and place,
 * sets all behind `random`. */
void defects_find(uint64_t counts[DEFECTS], struct defect *defects, uint64_t count);

/* From now on the data pass of this process does the operations with the defect. The defect must stay. */
void defect_put_in(const struct defect *defect);

#endif
