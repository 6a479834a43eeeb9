/* The least time for some work of all PEs, and what ops cost. */
#include <kb/measure.h>
#include <stdio.h>

KB_BENCH(roofline, "figures of work that nobody did")
{
    struct kb_pes pes = kb_pes("*");
    printf("costs %u %u %u\n", (unsigned)kb_op_cost("exp"), (unsigned)kb_op_cost("add"), (unsigned)kb_op_cost("no such"));
    printf("alone %u %u\n", (unsigned)kb_math_ps(KB_f16, 1 << 20), (unsigned)kb_math_ps(KB_f32, 1 << 20));
    kb_traffic traffic = kb_traffic_new();
    kb_traffic_add(traffic, pes.pe[0], pes.pe[pes.count - 1], 4096);
    printf("link %u\n", (unsigned)kb_traffic_ps(traffic));
    kb_roofline(80000000, pes, &(struct kb_work){
        .math_dtype = KB_f16, .math = pes.count << 20, .math_f32 = pes.count << 20, .hbm_read = 4096, .traffic = traffic });
}
