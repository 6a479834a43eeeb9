/* methods.c: the methods of a search. With arguments it is a filter, by which tests/methods.t plays a search:
 *
 *     methods METHOD SEED POINTS OBJECTIVES [OPTION=NUMBER...] AXIS...
 *
 * An axis is its number of levels, with a u if it is not ordered. Prints the points of a batch, a line each, and an empty line;
 * then reads a line for each: its objectives, "failed", or "violated N". Batch follows batch until there are no more points. */
#include "gen/search/draw.h"
#include "gen/search/halving.h"
#include "gen/search/method.h"
#include "gen/search/ranking.h"
#include "tap.h"

#include <math.h>
#include <string.h>

enum { AXES = 4, LARGEST = 100 };

static struct method_space space_of(enum method_name name, const struct method_axis *axes, size_t axis_count, uint64_t points)
{
    struct method_space space = {.axes = axes, .axis_count = axis_count, .objective_count = 2, .seed = 1, .points = points};
    space.choice.name = name;
#define OPTION(method, option, kind, least, most, standard, doc)                                                       \
    space.choice.number[OPTION_##method##_##option] = standard;
#include "gen/search/methods.def"
    return space;
}

/* ---- random numbers */

/* The known answers that come with the authors' own code (Random123, kat_vectors). */
static void test_philox(void)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        philox(known[i].counter, known[i].key, out);
        expect(!memcmp(out, known[i].out, sizeof out), "Philox4x32-10 gives known answer %zu", i);
    }
}

static void test_permutations(void)
{
    bool good = true, differ = false;
    for (uint64_t n = 1; n <= 300; n++) {
        char seen[300] = {0};
        for (uint64_t k = 0; k < n; k++) {
            uint64_t at = draw_permuted(n, 3, k, n);
            good &= at < n && !seen[at];
            seen[at < n ? at : 0] = 1;
            differ |= at != draw_permuted(n, 4, k, n);
        }
    }
    expect(good && differ, "a random permutation has each number once, and axes have different ones");
}

/* ---- points by number */

static void test_grid(void)
{
    static const struct method_axis axes[] = {{3, true}, {1, true}, {5, false}, {2, true}};
    struct method_space space = space_of(METHOD_grid, axes, AXES, 0);
    struct method *method = method_begin(&space);
    bool good = method_total(method) == 30 && method_known(method) == 30;
    uint32_t levels[AXES];
    for (uint32_t i = 0; i < 30; i++) {
        method_point(method, i, levels);
        good &= levels[0] == i / 10 && levels[1] == 0 && levels[2] == i / 2 % 5 && levels[3] == i % 2;
    }
    expect(good, "a grid has each point once, the last key changing fastest");
    static const struct method_axis large[] = {{UINT64_C(1) << 32, true}, {UINT64_C(1) << 32, true}, {7, true}, {3, true}};
    space = space_of(METHOD_grid, large, AXES, 0);
    method = method_begin(&space);
    method_point(method, METHOD_ENDLESS - 1, levels);
    expect(method_total(method) == METHOD_ENDLESS && levels[2] == (METHOD_ENDLESS - 1) / 3 % 7
               && levels[1] == (uint32_t)((METHOD_ENDLESS - 1) / 21)
               && levels[0] == (METHOD_ENDLESS - 1) / 21 >> 32,
           "a grid of more than 2^64 points has no end, and its numbers lead to points up to the last one");
}

static void test_random(void)
{
    static const struct method_axis axes[] = {{7, true}, {UINT64_C(1) << 32, true}, {1, false}, {2, true}};
    struct method_space space = space_of(METHOD_random, axes, AXES, 0);
    struct method *method = method_begin(&space);
    unsigned count[7] = {0};
    uint32_t levels[AXES], all = 0;
    for (uint64_t i = 0; i < 70000; i++) {
        method_point(method, i, levels);
        count[levels[0] % 7]++;
        all |= levels[1];
    }
    bool even = true;
    for (unsigned i = 0; i < 7; i++)
        even &= count[i] > 9500 && count[i] < 10500;
    expect(even && all == UINT32_MAX && levels[2] == 0, "random points have all levels of an axis equally often");
}

