/* numbers.c: replaces the numbers of the machine in this process.
 *
 * The tables of numbers are constants, so that every function may keep what it has read. They are replaced while no run is
 * under way, in pages that are made writable for it. The topology is read when a number is replaced, or a key is looked up,
 * for the first time. */
#include "numbers.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/tables.h"
#include "common/arena.h"
#include "common/fail.h"
#include "machine/engine.h"

static struct {
    struct renumbering *renumbering;                    /* of this simulator; NULL: the topology was not read yet */
    bool other;                                         /* the numbers in place are those of a point */
    const struct node *keys;                            /* of the --set options; NULL: there are none */
    struct numbers given;                               /* of the command line */
} numbers;

static const void *const places[REPLACED] = {
    [NUMBER_attrs] = &kb_attrs, [NUMBER_k_per_cycle] = kb_gemm_k_per_cycle, [NUMBER_lanes] = kb_math_lanes,
    [NUMBER_op_costs] = kb_op_costs, [NUMBER_name] = kb_machine_name, [NUMBER_hash] = kb_topology_hash,
};

extern const char etext[];                              /* of the linker: the end of the code */

static const void *place_of(enum number_of number)
{
    return number == NUMBER_chips ? kb_shape.chips->speeds : places[number];
}

/* Code that ends in a page of these numbers stays executable. */
static void make_writable(const struct number *number, const void *place)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)place & -page;
    uintptr_t end = ((uintptr_t)place + number->length + page - 1) & -page;
    int code = begin < (uintptr_t)etext ? PROT_EXEC : 0;
    if (mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE | code))
        die("cannot make the machine's numbers writable:");
}

static void write_all(const struct numbers *from)
{
    for (enum number_of i = 0; i < REPLACED; i++) {
        if (!from->list[i].length)
            continue;
        void *place = (void *)place_of(i);
        __asm__("" : "+r"(place));                      /* the compiler need not know that this is a constant */
        memcpy(place, from->list[i].bytes, from->list[i].length);
    }
}

/* Reads the topology, and computes the numbers of the command line. */
static void begin(void)
{
    if (numbers.renumbering)
        return;
    arena_keep_begin();
    numbers.renumbering = renumber_begin(kb_topology);
    if (!renumber(numbers.renumbering, numbers.keys, &numbers.given))
        errors_end();
    for (enum number_of i = 0; i < REPLACED; i++)
        if (numbers.given.list[i].length)
            make_writable(&numbers.given.list[i], place_of(i));
    arena_keep_end();
}

bool numbers_option(int letter, const char *argument)
{
    if (letter != 'K')
        return false;
    arena_keep_begin();
    numbers.keys = renumber_both(numbers.keys, renumber_option(argument));
    arena_keep_end();
    return true;
}

void numbers_options_end(void)
{
    errors_end();
    if (!numbers.keys)
        return;
    begin();
    write_all(&numbers.given);
}

/* Room for numbers such as those of the command line: all of a structure have the same sizes. */
static struct numbers *new_numbers(void)
{
    struct numbers *new = arena_alloc(1, sizeof *new);
    for (enum number_of i = 0; i < REPLACED; i++) {
        new->list[i] = numbers.given.list[i];
        new->list[i].bytes = arena_alloc(new->list[i].length, 1);
    }
    return new;
}

const struct numbers *numbers_of_keys(const struct node *keys)
{
    begin();
    struct numbers *kept = new_numbers(), computed;
    struct arena_mark mark = arena_mark();
    if (!renumber(numbers.renumbering, renumber_both(numbers.keys, keys), &computed))
        return NULL;
    for (enum number_of i = 0; i < REPLACED; i++)
        memcpy(kept->list[i].bytes, computed.list[i].bytes, kept->list[i].length);
    arena_release(mark);
    return kept;
}

struct better_keys numbers_better(struct better_by by)
{
    begin();
    return renumber_better(numbers.renumbering, numbers.keys, by);
}

const char *numbers_place(const char *key)
{
    begin();
    return renumber_place(numbers.renumbering, numbers.keys, key);
}

static bool costs_matter(const uint64_t *costs, const uint64_t *in_place)
{
    for (uint32_t op = 0; op < kb_shape.ops; op++)
        if (costs[op] != in_place[op] && engine_op_cost_asked(op))
            return true;
    return false;
}

bool numbers_matter(const struct numbers *of_point)
{
    for (enum number_of i = 0; i < REPLACED; i++) {
        const struct number *number = &of_point->list[i];
        if (!number->length || i == NUMBER_name || i == NUMBER_hash)    /* nothing is computed from these two */
            continue;
        if (i == NUMBER_op_costs ? costs_matter((const uint64_t *)number->bytes, place_of(i))
                                 : memcmp(number->bytes, place_of(i), number->length) != 0)
            return true;
    }
    return false;
}

void numbers_put(const struct numbers *of_point)
{
    if (!of_point && !numbers.other)
        return;
    write_all(of_point ? of_point : &numbers.given);
    numbers.other = of_point;
}
