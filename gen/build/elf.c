/* elf.c: a simulator as an ELF file: its build ID and its numbers.
 *
 * The linker writes the key into the build ID, a note that every ELF program has, so no second file has to be kept in
 * step with the program. The numbers are found by their symbols. */
#include "elf.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../rt/common/arena.h"

enum { KEY_BYTES = 16 };

/* Copies bytes from an offset, aligned or not. Returns false if the file is shorter. */
static bool copy(struct elf from, uint64_t offset, void *to, size_t length)
{
    if (offset > from.length || length > from.length - offset)
        return false;
    memcpy(to, from.bytes + offset, length);
    return true;
}

/* The part of a file from an offset on, cut at the file's end; its length may be 0. */
static struct elf part(struct elf from, uint64_t offset, uint64_t length)
{
    if (offset > from.length)
        return (struct elf){0};
    return (struct elf){from.bytes + offset, length < from.length - offset ? length : from.length - offset};
}

static uint64_t aligned(uint64_t length)
{
    return (length + 3) & ~UINT64_C(3);
}

/* The build ID with a given length among the notes, or NULL. */
static char *find_id(struct elf notes, size_t length)
{
    Elf64_Nhdr note;
    for (uint64_t at = 0; copy(notes, at, &note, sizeof note); at += aligned(note.n_namesz) + aligned(note.n_descsz)) {
        at += sizeof note;
        struct elf found = part(notes, at + aligned(note.n_namesz), note.n_descsz);
        if (note.n_type == NT_GNU_BUILD_ID && found.length == length && note.n_descsz == length)
            return found.bytes;
    }
    return NULL;
}

/* Returns whether a file is a complete ELF program: its section table, the last part of the file, is present. */
static bool is_whole(struct elf program, Elf64_Ehdr *head)
{
    return copy(program, 0, head, sizeof *head) && !memcmp(head->e_ident, ELFMAG, SELFMAG)
        && head->e_ident[EI_CLASS] == ELFCLASS64 && head->e_shoff <= program.length
        && (uint64_t)head->e_shnum * sizeof(Elf64_Shdr) <= program.length - head->e_shoff;
}

/* The address of the key, or NULL. */
static char *find_key(struct elf program)
{
    Elf64_Ehdr head;
    Elf64_Phdr segment;
    if (!is_whole(program, &head))
        return NULL;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        if (!copy(program, head.e_phoff + i * sizeof segment, &segment, sizeof segment))
            return NULL;
        char *id = segment.p_type == PT_NOTE ? find_id(part(program, segment.p_offset, segment.p_filesz), KEY_BYTES)
                                             : NULL;
        if (id)
            return id;
    }
    return NULL;
}

static void read_key(const char *key, unsigned char *id)
{
    for (size_t i = 0; i < KEY_BYTES; i++)
        sscanf(key + 2 * i, "%2hhx", &id[i]);
}

bool elf_has_key(const char *path, const char *key)
{
    unsigned char id[KEY_BYTES];
    struct elf program;
    program.bytes = access(path, X_OK) == 0 ? read_regular_file(path, &program.length) : NULL;
    const char *found = program.bytes ? find_key(program) : NULL;
    read_key(key, id);
    return found && !memcmp(found, id, KEY_BYTES);
}

static bool section_at(struct elf program, uint64_t i, Elf64_Shdr *section)
{
    Elf64_Ehdr head;
    return copy(program, 0, &head, sizeof head) && i < head.e_shnum
        && copy(program, head.e_shoff + i * sizeof *section, section, sizeof *section);
}

/* The address of a global symbol's data, if the symbol has the number's name and at least its size; else NULL. */
static char *bytes_of(struct elf program, const Elf64_Sym *symbol, struct elf name, const struct number *number)
{
    Elf64_Shdr section;
    size_t length = strlen(number->symbol) + 1;
    if (name.length < length || memcmp(name.bytes, number->symbol, length) || symbol->st_size < number->length
        || ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL || !section_at(program, symbol->st_shndx, &section)
        || section.sh_type != SHT_PROGBITS || symbol->st_value < section.sh_addr)
        return NULL;
    struct elf held = part(program, section.sh_offset, section.sh_size);
    held = part(held, symbol->st_value - section.sh_addr, number->length);
    return held.length == number->length ? held.bytes : NULL;
}

static char *find_number(struct elf program, const struct number *number)
{
    Elf64_Shdr table, texts;
    Elf64_Sym symbol;
    for (uint64_t i = 0; section_at(program, i, &table); i++) {
        if (table.sh_type != SHT_SYMTAB || !section_at(program, table.sh_link, &texts))
            continue;
        struct elf names = part(program, texts.sh_offset, texts.sh_size);
        struct elf symbols = part(program, table.sh_offset, table.sh_size);
        for (uint64_t at = 0; copy(symbols, at, &symbol, sizeof symbol); at += sizeof symbol) {
            char *found = bytes_of(program, &symbol, part(names, symbol.st_name, names.length), number);
            if (found)
                return found;
        }
    }
    return NULL;
}

bool elf_patch(struct elf program, const char *key, const struct numbers *numbers)
{
    unsigned char id[KEY_BYTES];
    char *at = find_key(program);
    if (!at)
        return false;
    read_key(key, id);
    memcpy(at, id, KEY_BYTES);
    for (size_t i = 0; i < NUMBERS; i++) {
        const struct number *number = &numbers->list[i];
        if (!number->length)
            continue;
        at = find_number(program, number);
        if (!at)
            return false;
        memcpy(at, number->bytes, number->length);
    }
    return true;
}
