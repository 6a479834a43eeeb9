// bench.cpp: two initiators and the simulated accelerator in SystemC. Each initiator works by itself, ahead of SystemC's time
// by a quantum at most, and every now and then writes a block to the accelerator and reads it back.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <systemc>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/tlm_quantumkeeper.h>

#include <device_tlm.hpp>

using namespace sc_core;

enum { BLOCKS = 8, BYTES = 4096, STEPS = 400 };

struct initiator : sc_module {
    tlm_utils::simple_initiator_socket<initiator> socket;
    std::uint64_t base;
    unsigned seed, wrong = 0, switches = 0;
    sc_time end;

    initiator(sc_module_name name, std::uint64_t base, unsigned seed)
        : sc_module(name), socket("socket"), base(base), seed(seed)
    {
        SC_HAS_PROCESS(initiator);
        SC_THREAD(work);
    }

    void transport(tlm::tlm_command command, std::uint64_t address, std::vector<unsigned char> &data, sc_time &ahead)
    {
        tlm::tlm_generic_payload payload;
        payload.set_command(command);
        payload.set_address(address);
        payload.set_data_ptr(data.data());
        payload.set_data_length(unsigned(data.size()));
        payload.set_streaming_width(unsigned(data.size()));
        socket->b_transport(payload, ahead);
        if (!payload.is_response_ok())
            SC_REPORT_FATAL(name(), payload.get_response_string().c_str());
    }

    void work()
    {
        tlm_utils::tlm_quantumkeeper keeper;
        std::vector<unsigned char> block(BYTES), back(BYTES);
        keeper.reset();
        for (unsigned i = 0; i < BLOCKS; i++) {
            for (unsigned step = 0; step < STEPS; step++) {            // work that needs nobody else
                block[(step * 31 + seed) % BYTES] = (unsigned char)(seed + i + step);
                keeper.inc(sc_time(7 + seed, SC_NS));
                if (keeper.need_sync()) {
                    switches++;
                    keeper.sync();
                }
            }
            sc_time ahead = keeper.get_local_time();
            transport(tlm::TLM_WRITE_COMMAND, base + i * BYTES, block, ahead);
            transport(tlm::TLM_READ_COMMAND, base + i * BYTES, back, ahead);
            keeper.set(ahead);
            wrong += back != block;
        }
        keeper.sync();
        end = sc_time_stamp();
    }
};

int sc_main(int argc, char **argv)
{
    double quantum_ns = argc > 1 ? std::atof(argv[1]) : 0;
    tlm::tlm_global_quantum::instance().set(sc_time(quantum_ns, SC_NS));
    device_tlm device("device", 2);
    initiator a("a", DEVICE_SIP0_CUBE0_HBM_CTRL_PE0, 1), b("b", DEVICE_SIP0_CUBE0_HBM_CTRL_PE1, 2);
    a.socket.bind(device.target[0]);
    b.socket.bind(device.target[1]);
    sc_start();
    std::printf("a ends at %s, b at %s; %u of %d blocks are wrong\n", a.end.to_string().c_str(), b.end.to_string().c_str(),
                a.wrong + b.wrong, 2 * BLOCKS);
    std::fprintf(stderr, "quantum %g ns: %u switches\n", quantum_ns, a.switches + b.switches);
    return a.wrong + b.wrong != 0;
}
