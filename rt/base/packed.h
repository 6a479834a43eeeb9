/* packed.h: files that every simulator carries, compressed by gzip. */
#ifndef KB_PACKED_H
#define KB_PACKED_H

/* Defines the symbols NAME and NAME_end, between which is the file of this path. */
#define PACKED_FILE(name, path)                                                                                        \
    __asm__(".pushsection .rodata\n" #name ": .incbin \"" path "\"\n" #name "_end:\n.popsection\n");                   \
    extern const unsigned char name[], name##_end[] __attribute__((visibility("hidden")))

/* Returns the file as a string, which the caller frees. `what` names it in an error. */
char *unpack(const unsigned char *begin, const unsigned char *end, const char *what);

#endif
