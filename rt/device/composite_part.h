/* composite_part.h: the operands of a composite: what they have to be, and where their data are. */
#ifndef KB_COMPOSITE_PART_H
#define KB_COMPOSITE_PART_H

#include "call.h"

enum { SIZE_BITS = 40 };                                /* more than any memory holds, and products of two fit */

/* Which place outside of all memories an operand gets whose pages are spread. */
enum { PART_A, PART_B, PART_C, PART_EPILOGUE };

/* An operand with what the composite makes of it. */
struct part {
    const char *name;
    const struct tl_operand *operand;
    uint64_t rows, columns;
    unsigned place;                                     /* PART_A ... ; PART_EPILOGUE + i */
    bool pinned, moves;                                 /* moves: the timing reads or writes it by DMA */
    bool transposable, written;
};

/* Whether a second operand is one, not all zero. */
bool part_given(const struct tl_operand *operand);

/* KERNEL_ERROR: no dtype, no such matrix, too small. */
void part_check(const struct call *call, const struct part *part);

/* The matrix in its memory, of two axes; without axes if nothing is there for its DMA, which then faults. What its
 * pages spread over a memory is copied to one place ahead of the command. */
struct view part_view(const struct call *call, const struct part *part);

/* What a written part's one place holds goes to its pages. */
void part_spread(const struct call *call, const struct part *part);

/* The second operand of an op on m x n elements, of which those that it has once are repeated; or as a whole, a row or
 * one element, where nothing says its shape. */
struct view part_second(const struct call *call, uint16_t op, const char *name, const struct tl_operand *operand,
                        uint64_t m, uint64_t n, unsigned place);

#endif
