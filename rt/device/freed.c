/* freed.c: the parts of its TCM that a kernel gave back and did not get again. */
#include "freed.h"

#include <stdlib.h>

#include "device.h"
#include "machine/pe.h"
#include "machine/runs.h"
#include "common/diag.h"

struct freed {
    struct freed *next;
    uint64_t offset, end;
    const char *file;
    uint32_t line;
};

static struct freed **list_of(const struct tl *tl)
{
    return &((struct device_state *)tl->data)->freed;
}

static void add(struct freed **link, struct freed made)
{
    struct freed *freed = malloc(sizeof *freed);
    if (!freed)
        die("no memory for the record of a freed buffer:");
    *freed = made;
    freed->next = *link;
    *link = freed;
}

void freed_add(const struct call *call, uint64_t offset, uint64_t bytes)
{
    add(list_of(call->tl), (struct freed){.offset = offset, .end = offset + bytes, .file = call->file,
                                          .line = call->line});
}

/* What lies below and above of an older part stays known. */
void freed_taken(const struct tl *tl, uint64_t offset, uint64_t bytes)
{
    uint64_t end = offset + bytes;
    for (struct freed **link = list_of(tl); *link;) {
        struct freed *freed = *link, above = *freed;
        if (freed->offset >= end || freed->end <= offset) {
            link = &freed->next;
            continue;
        }
        *link = freed->next;
        if (above.offset < offset) {
            struct freed below = above;
            below.end = offset;
            add(link, below);
            link = &(*link)->next;
        }
        if (above.end > end) {
            above.offset = end;
            add(link, above);
            link = &(*link)->next;
        }
        free(freed);
    }
}

void freed_check(const struct call *call, const struct view *used)
{
    uint32_t tcm = memory_tcm(pe_number(call->tl->pe));
    if (used->memory != tcm)
        return;
    for (const struct freed *freed = *list_of(call->tl); freed; freed = freed->next) {
        struct view gone = view_bytes(tcm, freed->offset, freed->end - freed->offset);
        uint64_t first, end;
        if (views_meet(used, &gone, &first, &end))
            call_error(call, "the bytes at %s were given back by tl_free at %s:%u",
                       address_name(memory_address(tcm, first)), freed->file, (unsigned)freed->line);
    }
}

void freed_end(const struct tl *tl)
{
    for (struct freed **list = list_of(tl), *freed; (freed = *list);) {
        *list = freed->next;
        free(freed);
    }
}
