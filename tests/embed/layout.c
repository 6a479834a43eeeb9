/* layout.c: where the fields of kb/sim.h are, a line each; and a program as one that was compiled with version 1. */
#include <stdio.h>

#include <kb/sim.h>

#define FIELD(type, field) printf(#type "." #field " %zu %zu\n", offsetof(struct type, field), sizeof(((struct type *)0)->field))
#define NUMBER(name) printf(#name " %d\n", (int)name)

static void config(void)
{
    FIELD(kb_sim_config, struct_size), FIELD(kb_sim_config, machine), FIELD(kb_sim_config, seed), FIELD(kb_sim_config, set);
    FIELD(kb_sim_config, set_count), FIELD(kb_sim_config, memory_bytes), FIELD(kb_sim_config, data);
    FIELD(kb_sim_config, threads), FIELD(kb_sim_config, exact_events), FIELD(kb_sim_config, user), FIELD(kb_sim_config, log);
    FIELD(kb_sim_config, completed);
}

static void stops_and_results(void)
{
    FIELD(kb_sim_stop, now_ps), FIELD(kb_sim_stop, request), FIELD(kb_sim_stop, reason);
    FIELD(kb_sim_result, request), FIELD(kb_sim_result, kind), FIELD(kb_sim_result, outcome);
    FIELD(kb_sim_result, submitted_ps), FIELD(kb_sim_result, start_ps), FIELD(kb_sim_result, done_ps);
    FIELD(kb_sim_result, pe_count), FIELD(kb_sim_result, failure), FIELD(kb_sim_result, failure_node);
    FIELD(kb_sim_result, failure_ps), FIELD(kb_sim_result, failure_pe);
    FIELD(kb_sim_pe_result, pe), FIELD(kb_sim_pe_result, outcome), FIELD(kb_sim_pe_result, start_ps);
    FIELD(kb_sim_pe_result, end_ps), FIELD(kb_sim_pe_result, dma_ps), FIELD(kb_sim_pe_result, compute_ps);
    FIELD(kb_sim_pe_result, failure), FIELD(kb_sim_pe_result, failure_node), FIELD(kb_sim_pe_result, failure_ps);
}

static void requests(void)
{
    FIELD(kb_sim_launch, kernel), FIELD(kb_sim_launch, pes), FIELD(kb_sim_launch, pe_count), FIELD(kb_sim_launch, arg);
    FIELD(kb_sim_launch, arg_bytes), FIELD(kb_sim_launch, timeout_ps), FIELD(kb_sim_launch, start);
    FIELD(kb_sim_launch, fail_fast);
    FIELD(kb_sim_tensor, name), FIELD(kb_sim_tensor, dtype), FIELD(kb_sim_tensor, rank), FIELD(kb_sim_tensor, size);
    FIELD(kb_sim_tensor, space), FIELD(kb_sim_tensor, split), FIELD(kb_sim_tensor, rows), FIELD(kb_sim_tensor, cols);
    FIELD(kb_sim_tensor, pes), FIELD(kb_sim_tensor, pe_count);
    FIELD(kb_sim_event, t_ps), FIELD(kb_sim_event, event), FIELD(kb_sim_event, line);
}

static void enumerators(void)
{
    NUMBER(KB_OK), NUMBER(KB_RUN_FAILED), NUMBER(KB_WRONG), NUMBER(KB_HOST_FAILED), NUMBER(KB_BUSY), NUMBER(KB_NO_MEMORY);
    NUMBER(KB_TOO_SMALL), NUMBER(KB_ENDED), NUMBER(KB_SIM_DATA_VERIFY), NUMBER(KB_SIM_DATA_OFF), NUMBER(KB_STOP_UNTIL);
    NUMBER(KB_STOP_COMPLETED), NUMBER(KB_STOP_FAULT), NUMBER(KB_STOP_IDLE), NUMBER(KB_STOP_DEADLOCK), NUMBER(KB_SIM_RUNNING);
    NUMBER(KB_SIM_OK), NUMBER(KB_SIM_FAILED), NUMBER(KB_SIM_TIMEOUT), NUMBER(KB_SIM_DEADLOCK), NUMBER(KB_SIM_SKIPPED);
    NUMBER(KB_SIM_LAUNCH), NUMBER(KB_SIM_PROGRAM), NUMBER(KB_SIM_STREAM), NUMBER(KB_SIM_WRITE), NUMBER(KB_SIM_READ);
    NUMBER(KB_SIM_MAP), NUMBER(KB_SIM_UNMAP), NUMBER(KB_SIM_START_BARRIER), NUMBER(KB_SIM_START_CUBE);
    NUMBER(KB_SIM_START_FREE);
}

/* The configuration as a version before later fields has it. */
struct config_1 {
    uint64_t struct_size;
    const struct kb_machine *machine;
    uint64_t seed;
};

static int old_program(void)
{
    struct config_1 config = {sizeof config, NULL, 3};
    kb_sim *sim;
    if (kb_abi_version() < 1 || kb_sim_create((const struct kb_sim_config *)&config, &sim) != KB_OK)
        return 1;
    enum kb_status status = kb_sim_run_bench(sim, "gemm", (const char *[]){"m=64", "n=64", "k=64"}, 3);
    return status != KB_OK || kb_sim_destroy(sim) != KB_OK;
}

int main(void)
{
    config();
    stops_and_results();
    requests();
    enumerators();
    puts(old_program() ? "old program: fails" : "old program: ok");
    return 0;
}
