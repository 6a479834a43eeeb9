// dma.sv: a DMA engine in RTL. It copies `beats` of 64 bytes from its buffer to the accelerator, or back, a beat at a time.
`timescale 1ps/1ps

module dma #(parameter int unsigned BEATS = 64) (
    input  logic                      clk, rst,
    // a command: start is high for a cycle; busy until the last beat is answered
    input  logic                      start, to_device,
    input  logic [63:0]               address,
    input  logic [$clog2(BEATS):0]    beats,
    output logic                      busy,
    // the buffer
    output logic [$clog2(BEATS)-1:0]  index,
    input  logic [511:0]              from_buffer,
    output logic                      buffer_write,
    output logic [511:0]              to_buffer,
    // requests to the accelerator, and its answers
    output logic                      valid, write,
    output logic [63:0]               request_address,
    output logic [511:0]              request_data,
    input  logic                      answered,
    input  logic [511:0]              answer_data
);
    logic [$clog2(BEATS):0] left;
    logic                   waits;

    assign request_data = from_buffer;
    assign to_buffer = answer_data;
    assign buffer_write = busy && answered && !write;
    assign valid = busy && !waits;

    always_ff @(posedge clk) begin
        if (rst) begin
            busy <= 0;
            waits <= 0;
            index <= 0;
            left <= 0;
            write <= 0;
            request_address <= 0;
        end else if (!busy) begin
            busy <= start && beats != 0;
            write <= to_device;
            request_address <= address;
            left <= beats;
            index <= 0;
        end else if (!waits) begin
            waits <= 1;                                 // the request is taken in the cycle in which it is valid
        end else if (answered) begin
            waits <= 0;
            index <= index + 1;
            request_address <= request_address + 64;
            left <= left - 1;
            busy <= left != 1;
        end
    end
endmodule
