/* names.c: what records of the op log name by a number. */
#include "names.h"

#include <string.h>

#include "base/address.h"
#include "base/hash.h"
#include "machine/tiling.h"
#include "record.h"
#include "common/arena.h"

/* ---- texts and sites */

static uint64_t text_number(struct names *names, const char *text, struct packed *to)
{
    if (!text)
        return 0;
    for (uint64_t i = 0; i < names->texts; i++)         /* few, and only for sites that are new */
        if (names->text[i] == text)
            return 1 + i;
    names->text = arena_grow(names->text, names->texts, sizeof *names->text);
    names->text[names->texts++] = text;
    pack_u64(to, RECORD_text);
    pack_u64(to, names->texts - 1);
    pack_u64(to, strlen(text));
    pack_bytes(to, text, strlen(text));
    return names->texts;
}

static bool same_site(const struct site *a, const struct site *b)
{
    return a->name == b->name && a->kernel == b->kernel && a->file == b->file && a->line == b->line;
}

/* The slot of a site, or a free one for it. */
static uint32_t *site_slot(const struct names *names, const struct site *site)
{
    unsigned bits = (unsigned)__builtin_ctzll(names->slots);
    uint64_t key = (uintptr_t)site->name * 3 ^ (uintptr_t)site->kernel * 5 ^ (uintptr_t)site->file ^ site->line;
    for (uint64_t i = hash_bits(key, bits);; i++) {
        uint32_t *slot = &names->slot[i & (names->slots - 1)];
        if (!*slot || same_site(&names->site[*slot - 1], site))
            return slot;
    }
}

static void slots_grow(struct names *names)
{
    names->slots = names->slots ? 2 * names->slots : 64;
    names->slot = arena_alloc(names->slots, sizeof *names->slot);
    for (uint64_t i = 0; i < names->sites; i++)
        *site_slot(names, &names->site[i]) = (uint32_t)i + 1;
}

static void site_add(struct names *names, const struct site *site)
{
    if (2 * names->sites >= names->slots)
        slots_grow(names);
    names->site = arena_grow(names->site, names->sites, sizeof *names->site);
    names->site[names->sites++] = *site;
    *site_slot(names, site) = (uint32_t)names->sites;
}

uint64_t names_site(struct names *names, const struct site *site, struct packed *to)
{
    uint32_t *slot = names->slots ? site_slot(names, site) : NULL;
    if (slot && *slot)
        return *slot - 1;
    uint64_t name = text_number(names, site->name, to), kernel = text_number(names, site->kernel, to);
    uint64_t file = text_number(names, site->file, to);
    site_add(names, site);
    pack_u64(to, RECORD_site);
    pack_u64(to, names->sites - 1);
    pack_u64(to, name);
    pack_u64(to, kernel);
    pack_u64(to, file);
    pack_u64(to, site->line);
    return names->sites - 1;
}

void names_read_text(struct names *names, struct unpacking *from)
{
    uint64_t number = unpack_below(from, names->texts + 1), length = unpack_u64(from);
    const char *text = unpack_bytes(from, length);
    if (!text || number < names->texts)
        return;
    names->text = arena_grow(names->text, names->texts, sizeof *names->text);
    names->text[names->texts++] = arena_text(text, length);
}

static const char *read_text(const struct names *names, struct unpacking *from)
{
    uint64_t number = unpack_below(from, names->texts + 1);
    return number ? names->text[number - 1] : NULL;
}

void names_read_site(struct names *names, struct unpacking *from)
{
    uint64_t number = unpack_below(from, names->sites + 1);
    struct site site = {.name = read_text(names, from)};
    site.kernel = read_text(names, from);
    site.file = read_text(names, from);
    site.line = (uint32_t)unpack_u64(from);
    from->bad |= !site.name;
    if (!from->bad && number == names->sites)
        site_add(names, &site);
}

/* ---- tensors */

