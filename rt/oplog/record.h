/* record.h: the records of the op log, as they are packed.
 *
 *     a kind (one byte), then its fields: numbers of 7 bits a byte
 *     text, site, tensor    describe what later records name by number (names.h)
 *     op                    an operation; its id is its position among them. What a fill was given follows as `bytes`
 *     services              when the command of an operation was served: known later, so it names its id
 *     tile                  a stage of a composite's tile, likewise
 *     content               the hash of a tensor's bytes when the run ended
 *     end                   how many operations there were, and whether the run was good: the last one */
#ifndef KB_RECORD_H
#define KB_RECORD_H

#include "names.h"
#include "oplog.h"

enum record_kind {
    RECORD_text = 1, RECORD_site, RECORD_tensor, RECORD_op, RECORD_bytes, RECORD_services, RECORD_tile, RECORD_content,
    RECORD_end, RECORDS
};

struct services {
    uint64_t id, start_ps, end_ps;                      /* of the operation; first service's start, last one's end */
    uint32_t node, services;                            /* rank of the component of the first */
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
        struct op *op;                                  /* to be freed */
        struct services services;
        struct tile_stage tile;
        struct content content;
        struct ending ending;
        struct unpacking bytes;                         /* as they stand */
    };
};

/* Where times are counted from: the one before, to be short. */
struct record_state {
    uint64_t id, t_ps;                                  /* id: of the next operation */
};

/* Packs a record, and before it what describes what it names. The bytes that a fill was given do not go along. */
void record_op(struct packed *to, struct names *names, struct record_state *state, const struct op *op);
void record_services(struct packed *to, struct record_state *state, const struct services *services);
void record_tile(struct packed *to, struct record_state *state, const struct tile_stage *tile);
void record_content(struct packed *to, struct names *names, const struct content *content);
void record_bytes(struct packed *to, const void *bytes, size_t count);
void record_end(struct packed *to, const struct ending *ending);

/* Unpacks the next record; descriptions go into `names`. False: there is none, or `from` is bad. An operation has room
 * for the bytes that it was given, where `fill.given` is. */
bool record_read(struct unpacking *from, struct names *names, struct record_state *state, struct record *record);

#endif
