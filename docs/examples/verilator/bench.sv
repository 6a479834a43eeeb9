// bench.sv: the DMA engine copies a buffer into HBM of the accelerator and back. The clock has 1 GHz; while the engine waits
// for the accelerator, cycles in which nothing can happen are left out (+every_cycle: none is).
`timescale 1ps/1ps

module bench;
    import device_dpi::*;

    localparam int unsigned BEATS = 16;
    localparam longint unsigned CYCLE = 1000;
    localparam logic [63:0] HBM = 64'h1000;             // in the first HBM slice

    bit clk = 0, rst = 1;
    logic start = 0, to_device = 0, busy, buffer_write, valid, write, answered;
    logic [$clog2(BEATS)-1:0] index;
    logic [511:0] from_buffer, to_buffer, request_data, answer_data;
    logic [63:0] request_address;
    longint unsigned due_ps, taken_ps, cycles = 0;
    bit every_cycle;

    bit [511:0] source[BEATS], back[BEATS];
    assign from_buffer = source[index];
    always @(posedge clk) if (buffer_write) back[index] <= to_buffer;

    dma #(.BEATS(BEATS)) engine (
        .clk, .rst, .start, .to_device, .address(HBM), .beats(($clog2(BEATS)+1)'(BEATS)), .busy, .index, .from_buffer,
        .buffer_write, .to_buffer, .valid, .write, .request_address, .request_data, .answered, .answer_data);
    accelerator device (
        .clk, .valid, .write, .address(request_address), .data(request_data), .answered, .answer_data, .due_ps, .taken_ps);

    // A cycle; if the engine waits, the first one at which the accelerator can have done something.
    task automatic tick();
        longint unsigned pause = CYCLE / 2;
        if (!every_cycle && busy && !valid && !answered && due_ps != '1 && due_ps > $time + CYCLE)
            pause += (due_ps - $time - 1) / CYCLE * CYCLE;
        #(pause) clk = 1;
        cycles++;
        #(CYCLE / 2) clk = 0;
    endtask

    task automatic copy(input bit way);
        longint unsigned begin_ps = $time;
        to_device = way;
        start = 1;
        tick();
        start = 0;
        do tick(); while (busy);
        $display("%0d bytes %0s in %0d ps, the last request in %0d ps", 64 * BEATS, way ? "written" : "read", $time - begin_ps,
                 taken_ps);
    endtask

    initial begin
        automatic int unsigned wrong = 0;
        every_cycle = $test$plusargs("every_cycle") != 0;
        for (int unsigned i = 0; i < BEATS; i++)
            for (int unsigned j = 0; j < 16; j++)
                source[i][32*j +: 32] = 32'h9e3779b9 * (16 * i + j + 1);
        tick();
        rst = 0;
        copy(1);
        copy(0);
        for (int unsigned i = 0; i < BEATS; i++)
            wrong += 32'(back[i] != source[i]);
        $display("%0d of %0d beats are wrong; ends at %0d ps", wrong, BEATS, $time);
        if (every_cycle || $test$plusargs("cycles") != 0)
            $display("%0d cycles", cycles);
        check(kb_sim_destroy(device.sim), null);
        $finish;
    end
endmodule
