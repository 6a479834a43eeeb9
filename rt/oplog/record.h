/* record.h: the records of the op log and their encoding.
 *
 *     a kind, then its fields: varints (varint.h)
 *     text, site, tensor    intern a name: later records refer to it by its number
 *     op                    an operation; its id is its position among them. The bytes given to a fill follow as `bytes`
 *     services              when the command of an operation was served; written once that is known, so it has the id
 *     tile                  a stage of a composite's tile, likewise
 *     reservation           a reservation of a node, a link or a memory's channel
 *     content               the hash of a tensor's bytes when the run ended
 *     end                   the number of operations and whether the run was good; the last record */
#ifndef KB_RECORD_H
#define KB_RECORD_H

#include "oplog.h"
#include "store/tensor.h"
#include "varint.h"

enum record_kind {
    RECORD_text = 1, RECORD_site, RECORD_tensor, RECORD_op, RECORD_bytes, RECORD_services, RECORD_tile, RECORD_reservation,
    RECORD_content, RECORD_end, RECORDS
};

/* ---- interned names */

/* Where operations come from: a name, and the line of the kernel or bench that called. */
struct site {
    const char *name, *kernel, *file;                   /* kernel and file: or NULL */
    uint32_t line;
};

/* What has a number so far. The writer tells texts apart by their addresses. */
struct interned {
    const char **text;
    uint64_t texts;
    struct site *site;
    uint64_t sites;
    struct tensor **tensor;                             /* by number; NULL: not described yet */
    uint64_t tensors;
    uint32_t *slot;                                     /* hash table of sites: number + 1; 0: free */
    uint64_t slots;
};

/* ---- fields */

struct services {
    uint64_t id, start_ps, end_ps;                      /* of the operation; first service's start, last one's end */
    uint32_t node, services;                            /* rank of the component of the first; how many there were */
};

struct content {
    const struct tensor *tensor;
    uint64_t hash;
};

struct ending {
    uint64_t ops;
    bool good;
};

struct record {
    enum record_kind kind;
    union {
        struct op *op;                                  /* the receiver frees it */
        struct services services;
        struct tile_stage tile;
        struct reservation reservation;
        struct content content;
        struct ending ending;
        struct {
            const uint8_t *at;                          /* in the decoded buffer */
            uint64_t count;
        } bytes;
    };
};

/* Times are encoded as differences to the one before. */
struct record_state {
    uint64_t id, t_ps;                                  /* id: of the next operation */
};

/* Encodes a record, and before it the names that it is the first to refer to. The bytes given to a fill are not part of
 * its record. */
void record_op(struct encoder *to, struct interned *interned, struct record_state *state, const struct op *op);
void record_services(struct encoder *to, struct record_state *state, const struct services *services);
void record_tile(struct encoder *to, struct record_state *state, const struct tile_stage *tile);
void record_reservation(struct encoder *to, struct record_state *state, const struct reservation *reservation);
void record_content(struct encoder *to, struct interned *interned, const struct content *content);
void record_bytes(struct encoder *to, const void *bytes, size_t count);
void record_end(struct encoder *to, const struct ending *ending);

/* Decodes the next record, interning the names before it. Returns false at the end of the bytes and if they are bad. An
 * operation that is a fill with given bytes has space for them at `fill.given`. */
bool record_read(struct decoder *from, struct interned *interned, struct record_state *state, struct record *record);

#endif
