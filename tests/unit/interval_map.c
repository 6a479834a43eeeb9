/* interval_map.c: interval maps against arrays of positions, by random operations. */
#include "common/interval_map.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- disjoint: which byte of which source each position holds, as a store has it */

enum { POSITIONS = 300, SOURCES = 5, MAPS = 2, STEPS = 60000 };

struct piece {
    struct interval interval;
    unsigned source;                                    /* from 1 on */
    uint64_t offset;                                    /* in the source, of the first position */
};

struct byte {
    unsigned source;                                    /* 0: the position is in no interval */
    uint64_t offset;
};

static long references[SOURCES + 1];

static void piece_copied(struct interval *copy)
{
    references[((struct piece *)copy)->source]++;
}

static void piece_dropped(struct interval *interval)
{
    references[((struct piece *)interval)->source]--;
}

static void piece_advance(struct interval *interval, uint64_t bytes)
{
    ((struct piece *)interval)->offset += bytes;
}

static bool piece_continues(const struct interval *low, const struct interval *high)
{
    const struct piece *a = (const struct piece *)low, *b = (const struct piece *)high;
    return a->source == b->source && a->offset + (low->end - low->begin) == b->offset;
}

static struct interval_kind pieces = {
    .size = sizeof(struct piece), .copied = piece_copied, .dropped = piece_dropped, .advance = piece_advance,
    .continues = piece_continues,
};
static struct interval_map map[MAPS] = {{.kind = &pieces}, {.kind = &pieces}};
static struct byte model[MAPS][POSITIONS];

/* A heap by priority, with the last end of each subtree. */
static bool tree_is_sound(const struct interval *tree)
{
    if (!tree)
        return true;
    uint64_t last_end = tree->end;
    for (int i = 0; i < 2; i++) {
        const struct interval *child = i ? tree->right : tree->left;
        if (child && child->priority > tree->priority)
            return false;
        if (child && child->last_end > last_end)
            last_end = child->last_end;
    }
    return last_end == tree->last_end && tree_is_sound(tree->left) && tree_is_sound(tree->right);
}

static unsigned count_of(const struct interval *tree)
{
    return tree ? count_of(tree->left) + 1 + count_of(tree->right) : 0;
}

/* The map has one interval for each longest stretch of the model that continues. */
static bool equals(const struct interval_map *m, const struct byte *bytes)
{
    unsigned intervals = 0, stretches = 0;
    struct byte found[POSITIONS] = {{0}};
    interval_for(m, i, 0, POSITIONS) {
        const struct piece *piece = (const struct piece *)i;
        intervals++;
        for (uint64_t at = i->begin; at < i->end; at++)
            found[at] = (struct byte){piece->source, piece->offset + (at - i->begin)};
    }
    for (int at = 0; at < POSITIONS; at++)
        stretches += bytes[at].source && (!at || bytes[at - 1].source != bytes[at].source ||
                                          bytes[at - 1].offset + 1 != bytes[at].offset);
    return !memcmp(found, bytes, sizeof found) && intervals == stretches && count_of(m->root) == intervals &&
           tree_is_sound(m->root);
}

static bool references_are_right(void)
{
    long count[SOURCES + 1] = {0};
    for (int m = 0; m < MAPS; m++)
        interval_for(&map[m], i, 0, POSITIONS)
            count[((struct piece *)i)->source]++;
    return !memcmp(count, references, sizeof count);
}

static bool find_is_right(const struct interval_map *m, const struct byte *bytes, uint64_t at)
{
    const struct interval *found = interval_find(m, at);
    while (at < POSITIONS && !bytes[at].source)
        at++;
    return at == POSITIONS ? !found : found && found->begin <= at && at < found->end;
}

static void set(int m, uint64_t begin, uint64_t end)
{
    unsigned source = 1 + (unsigned)below(SOURCES);
    uint64_t offset = below(2) ? begin : below(1000);   /* often what continues a neighbour */
    interval_set(&map[m], &(struct piece){{.begin = begin, .end = end}, source, offset}.interval);
    for (uint64_t at = begin; at < end; at++)
        model[m][at] = (struct byte){source, offset + (at - begin)};
}

static void erase(int m, uint64_t begin, uint64_t end)
{
    interval_erase(&map[m], begin, end);
    memset(&model[m][begin], 0, (end - begin) * sizeof model[m][0]);
}

