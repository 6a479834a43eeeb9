/* image.h: the seam between the two halves of a library (kb/sim.h): the front, which is the same for all machines and
 * has the handles, and the image, a simulator as a shared object, which every instance loads for itself. So all
 * variables of the runtime are those of one instance.
 *
 * The front has checked the handle, that no other call is under way, that pointers which must not be NULL are not, and
 * struct_size: every struct that an image gets has all fields of its header, those that the caller lacks being 0. The
 * image checks the rest. */
#ifndef KB_EMBED_IMAGE_H
#define KB_EMBED_IMAGE_H

#include <setjmp.h>
#include <stdbool.h>

#include "kb/sim.h"

enum { IMAGE_TEXT_BYTES = 1024 };

/* What the front has of an instance and the image works with. */
struct image_host {
    char *memory;                                       /* reserved addresses, which may not be touched yet; all that the */
    uint64_t memory_bytes;                              /* image allocates is there (embed/memory.c) */
    jmp_buf out;                                        /* of the call that is under way: failures go there, */
    enum kb_status failed;                              /* with this status */
    uint64_t id[2];                                     /* of no other image, in no other process but forks of this one */
    bool ended;                                         /* in the middle of the machine's work: KB_ENDED from now on */
    bool exhausted;                                     /* an allocation of the call has failed: false when it begins */
    char text[IMAGE_TEXT_BYTES];                        /* what was wrong with the call: "" when it begins */
};

/* The calls of kb/sim.h, without their handle. A call that fails either returns its status, text set, or leaves by
 * host->out (embed/failure.h). */
struct kb_image {
    uint32_t abi, table_bytes;                          /* KB_ABI_VERSION; sizeof(struct kb_image) */
    enum kb_status (*begin)(struct image_host *host, const struct kb_sim_config *config);
    void (*end)(void);                                  /* before its memory is freed */
    void (*rest)(void);                                 /* after each call, however it has ended: joins its threads */
    enum kb_status (*reset)(void);
    enum kb_status (*save)(char *buffer, uint64_t size, uint64_t *needed);
    enum kb_status (*restore)(const char *buffer, uint64_t size);
    enum kb_status (*run)(uint64_t until_ps, uint32_t stop_mask, struct kb_sim_stop *why);
    enum kb_status (*now_ps)(uint64_t *now_ps);
    enum kb_status (*next_ps)(uint64_t *next_ps);
    enum kb_status (*poll)(uint64_t request, struct kb_sim_result *result);
    enum kb_status (*poll_pe)(uint64_t request, uint64_t i, struct kb_sim_pe_result *result);
    enum kb_status (*launch)(const struct kb_sim_launch *launch, uint64_t *request);
    enum kb_status (*replay)(const char *text, uint64_t length, uint64_t *request);
    enum kb_status (*program)(const struct kb_sim_launch *launch, uint64_t *request);
    enum kb_status (*command)(uint64_t request, uint32_t pe, const char *text, uint64_t length);
    enum kb_status (*program_end)(uint64_t request);
    enum kb_status (*map)(const uint32_t *pes, const uint64_t *addresses, uint64_t count, uint64_t va, uint64_t pages,
                          uint64_t *request);           /* addresses NULL: unmap */
    enum kb_status (*transfer)(bool writes, const uint64_t *addresses, uint64_t count, uint64_t bytes, void *data,
                               uint64_t *request);      /* of a write, data is only read */
    enum kb_status (*poke)(uint64_t address, const void *data, uint64_t bytes);
    enum kb_status (*peek)(uint64_t address, void *data, uint64_t bytes);
    enum kb_status (*tensor)(const struct kb_sim_tensor *tensor, struct tensor **made);
    enum kb_status (*tensor_set)(struct tensor *tensor, const void *data, uint64_t bytes);
    enum kb_status (*tensor_get)(struct tensor *tensor, void *data, uint64_t bytes);
    enum kb_status (*tensor_shard)(struct tensor *tensor, uint64_t i, uint64_t *address, uint64_t *bytes);
    enum kb_status (*run_bench)(const char *bench, const char *const *params, uint64_t count);
    enum kb_status (*result_json)(char *buffer, uint64_t size, uint64_t *needed);
    enum kb_status (*describe)(char *buffer, uint64_t size, uint64_t *needed);
    enum kb_status (*stat)(const char *name, uint64_t *value);
    enum kb_status (*stats)(int (*visitor)(void *user, const char *name, uint64_t value), void *user);
    enum kb_status (*trace)(void (*visitor)(void *user, const struct kb_sim_event *event), void *user);
};

/* The only symbol that an image exports (embed/instance.c). */
extern const struct kb_image kb_image;

/* What a library exports as kb_machine_NAME. */
struct kb_machine {
    uint32_t abi, reserved;
    const char *name, *hash;
    const char *image;                                  /* a file of its format, ELF, in memory */
    uint64_t image_bytes;
};

#endif
