/* The least time for some work, what ops cost, and the two bounds of a launch that does none of it. */
#include <kb/measure.h>
#include <stdio.h>

struct args {
    uint64_t delay_ps;
};

KB_KERNEL(waits, struct args)
{
    tl_delay(tl, arg->delay_ps);
}

KB_BENCH(roofline, "bounds of work that nobody did")
{
    struct kb_pes pes = kb_pes("*");
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_1d(2048), kb_copies(KB_HBM, pes));
    printf("costs %u %u %u\n", (unsigned)kb_op_cost("exp"), (unsigned)kb_op_cost("add"), (unsigned)kb_op_cost("no such"));
    printf("alone %u %u\n", (unsigned)kb_math_ps(KB_f16, 1 << 20), (unsigned)kb_math_ps(KB_f32, 1 << 20));
    kb_traffic traffic = kb_traffic_new();
    kb_traffic_add(traffic, pes.pe[0], pes.pe[pes.count - 1], 4096);
    printf("link %u\n", (unsigned)kb_traffic_ps(traffic));
    kb_traffic at_once = kb_traffic_new(), each = kb_traffic_new();
    kb_traffic_multicast(at_once, pes.pe[0], pes.pe + 1, pes.count - 1, 4096);
    for (uint32_t i = 1; i < pes.count; i++)
        kb_traffic_add(each, pes.pe[0], pes.pe[i], 4096);
    printf("multicast %u %u\n", (unsigned)kb_traffic_ps(at_once), (unsigned)kb_traffic_ps(each));
    kb_future launch = kb_launch(waits, pes, &(struct args){80000000});
    kb_wait(launch);
    kb_roofline(launch, &(struct kb_problem){
        .math_dtype = KB_f16, .math = pes.count << 20, .math_f32 = pes.count << 20, .reads = {x} },
        &(struct kb_work){ .traffic = traffic });
}
