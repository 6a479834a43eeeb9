/* end.h: the ends of transfers: what `SIM probe` measures from and to. */
#ifndef KB_PROBE_END_H
#define KB_PROBE_END_H

#include "base/address.h"
#include "machine/route.h"

enum end_kind {
#define END(name, word, what) END_##name,
#include "end.def"
    END_KINDS
};

/* "pe", as the ends of matrices are called; "a PE". */
extern const char *const end_words[END_KINDS], *const end_phrases[END_KINDS];

struct end {
    enum end_kind kind;
    uint32_t number;                                    /* over the machine: of the PE, its HBM slice or TCM; the cube;
                                                           the SIP */
    uint64_t offset;                                    /* of the bytes in a memory */
};

uint32_t end_count(enum end_kind kind);

/* The first byte of an end that may hold data of kernels: behind the scheduler's region in a TCM. */
struct end end_make(enum end_kind kind, uint32_t number);
/* The memory of a cube that stands for it: its sram; without one its first HBM slice, else the TCM of its first PE. */
struct end end_of_cube(uint32_t cube);

/* "sip0.cube3.hbm_ctrl.pe5", in the arena; without its offset. */
const char *end_name(struct end end);

/* Reads the name of an end, of a memory with or without an offset: "sip0.cube3.sram+0x1000". A wrong one is a usage
 * error, with the nearest right one. */
struct end end_read(const char *text);

bool end_is_memory(enum end_kind kind);

/* A CPU, or the host: what passes requests on. */
bool end_is_processor(enum end_kind kind);

/* The node where messages from and to an end begin and stop; of a PE, pe_cpu. */
struct place end_place(struct end end);

/* Its SIP; its cube, over the machine. An io_cpu and the host have no cube, the host has no SIP: UINT32_MAX. */
uint32_t end_sip(struct end end);
uint32_t end_cube(struct end end);

/* The physical address of bytes of a memory, `past` bytes behind its offset. */
uint64_t end_address(struct end memory, uint64_t past);

#endif