/* Each axis has twelve parts and as many points: of 3, 4, 6 and 12 levels each is there equally often. */
static void test_lhs(void)
{
    static const struct method_axis axes[] = {{3, true}, {4, false}, {6, true}, {12, true}};
    struct method_space space = space_of(METHOD_lhs, axes, AXES, 12);
    struct method *method = method_begin(&space);
    unsigned count[AXES][12] = {0};
    uint32_t levels[AXES];
    bool good = method_total(method) == 12;
    for (uint64_t k = 0; k < 12; k++) {
        method_point(method, k, levels);
        for (size_t i = 0; i < AXES; i++)
            count[i][levels[i]]++;
    }
    for (size_t i = 0; i < AXES; i++)
        for (size_t level = 0; level < axes[i].count; level++)
            good &= count[i][level] == 12 / axes[i].count;
    expect(good, "a Latin hypercube has each level equally often");
    static const struct method_axis fine[] = {{UINT64_C(1) << 32, true}};
    space = space_of(METHOD_lhs, fine, 1, 1000);
    method = method_begin(&space);
    char part[1000] = {0};
    unsigned parts = 0, middles = 0;
    for (uint64_t k = 0; k < 1000; k++) {
        method_point(method, k, levels);
        uint64_t place = levels[0] * UINT64_C(1000);
        parts += !part[place >> 32];
        part[place >> 32] = 1;
        middles += (uint32_t)place >> 31;
    }
    expect(parts == 1000, "each of 1000 parts of a long axis has one of 1000 points");
    expect(middles > 400 && middles < 600, "points lie anywhere in their parts");
    space.points = 0;
    expect(method_refusal(&space), "a Latin hypercube without a number of points is refused");
}

/* The first points in three dimensions, as Joe and Kuo's program prints them, times 16. */
static void test_sobol(void)
{
    static const uint32_t published[][3] = {{0, 0, 0}, {8, 8, 8}, {12, 4, 4}, {4, 12, 12}, {6, 6, 10}, {14, 14, 2},
                                            {10, 2, 14}, {2, 10, 6}, {3, 5, 15}, {11, 13, 7}};
    static const struct method_axis axes[] = {{16, true}, {16, true}, {16, true}};
    struct method_space space = space_of(METHOD_sobol, axes, 3, 0);
    uint32_t levels[300];
    space.seed = 0;
    struct method *method = method_begin(&space);
    bool good = true;
    for (uint64_t i = 0; i < 10; i++) {
        method_point(method, i, levels);
        good &= !memcmp(levels, published[i], sizeof *published);
    }
    expect(good, "with seed 0, Sobol's sequence begins as published");
    struct method_axis many[300];
    for (size_t i = 0; i < 300; i++)
        many[i] = (struct method_axis){64, true};
    space = space_of(METHOD_sobol, many, 256, 0);
    space.seed = 5;
    method = method_begin(&space);
    uint64_t seen[256] = {0};
    for (uint64_t i = 64; i < 128; i++) {
        method_point(method, i, levels);
        for (size_t a = 0; a < 256; a++)
            seen[a] |= UINT64_C(1) << levels[a];
    }
    for (size_t a = 0; a < 256; a++)
        good &= seen[a] == UINT64_MAX;
    expect(good, "each level of 256 keys is once in 64 points that follow one another, also of a shifted sequence");
    space.axis_count = 300;
    expect(method_refusal(&space) && strstr(method_refusal(&space), "256 keys"), "more keys than have directions are refused");
}

/* ---- ranking, against its definition */

static bool is_worse(const struct ranked *a, const struct ranked *b)
{
    bool worse = false;
    if (a->violated != b->violated)
        return a->violated > b->violated;
    for (size_t k = 0; !a->violated && k < 3; k++) {
        if (a->objectives[k] < b->objectives[k])
            return false;
        worse |= a->objectives[k] > b->objectives[k];
    }
    return worse;
}

