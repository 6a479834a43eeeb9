/* wrong_plan.c: a generator of plans that makes another mistake for each number of rows. */
#include <kb/impl.h>

uint64_t wrong_plan_service(const struct kb_schedule_request *ask)
{
    (void)ask;
    return 0;
}

/* Two tiles, whose columns, rows or parts of k are as given. */
static struct kb_plan_tile two(uint64_t number, struct kb_plan_tile first, struct kb_plan_tile second)
{
    return number == 0 ? first : number == 1 ? second : (struct kb_plan_tile){0};
}

static uint64_t asked;                                  /* which a pure function has not */

KB_PLAN(wrong)
{
    uint64_t m = ask->m, k = ask->k, n = ask->n, half = n / 2;
    struct kb_plan_tile all = {0, 0, 0, m, k, n}, none = {0}, left = {0, 0, 0, m, k, half};
    switch (m) {
    case 1: return none;
    case 2: return number ? none : (struct kb_plan_tile){0, 0, 0, m + 1, k, n};
    case 3: return number ? none : (struct kb_plan_tile){0, 0, 0, m, 0, n};
    case 4: return two(number, left, (struct kb_plan_tile){0, 0, half - 1, m, k, half + 1});
    case 5: return two(number, left, (struct kb_plan_tile){0, 0, half + 1, m, k, half - 1});
    case 6: return number ? none : (struct kb_plan_tile){0, 0, 0, m - 1, k, n};
    case 7: return two(number, (struct kb_plan_tile){0, 0, 0, m, 32, n}, (struct kb_plan_tile){0, 31, 0, m, k - 31, n});
    case 8: return two(number, (struct kb_plan_tile){0, 32, 0, m, k - 32, n}, (struct kb_plan_tile){0, 0, 0, m, 32, n});
    case 9: return number ? none : (struct kb_plan_tile){0, 0, 0, m, k - 1, n};
    case 10: return number ? none : (struct kb_plan_tile){0, 0, 0, m, k, n + 0 * asked++ + asked % 2};
    case 11: return all;                                /* and so on for ever */
    default: return number ? none : all;
    }
}
