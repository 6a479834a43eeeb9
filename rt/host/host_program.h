/* host_program.h: the bodies of a bench as programs of the host. */
#ifndef KB_HOST_PROGRAM_H
#define KB_HOST_PROGRAM_H

#include "kb/host.h"

/* Ends the run, because of what went wrong on the machine: "FILE:LINE: CALL: WHY". */
_Noreturn void program_ends(const char *call, const char *why, const char *file, uint32_t line);

/* A call of the host's that a kernel makes is misuse. */
void host_only(const char *call, const char *file, uint32_t line);

/* What a call acts on are PEs of the machine, and of the own SIP of a bench per SIP; else it is misuse. */
void program_check_pes(const char *call, struct kb_pes pes, const char *file, uint32_t line);

/* Waits for whatever was launched and not waited for. */
void program_wait_for_launches(void);

/* Nothing is due any more: reports programs that wait in kb_barrier for ever. */
void programs_deadlocked(void);

/* The room's reset (cli/reset.c): no program waits in kb_barrier, nothing is known of launches, no figures. */
void host_reset(void);
void host_launch_reset(void);

#endif