static void test_ranking(void)
{
    bool good = true;
    for (unsigned trial = 0; trial < 300; trial++) {
        struct ranked points[LARGEST];
        double objectives[LARGEST][3];
        uint32_t order[LARGEST];
        size_t count = 1 + below(LARGEST), used = 1 + trial % 3;
        for (size_t i = 0; i < count; i++) {
            for (size_t k = 0; k < 3; k++)
                objectives[i][k] = k < used ? (double)below(8) : 0;
            bool violates = below(4) == 0;
            points[i] = ranked_of(&(struct evaluation){.violated = violates ? 1 + (unsigned)below(2) : 0,
                                                       .failed = violates && below(3) == 0, .objectives = objectives[i]},
                                  objectives[i], used);
        }
        rank(points, count, used, order);
        for (size_t i = 0; i < count; i++) {
            long above = -1;
            for (size_t j = 0; j < count; j++)
                if (is_worse(&points[i], &points[j]))
                    above = above > (long)points[j].front ? above : (long)points[j].front;
            good &= (long)points[i].front == above + 1;
            good &= i == 0 || points[order[i - 1]].front <= points[order[i]].front;
        }
    }
    expect(good, "the front of a point is one more than the last one with a point that is better than it");
    double nan[1] = {NAN};
    expect(ranked_of(&(struct evaluation){.objectives = nan}, nan, 1).violated == RANK_FAILED,
           "an objective that is not a number counts as a failure");
    double line[4][2] = {{0, 4}, {1, 3}, {3, 1}, {4, 0}};
    struct ranked points[4];
    uint32_t order[4];
    for (size_t i = 0; i < 4; i++)
        points[i] = ranked_of(&(struct evaluation){.objectives = line[i]}, line[i], 2);
    rank(points, 4, 2, order);
    expect(isinf(points[0].crowding) && isinf(points[3].crowding) && points[1].crowding == 1.5 && points[2].crowding == 1.5,
           "the crowding of a point is the extent of its neighbours, as a part of the front's");
}

/* ---- batches */

/* Six points with two fidelities more: 6 + 2 + 1 is the most that nine points allow, with one of three going on. */
static void test_halving(void)
{
    static const struct method_axis axes[] = {{3, true}, {100, true}, {100, true}};
    struct method_space space = space_of(METHOD_halving, axes, 3, 9);
    space.choice.number[OPTION_halving_keep] = 3;
    space.objective_count = 1;
    struct method *method = method_begin(&space);
    /* Values by number: of the first rung, numbers 4 and 1 are best; of the second, the one that was 1, number 7. */
    static const double values[] = {5, 2, 9, 0, 1, 7, 8, 3, 0};
    uint32_t levels[9][3];
    bool good = method_total(method) == 9 && method_known(method) == 6;
    for (uint64_t i = 0; i < 9; i++) {
        uint64_t number = i < 6 ? 5 - i : i;            /* the first rung is told backwards */
        method_point(method, number, levels[number]);
        method_tell(method, number, &(struct evaluation){.objectives = &values[number], .failed = number == 3});
        good &= method_known(method) == (i < 5 ? 6 : i < 7 ? 8 : 9);
    }
    for (unsigned k = 1; k < 3; k++)
        good &= levels[6][k] == levels[4][k] && levels[7][k] == levels[1][k] && levels[8][k] == levels[1][k];
    for (unsigned i = 0; i < 9; i++)
        good &= levels[i][0] == (i < 6 ? 0 : i < 8 ? 1 : 2);
    expect(good, "successive halving: of six points the best two that did not fail go on, and of those the best one");
    expect(halving_points(9, 3, 3) == 6 && halving_points(8, 3, 3) == 6 - 1 && halving_points(100, 2, 1) == 100,
           "the first rung is the largest that the budget allows");
    space.points = 2;
    expect(method_refusal(&space), "a budget of fewer points than fidelities is refused");
}

