/* accounts.c: the account of each kernel. Whenever a kernel goes on, the time since it did so before is that of the chain
 * of causes behind it. */
#include "accounts.h"

#include "causes.h"
#include "common/array.h"
#include "launch/kernel.h"
#include "sums.h"

struct accounts accounts;

static struct account *account_of(const struct tl *tl)
{
    return &accounts.at[tl->serial - 1];
}

const struct tl *kernel_of(uint32_t serial)
{
    return serial && serial <= accounts.count ? accounts.at[serial - 1].tl : NULL;
}

void accounts_kernel_begins(const struct tl *tl)
{
    while (accounts.count < tl->serial)
        *array_add(&accounts) = (struct account){.tl = NULL};
    *account_of(tl) = (struct account){.tl = tl, .begin_ps = now_ps, .counted_ps = now_ps};
    engines_kernel_begins(account_of(tl));
}

void accounts_advance(const struct tl *tl, struct ref cause)
{
    struct account *account = account_of(tl);
    if (account->ended)
        return;
    sums_add(cause, account->counted_ps, account->reason_ps);
    account->acts_for = items[cause.item].work == WORK_delay ? REASON_delay : REASON_engine;
    account->counted_ps = items[cause.item].end_ps;
}

/* The rest of a kernel that does not go on: it has failed, or the run has ended, while it waited, or in a call or a
 * delay, which is accounted for up to its end. `last`: what led to its return; NULL: it has not returned. */
static void close_at(struct account *account, uint64_t end_ps, const struct ref *last)
{
    if (account->counted_ps < end_ps)
        account->reason_ps[REASON_wait] += end_ps - account->counted_ps;
    else
        account->reason_ps[account->acts_for] -= account->counted_ps - end_ps;
    account->counted_ps = account->end_ps = end_ps;
    account->ended = true;
    engines_kernel_ends(account, last);
}

void accounts_kernel_ends(const struct tl *tl, struct ref last)
{
    close_at(account_of(tl), now_ps, tl->failure.set ? NULL : &last);
}

void accounts_close(uint64_t end_ps)
{
    for (struct account *account = accounts.at; account < accounts.at + accounts.count; account++)
        if (account->tl && !account->ended)
            close_at(account, end_ps > account->begin_ps ? end_ps : account->begin_ps, NULL);
}

void accounts_reset(void)
{
    accounts.count = 0;
}
