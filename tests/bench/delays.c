/* delays.c: kernels that are resumed again and again: each delay suspends its kernel, and one event resumes it. */
#include <kb/host.h>
#include <kb/tl.h>

struct delays_args {
    uint64_t count;
};

KB_KERNEL(delays, struct delays_args)
{
    for (uint64_t i = 0; i < arg->count; i++)
        tl_delay(tl, 1000 + i % 7);
}

KB_BENCH(delays, "each PE waits again and again", KB_INT(count, 1000, 1, 1000000, "delays of each PE"))
{
    kb_wait(kb_launch(delays, kb_pes("*"), &(struct delays_args){ kb_int(count) }));
}
