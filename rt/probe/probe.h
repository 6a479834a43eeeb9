/* probe.h: a transfer between two ends, in an idle machine.
 *
 * What moves bytes between two ends, and so what is simulated and measured:
 *
 *     PE -> memory, PE -> PE     store: a command of the PE; the bytes of a PE are in its TCM
 *     memory -> PE               load, likewise
 *     host -> memory or PE       write: a request of the host; without bytes, to a PE: a launch
 *     memory or PE -> host       read; without bytes, from a PE: the answer to a launch
 *     an io_cpu or m_cpu in place of the host, and two of them: the part of such a request between the two
 *
 * A load or store lasts from the kernel's call until the kernel has it complete, a request from its submission to the
 * answer; the part below an io_cpu or m_cpu, from when that sends it on until it has the answer. Between two CPUs, or a
 * CPU and a PE without bytes, the message that one sends to the other is all. */
#ifndef KB_PROBE_H
#define KB_PROBE_H

#include <stdbool.h>

#include "account.h"
#include "common/json.h"
#include "end.h"

enum transfer_kind {
#define TRANSFER(name, what) TRANSFER_##name,
#include "transfer.def"
    TRANSFER_KINDS
};

/* "load"; what moves the bytes. */
extern const char *const transfer_words[TRANSFER_KINDS], *const transfer_phrases[TRANSFER_KINDS];

enum { PROBE_BYTES = 4096 };                            /* unless `bytes` is given */

struct probe {
    struct end from, to;
    bool sized;                                         /* bytes is given */
    uint64_t bytes;                                     /* 0: a message without payload */
    uint64_t load;                                      /* that many transfers at once, at least 1, of consecutive bytes */
    bool is_virtual;                                    /* pe_mmu translates the address on the memory side */

    /* Set by probe_plan. */
    enum transfer_kind kind;
    bool is_part;                                       /* of a request of the host: from or to an io_cpu or m_cpu */
    struct end memory;                                  /* on the other side of a command, or of the request */
    uint32_t pe;                                        /* that acts, or that a launch targets */

    /* Set by probe_run. */
    uint64_t ps;                                        /* from the begin of the first to the end of the last */
    uint64_t least_ps, most_ps, sum_ps;                 /* of single ones, if there are several */
    uint32_t first_step, steps;                         /* of one transfer, in account.steps */
};

/* Works out what a transfer is. Returns NULL, or why there is none, in the arena: "an sram moves no bytes by itself". */
const char *probe_plan(struct probe *probe);

/* Simulates it on a machine that was reset. `follow`: makes an account, which a part of a request always needs. */
void probe_run(struct probe *probe, bool follow);

/* Bytes per second of all of them; 0: it has no bytes, or takes no time. */
double probe_bps(const struct probe *probe);

/* Writes "from", "to", "transfer" and all else into an open object (docs/results.md). */
void probe_write(struct json *json, const struct probe *probe);

#endif
