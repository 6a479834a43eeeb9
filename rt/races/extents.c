/* extents.c: a set of ranges that may overlap: a treap by where they begin, which knows how far those below reach. */
#include "extents.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

static bool before(const struct extent *a, const struct extent *b)
{
    return a->begin != b->begin ? a->begin < b->begin : a < b;
}

static struct extent *updated(struct extent *extent)
{
    extent->last_end = extent->end;
    if (extent->left && extent->left->last_end > extent->last_end)
        extent->last_end = extent->left->last_end;
    if (extent->right && extent->right->last_end > extent->last_end)
        extent->last_end = extent->right->last_end;
    return extent;
}

/* What comes before `at`, and the rest. */
static void split(struct extent *tree, const struct extent *at, struct extent **low, struct extent **high)
{
    if (!tree) {
        *low = *high = NULL;
    } else if (before(tree, at)) {
        split(tree->right, at, &tree->right, high);
        *low = updated(tree);
    } else {
        split(tree->left, at, low, &tree->left);
        *high = updated(tree);
    }
}

/* All of `low` comes before all of `high`. */
static struct extent *joined(struct extent *low, struct extent *high)
{
    if (!low || !high)
        return low ? low : high;
    if (low->priority > high->priority) {
        low->right = joined(low->right, high);
        return updated(low);
    }
    high->left = joined(low, high->left);
    return updated(high);
}

static uint32_t next_priority(void)
{
    static uint32_t state = 1;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

void extents_add(struct extent **root, struct extent *extent)
{
    struct extent *low, *high;
    extent->priority = next_priority();
    extent->left = extent->right = NULL;
    split(*root, extent, &low, &high);
    *root = joined(joined(low, updated(extent)), high);
}

void extents_remove(struct extent **root, struct extent *extent)
{
    assert(*root);
    if (*root == extent) {
        *root = joined(extent->left, extent->right);
        return;
    }
    extents_remove(before(*root, extent) ? &(*root)->right : &(*root)->left, extent);
    updated(*root);
}

void extents_each(struct extent *root, uint64_t begin, uint64_t end, void (*f)(struct extent *extent, void *arg),
                  void *arg)
{
    if (!root || root->last_end <= begin)
        return;
    extents_each(root->left, begin, end, f, arg);
    if (root->begin < end && root->end > begin)
        f(root, arg);
    if (root->begin < end)
        extents_each(root->right, begin, end, f, arg);
}
