/* hazards.h: the bytes of its TCM that a kernel must not use now: buffers of transfers that it has not waited for, and
 * freed buffers.
 *
 * Only calls that end in _async leave outstanding transfers; the others wait. The target of a load or receive counts as
 * unknown until the kernel waits for it, even if the transfer is complete: what a kernel may do must not depend on
 * timing. */
#ifndef KB_HAZARDS_H
#define KB_HAZARDS_H

#include "call.h"
#include "common/array.h"
#include "common/interval_map.h"

/* A transfer that the kernel has not waited for, and its buffer in the TCM. */
struct outstanding {
    uint64_t begin, end;                                /* of the buffer, from the first byte to behind the last */
    struct placed_runs *runs;                           /* of the buffer; NULL: it is one run */
    const char *file;                                   /* the call */
    uint32_t line;
    uint32_t number;                                    /* of the command */
    uint8_t kind;                                       /* enum command_kind */
    bool waited;                                        /* the kernel has waited for it */
};

/* Consecutive transfers of a list whose buffers touch, such as the blocks of a panel: bounds of all of them, so that a
 * check passes over all of them at once. They extend to the first transfer of the next area. */
struct area {
    uint64_t begin, end;                                /* of the TCM; may be wider than the buffers that are left */
    size_t first;                                       /* transfer */
};

/* Transfers sorted by the numbers of their commands. */
struct outstanding_list {
    struct ARRAY(struct outstanding) all;
    struct ARRAY(struct area) areas;
    size_t first;                                       /* the kernel has waited for those before */
    size_t first_area;                                  /* those before have none that it has not waited for */
};

/* The hazards of a kernel. */
struct hazards {
    struct outstanding_list receives, moves;            /* moves: loads, stores and sends */
    struct interval_map freed;                          /* bytes of its TCM that were freed and not allocated again */
};

void hazards_begin(struct tl *tl);
void hazards_end(struct tl *tl);

/* Frees what is left when all kernels have ended. */
void hazards_reset(void);

/* ---- what the kernel does */

/* Records a transfer that the call submits without waiting, and the runs of its buffer from an offset of the TCM on. */
void hazards_submitted(const struct call *call, uint32_t number, enum command_kind kind, const struct runs *buffer,
                       uint64_t offset);

/* Forgets a transfer that it waited for. The number may be that of another command. */
void hazards_waited(struct tl *tl, uint32_t number);

/* Records bytes of its TCM that the call frees. */
void hazards_freed(const struct call *call, uint64_t offset, uint64_t bytes);

/* Forgets bytes that were freed: they are allocated again. */
void hazards_allocated(struct tl *tl, uint64_t offset, uint64_t bytes);

/* ---- checks. The fault names the bytes, and the other call that uses them */

/* For bytes that a command uses: KERNEL_ERROR if they are freed, or the target of an outstanding receive. */
void hazards_check_use(const struct call *call, const struct view *view);

/* For bytes that the kernel itself reads: KERNEL_ERROR if they are freed; PENDING_RESULT if they are the target of an
 * outstanding load or receive. */
void hazards_check_read(const struct call *call, const struct view *view);

/* For bytes that it frees: KERNEL_ERROR if they are freed already, or in use by a transfer. */
void hazards_check_free(const struct call *call, const struct view *view);

/* KERNEL_ERROR if they are freed. */
void hazards_check_freed(const struct call *call, const struct view *view);

#endif
