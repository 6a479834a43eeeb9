/* key.c: what a simulator was made of, as a number that it carries.
 *
 * The linker writes the key into the build ID, a note that every ELF program has room for, so no file beside the
 * program has to be kept in step with it. */
#include "key.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../rt/text/base.h"

enum { KEY_BYTES = 16 };

/* Bytes of a file, of which no number is trusted. */
struct image {
    const char *bytes;
    size_t length;
};

/* Copies what stands at an offset, aligned or not; false: it is not there. */
static bool copy(struct image from, uint64_t offset, void *to, size_t length)
{
    if (offset > from.length || length > from.length - offset)
        return false;
    memcpy(to, from.bytes + offset, length);
    return true;
}

/* The part of a file from an offset on; its length may be 0. */
static struct image part(struct image from, uint64_t offset, uint64_t length)
{
    if (offset > from.length)
        return (struct image){0};
    return (struct image){from.bytes + offset, length < from.length - offset ? length : from.length - offset};
}

static uint64_t aligned(uint64_t length)
{
    return (length + 3) & ~UINT64_C(3);
}

/* Whether notes hold a build ID, and it is this one. */
static bool notes_hold(struct image notes, const unsigned char *id, size_t id_length)
{
    Elf64_Nhdr note;
    for (uint64_t at = 0; copy(notes, at, &note, sizeof note); at += aligned(note.n_namesz) + aligned(note.n_descsz)) {
        at += sizeof note;
        struct image found = part(notes, at + aligned(note.n_namesz), note.n_descsz);
        if (note.n_type == NT_GNU_BUILD_ID && found.length == id_length && !memcmp(found.bytes, id, id_length))
            return true;
    }
    return false;
}

/* Whether a file is a whole program: its table of sections, the last thing in it, is there. */
static bool is_whole(struct image image, Elf64_Ehdr *head)
{
    return copy(image, 0, head, sizeof *head) && !memcmp(head->e_ident, ELFMAG, SELFMAG)
        && head->e_ident[EI_CLASS] == ELFCLASS64 && head->e_shoff <= image.length
        && (uint64_t)head->e_shnum * sizeof(Elf64_Shdr) <= image.length - head->e_shoff;
}

bool key_is(const char *path, const char *key)
{
    unsigned char id[KEY_BYTES];
    struct image image;
    Elf64_Ehdr head;
    Elf64_Phdr segment;
    image.bytes = access(path, X_OK) == 0 ? read_file(path, &image.length) : NULL;
    if (!image.bytes || !is_whole(image, &head))
        return false;
    for (size_t i = 0; i < KEY_BYTES; i++)
        sscanf(key + 2 * i, "%2hhx", &id[i]);
    for (unsigned i = 0; i < head.e_phnum; i++) {
        if (!copy(image, head.e_phoff + i * sizeof segment, &segment, sizeof segment))
            return false;
        if (segment.p_type == PT_NOTE && notes_hold(part(image, segment.p_offset, segment.p_filesz), id, KEY_BYTES))
            return true;
    }
    return false;
}
