/* host.h: the host side of a run: what the calls of a bench have in common, and how a run ends early. */
#ifndef KB_HOST_ROOM_H
#define KB_HOST_ROOM_H

#include "common/fail.h"
#include "kb/host.h"

/* Where the bench that acts is, for people: "its last call is kb_wait, at gemm.c:40". */
const char *host_last_call(void);

/* Misuse if a kernel makes the call, which is for benches. Notes it. */
void host_only(struct call_site call);

/* Misuse unless the PEs exist and, in a bench per SIP, are in the SIP of this rank. */
void host_check_pes(struct call_site call, struct kb_pes pes);

/* Ends the run if a launch has not ended well: the host asks for nothing more. */
void host_check_launches(struct call_site call);

/* Ends the run because of a failure on the machine: prints "FILE:LINE: NAME: WHY". */
_Noreturn void host_stop(struct call_site call, const char *why);

/* Called when no event is due any more: reports the ranks that wait in kb_barrier. */
void host_deadlocked(void);

/* The room's reset (session/reset.c). */
void host_reset(void);

#endif