/* Asks for all points of a space of 60; evaluations are told in an order of `salt`. Returns a checksum of the points. */
static uint64_t whole_space(unsigned salt, bool *each_once)
{
    static const struct method_axis axes[] = {{3, false}, {5, true}, {1, true}, {4, true}};
    struct method_space space = space_of(METHOD_nsga2, axes, AXES, 0);
    space.choice.number[OPTION_nsga2_population] = 8;
    struct method *method = method_begin(&space);
    char seen[60] = {0};
    uint32_t levels[AXES];
    uint64_t sum = 0, number = 0;
    while (number < method_known(method)) {
        uint64_t first = number, count = method_known(method) - first;
        for (; number < first + count; number++) {
            method_point(method, number, levels);
            unsigned place = (levels[0] * 5 + levels[1]) * 4 + levels[3];
            *each_once &= !seen[place];
            seen[place] = 1;
            sum = sum * 1000003 + place;
        }
        for (uint64_t i = 0; i < count; i++) {
            uint64_t told = first + (i + salt) % count;
            method_point(method, told, levels);
            const double objectives[2] = {levels[1], (double)levels[3] - levels[1]};
            method_tell(method, told, &(struct evaluation){.objectives = objectives, .violated = levels[0] == 1 ? 1 : 0,
                                                           .failed = levels[3] == 2});
        }
    }
    *each_once &= number == 60 && method_total(method) == 60;
    method_end(method);
    return sum;
}

static void test_nsga2(void)
{
    bool each_once = true;
    uint64_t sum = whole_space(0, &each_once);
    expect(each_once, "NSGA-II asks for each point of a small space once, and then ends");
    expect(sum == whole_space(3, &each_once), "its points do not depend on the order in which evaluations are told");
}

/* ---- a search played by another program */

static void read_evaluation(struct method *method, uint64_t number, size_t objective_count)
{
    char line[1000], *at = line;
    double objectives[16];
    struct evaluation evaluation = {.objectives = objectives};
    if (!fgets(line, sizeof line, stdin))
        exit(1);
    evaluation.failed = line[0] == 'f';
    if (line[0] == 'v')
        evaluation.violated = (unsigned)atoi(line + strlen("violated"));
    for (size_t i = 0; i < objective_count && !evaluation.failed && !evaluation.violated; i++)
        objectives[i] = strtod(at, &at);
    method_tell(method, number, &evaluation);
}

static int play(char **arguments)
{
    static const char *const names[METHODS] = {
#define METHOD(name, order, budget, doc) #name,
#include "gen/search/methods.def"
    };
    static const char *const options[METHOD_OPTIONS] = {
#define OPTION(method, name, kind, least, most, standard, doc) #method "." #name "=",
#include "gen/search/methods.def"
    };
    static struct method_axis axes[1000];
    struct method_space space = space_of(METHOD_grid, axes, 0, strtoull(arguments[2], NULL, 10));
    for (unsigned i = 0; i < METHODS; i++)
        if (!strcmp(arguments[0], names[i]))
            space.choice.name = i;
    space.seed = strtoull(arguments[1], NULL, 10);
    space.objective_count = strtoull(arguments[3], NULL, 10);
    for (char **at = arguments + 4; *at; at++) {
        char *end = strchr(*at, '=');
        for (unsigned i = 0; end && i < METHOD_OPTIONS; i++)
            if (!strncmp(*at, options[i], strlen(options[i])))
                space.choice.number[i] = strtod(end + 1, NULL);
        if (end)
            continue;
        axes[space.axis_count].count = strtoull(*at, &end, 10);
        axes[space.axis_count++].ordered = *end != 'u';
    }
    struct method *method = method_begin(&space);
    uint32_t *levels = calloc(space.axis_count, sizeof *levels);
    for (uint64_t number = 0; number < space.points && number < method_known(method);) {
        uint64_t first = number, end = method_known(method) < space.points ? method_known(method) : space.points;
        for (; number < end; number++) {
            method_point(method, number, levels);
            for (size_t i = 0; i < space.axis_count; i++)
                printf("%u%c", levels[i], i + 1 < space.axis_count ? ' ' : '\n');
        }
        putchar('\n');
        fflush(stdout);
        for (uint64_t i = first; i < end; i++)
            read_evaluation(method, i, space.objective_count);
    }
    method_end(method);
    free(levels);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 5)
        return play(argv + 1);
    test_philox();
    test_permutations();
    test_grid();
    test_random();
    test_lhs();
    test_sobol();
    test_ranking();
    test_halving();
    test_nsga2();
    return tests_end();
}
