/* rules.c: how long calls take, where a rule of the machine decides that no command stream can show. */
#include <inttypes.h>
#include <stdio.h>

#include <kb/host.h>
#include <kb/math.h>
#include <kb/tl.h>

#define VA (UINT64_C(1) << 32)
enum { PAGE = 4096, PIECES = 4, PIECE_BYTES = 64 };

struct load_args { kb_tensor x; const char *name; uint64_t stride, va; };

/* Loads PIECES pieces that begin `stride` bytes apart; at virtual address va, unless that is 0. */
KB_KERNEL(load, struct load_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x);
    struct tl_shard pieces = tl_view(tl, (struct tl_shard){.addr = x.addr, .dtype = KB_u8, .rank = 2,
                                      .shape = {PIECES, PIECE_BYTES}, .stride = {arg->stride, 1}});
    uint64_t begin_ps = tl_now(tl);
    printf("%s began %" PRIu64 "\n", arg->name, begin_ps);
    tl_free(tl, tl_load(tl, arg->va ? tl_virtual(pieces, arg->va) : pieces));
    printf("%s took %" PRIu64 "\n", arg->name, tl_now(tl) - begin_ps);
}

static void load_in(struct kb_pes pe, kb_tensor x, const char *name, uint64_t stride, uint64_t va)
{
    kb_wait(kb_launch(load, pe, &(struct load_args){x, name, stride, va}));
}

KB_BENCH(translations, "loads of strided views, in pages that are new, known, mapped again or unmapped",
         KB_BOOL(never_mapped, false, "end with a load of pages that were never mapped, not with unmapped ones"))
{
    struct kb_pes pe = kb_pes("sip0.cube0.pe0");
    kb_tensor x = kb_tensor_new("x", KB_u8, kb_1d(PIECES * PAGE), kb_on(KB_HBM, pe));
    load_in(pe, x, "physical", PAGE / PIECES, 0);
    load_in(pe, x, "physical_apart", PAGE, 0);
    kb_map(pe, VA, x);
    load_in(pe, x, "new", PAGE / PIECES, VA);
    load_in(pe, x, "known", PAGE / PIECES, VA);
    kb_map(pe, VA, x);
    load_in(pe, x, "mapped_again", PAGE / PIECES, VA);
    load_in(pe, x, "apart", PAGE, VA);
    load_in(pe, x, "last", PAGE / PIECES, VA + (PIECES - 1) * PAGE);
    if (!kb_bool(never_mapped))
        kb_unmap(pe, VA, PIECES * PAGE);
    load_in(pe, x, "unmapped", PAGE / PIECES, kb_bool(never_mapped) ? 2 * VA : VA + (PIECES - 1) * PAGE);
}

struct casts_args { uint64_t elements; };

static void cast(struct tl *tl, const char *name, enum kb_dtype from, enum kb_dtype to, uint64_t elements)
{
    struct tl_shard x = tl_alloc(tl, from, elements), y = tl_alloc(tl, to, elements);
    uint64_t begin_ps = tl_now(tl);
    tl_cast(tl, y, x);
    printf("%s took %" PRIu64 "\n", name, tl_now(tl) - begin_ps);
}

KB_KERNEL(casts, struct casts_args)
{
    cast(tl, "f16_to_bf16", KB_f16, KB_bf16, arg->elements);
    cast(tl, "bf16_to_f16", KB_bf16, KB_f16, arg->elements);
    cast(tl, "f16_to_f32", KB_f16, KB_f32, arg->elements);
    cast(tl, "f32_to_f16", KB_f32, KB_f16, arg->elements);
}

KB_BENCH(lanes, "casts between dtypes with lanes of their own", KB_INT(elements, 4096, 1, 1 << 16, ""))
{
    kb_wait(kb_launch(casts, kb_pes("sip0.cube0.pe0"), &(struct casts_args){kb_int(elements)}));
}
