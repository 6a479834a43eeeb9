// accelerator.sv: the simulated accelerator as a module: a request in each cycle in which `valid` is high, answered when the
// machine has done it. `due_ps` is the earliest time at which anything can happen here without a request.
`timescale 1ps/1ps

module accelerator import device_dpi::*; (
    input  logic             clk,
    input  logic             valid, write,
    input  logic [63:0]      address,
    input  logic [511:0]     data,
    output logic             answered,
    output logic [511:0]     answer_data,
    output longint unsigned  due_ps,
    output longint unsigned  taken_ps                   // by the last request that was answered
);
    chandle sim;
    longint unsigned request = 0;                       // under way; 0: none
    bit [511:0] read_data;

    initial begin
        sim = create();
        answered = 0;
        answer_data = '0;
        due_ps = '1;
        taken_ps = 0;
    end

    always @(posedge clk) begin
        automatic longint unsigned at = address;
        run_until(sim, $time);
        answered <= 0;
        if (request != 0) begin
            automatic result_t result = poll(sim, request);
            if (result.outcome != RUNNING) begin
                if (result.outcome != ENDED_OK)
                    $fatal(1, "a request has failed");
                answered <= 1;
                answer_data <= read_data;
                taken_ps <= result.done_ps - result.submitted_ps;
                request = 0;
            end
        end
        if (valid) begin
            if (write)
                check(kb_sim_write(sim, at, 1, 64, data, request), sim);
            else
                check(kb_sim_read(sim, at, 1, 64, read_data, request), sim);
        end
        due_ps <= next_ps(sim);
    end
endmodule