static void copy(int m, uint64_t begin, uint64_t end)
{
    int from = (int)below(MAPS);
    uint64_t from_begin = below(POSITIONS - (end - begin) + 1);
    interval_copy(&map[m], begin, &map[from], from_begin, end - begin);
    memmove(&model[m][begin], &model[from][from_begin], (end - begin) * sizeof model[m][0]);
}

static void disjoint(void)
{
    bool same = true, found = true, held = true;
    for (int step = 0; step < STEPS && same; step++) {
        int m = (int)below(MAPS);
        uint64_t begin = below(POSITIONS), most = POSITIONS - begin, bytes = below(step % 7 ? 20 : most + 1);
        uint64_t end = begin + (bytes < most ? bytes : most);
        const struct interval *old = below(4) ? NULL : interval_find(&map[m], begin);
        if (old) {                                      /* a range that was set before */
            begin = old->begin;
            end = old->end;
        }
        int what = (int)below(100);
        if (what < 40 && begin < end)
            set(m, begin, end);
        else if (what < 60)
            erase(m, begin, end);
        else
            copy(m, begin, end);
        same = equals(&map[m], model[m]);
        found &= find_is_right(&map[m], model[m], below(POSITIONS));
        held &= references_are_right();
    }
    expect(same, "set, erase and copy give what an array of positions has, in as few intervals as possible");
    expect(found, "interval_find gives the interval at a position, or the next one");
    expect(held, "copied and dropped are called once for each value that comes and goes");
    for (int m = 0; m < MAPS; m++)
        interval_clear(&map[m]);
    expect(!map[0].root && !map[1].root && references_are_right(), "interval_clear drops every value");
    pool_release(&pieces.pool);
}

/* A tree of intervals that come in order is about as flat as one of intervals in any order. */
static unsigned height(const struct interval *tree)
{
    if (!tree)
        return 0;
    unsigned left = height(tree->left), right = height(tree->right);
    return 1 + (left > right ? left : right);
}

static void balance(void)
{
    struct interval_kind plain = {.size = sizeof(struct interval)};
    struct interval_map many = {.kind = &plain};
    for (uint64_t i = 0; i < 100000; i++)
        interval_set(&many, &(struct interval){.begin = 2 * i, .end = 2 * i + 1});
    expect(count_of(many.root) == 100000, "without `continues` neighbours stay apart");
    expect(height(many.root) < 60, "100000 intervals in order are a tree of less than 60 levels");
    pool_release(&plain.pool);
}

/* ---- overlapping */

enum { OVERLAPPING = 200 };

static struct interval all[OVERLAPPING];
static int added[OVERLAPPING];                          /* in which step; 0: it is in no map */

struct walk {
    const struct interval *seen[OVERLAPPING];
    unsigned count;
};

static void see(struct interval *interval, void *arg)
{
    struct walk *walk = arg;
    walk->seen[walk->count++] = interval;
}

static bool comes_before(const struct interval *a, const struct interval *b)
{
    return a->begin != b->begin ? a->begin < b->begin : added[a - all] < added[b - all];
}

static bool each_is_right(const struct interval_map *m, uint64_t begin, uint64_t end)
{
    struct walk walk = {.count = 0};
    unsigned overlap = 0;
    interval_each(m, begin, end, see, &walk);
    for (unsigned i = 0; i < OVERLAPPING; i++)
        overlap += added[i] && all[i].begin < end && all[i].end > begin;
    for (unsigned i = 0; i < walk.count; i++) {
        const struct interval *x = walk.seen[i];
        if (!added[x - all] || x->begin >= end || x->end <= begin || (i && !comes_before(walk.seen[i - 1], x)))
            return false;
    }
    return walk.count == overlap;
}

static void overlapping(void)
{
    struct interval_map m = {.added = UINT32_MAX - STEPS / 4};        /* their numbers start again */
    bool good = true, sound = true;
    for (int step = 1; step <= STEPS; step++) {
        unsigned i = (unsigned)below(OVERLAPPING);
        if (added[i]) {
            interval_remove(&m, &all[i]);
        } else {
            all[i].begin = below(50) * below(10);       /* several with one begin */
            all[i].end = all[i].begin + 1 + below(60);
            interval_add(&m, &all[i]);
        }
        added[i] = added[i] ? 0 : step;
        uint64_t begin = below(500);
        good &= each_is_right(&m, begin, begin + 1 + below(50));
        sound &= tree_is_sound(m.root);
    }
    expect(good, "interval_each finds the intervals that overlap a range, by begin and then as they were added");
    expect(sound, "the tree stays a heap that knows its last ends");
}

int main(void)
{
    disjoint();
    balance();
    overlapping();
    return tests_end();
}
