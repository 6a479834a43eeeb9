/* requests.h: a run whose host is another program: the calls of kb/sim.h that let time pass, ask for something, or look.
 * Their rules are in kb/sim.h, their arguments in image.h. */
#ifndef KB_EMBED_REQUESTS_H
#define KB_EMBED_REQUESTS_H

#include "common/json.h"
#include "image.h"

/* Takes the callbacks of a new instance. Its run begins at time 0 with the first call that needs one. */
void requests_begin(const struct kb_sim_config *config);

/* Begins the run if the instance is new. Refuses if a bench has run. */
enum kb_status requests_opens(void);

/* Forgets the run; the machine is reset after it. */
void requests_reset(void);

/* Writes the result so far, as SIM replay does, into an open object. */
void requests_write(struct json *json);

enum kb_status requests_run(uint64_t until_ps, uint32_t stop_mask, struct kb_sim_stop *why);
enum kb_status requests_now_ps(uint64_t *now_ps);
enum kb_status requests_next_ps(uint64_t *next_ps);
enum kb_status requests_poll(uint64_t request, struct kb_sim_result *result);
enum kb_status requests_poll_pe(uint64_t request, uint64_t i, struct kb_sim_pe_result *result);
enum kb_status requests_launch(const struct kb_sim_launch *launch, uint64_t *request);
enum kb_status requests_replay(const char *text, uint64_t length, uint64_t *request);
enum kb_status requests_program(const struct kb_sim_launch *launch, uint64_t *request);
enum kb_status requests_command(uint64_t request, uint32_t pe, const char *text, uint64_t length);
enum kb_status requests_program_end(uint64_t request);
enum kb_status requests_map(const uint32_t *pes, const uint64_t *addresses, uint64_t count, uint64_t va, uint64_t pages,
                           uint64_t *request);

/* A write or read over the fabric, without its bytes (data.h); and whether it can be submitted. */
enum kb_status requests_transfer(bool writes, const uint64_t *addresses, uint64_t count, uint64_t bytes, uint64_t *request);
enum kb_status requests_check_transfer(const uint64_t *addresses, uint64_t count, uint64_t bytes);

/* Refuses an empty list of PEs, and one that names a PE which the machine has not. */
enum kb_status requests_check_pes(const uint32_t *pes, uint64_t count);

enum kb_status requests_stat(const char *name, uint64_t *value);
enum kb_status requests_stats(int (*visitor)(void *user, const char *name, uint64_t value), void *user);
enum kb_status requests_trace(void (*visitor)(void *user, const struct kb_sim_event *event), void *user);

/* What the last call of requests_trace was. */
struct trace_call {
    void (*visitor)(void *user, const struct kb_sim_event *event);
    void *user;
};
struct trace_call requests_trace_call(void);

#endif