static void tensor_put(struct names *names, uint64_t number, struct tensor *tensor)
{
    while (names->tensors <= number) {
        names->tensor = arena_grow(names->tensor, names->tensors, sizeof *names->tensor);
        names->tensor[names->tensors++] = NULL;
    }
    names->tensor[number] = tensor;
}

static void pack_tensor(struct packed *to, const struct tensor *t)
{
    pack_u64(to, RECORD_tensor);
    pack_u64(to, t->number);
    pack_u64(to, strlen(t->name));
    pack_bytes(to, t->name, strlen(t->name));
    pack_u64(to, t->dtype);
    pack_u64(to, t->place.split);
    pack_u64(to, t->dims.rank);
    for (uint32_t axis = 0; axis < t->dims.rank; axis++)
        pack_u64(to, t->dims.size[axis]);
    pack_u64(to, t->shards);
    for (uint32_t i = 0; i < t->shards; i++) {
        const struct shard *s = &t->shard[i];
        pack_u64(to, s->memory);
        pack_u64(to, s->offset);
        for (uint32_t axis = 0; axis < t->dims.rank; axis++) {
            pack_u64(to, s->view.first[axis]);
            pack_u64(to, s->view.shape[axis]);
        }
    }
}

uint64_t names_tensor(struct names *names, struct tensor *tensor, struct packed *to)
{
    if (tensor->number >= names->tensors || names->tensor[tensor->number] != tensor) {
        tensor_put(names, tensor->number, tensor);
        pack_tensor(to, tensor);
    }
    return tensor->number;
}

static void read_shard(struct unpacking *from, const struct tensor *t, struct shard *shard)
{
    struct tl_shard *view = &shard->view;
    *view = (struct tl_shard){.dtype = (uint8_t)t->dtype, .rank = (uint8_t)t->dims.rank, .shape = {1, 1, 1, 1}};
    shard->memory = (uint32_t)unpack_below(from, memory_count());
    shard->offset = unpack_u64(from);
    shard->elements = 1;
    for (uint32_t axis = 0; axis < t->dims.rank; axis++) {
        view->first[axis] = unpack_u64(from);
        view->shape[axis] = unpack_u64(from);
        from->bad |= view->shape[axis] > t->dims.size[axis];
        from->bad |= view->first[axis] > t->dims.size[axis] - view->shape[axis];
        from->bad |= __builtin_mul_overflow(shard->elements, view->shape[axis], &shard->elements);
    }
    uint64_t size = from->bad ? 0 : memory_size(shard->memory), bytes;
    from->bad |= __builtin_mul_overflow(shard->elements, dtype_bytes[t->dtype], &bytes);
    from->bad |= shard->offset > size || bytes > size - shard->offset;
}

void names_read_tensor(struct names *names, struct unpacking *from)
{
    enum { MOST = 1 << 20 };                            /* tensors: more than anybody makes */
    struct tensor *t = arena_alloc(1, sizeof *t);
    t->number = (uint32_t)unpack_below(from, MOST);
    uint64_t length = unpack_count(from);
    const char *name = unpack_bytes(from, length);
    t->name = name ? arena_text(name, length) : "";
    t->dtype = (enum dtype)unpack_below(from, DTYPES);
    t->place.split = (enum kb_split)unpack_below(from, KB_COPIES + 1);
    t->dims.rank = (uint32_t)unpack_below(from, KB_RANK + 1);
    from->bad |= t->dims.rank < 1;
    t->elements = 1;
    for (uint32_t axis = 0; axis < t->dims.rank; axis++) {
        t->dims.size[axis] = unpack_u64(from);
        from->bad |= __builtin_mul_overflow(t->elements, t->dims.size[axis], &t->elements);
    }
    t->shards = (uint32_t)unpack_count(from);
    t->shard = arena_alloc(t->shards, sizeof *t->shard);
    for (uint32_t i = 0; i < t->shards && !from->bad; i++)
        read_shard(from, t, &t->shard[i]);
    if (!from->bad && (t->number >= names->tensors || !names->tensor[t->number]))
        tensor_put(names, t->number, t);
}
