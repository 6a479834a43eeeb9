// refused.cpp: an initiator in SystemC whose requests are wrong, and then one that is right.
#include <cstdio>

#include <systemc>
#include <tlm_utils/simple_initiator_socket.h>

#include <device_tlm.hpp>

struct initiator : sc_core::sc_module {
    tlm_utils::simple_initiator_socket<initiator> socket;

    explicit initiator(sc_core::sc_module_name name) : sc_module(name), socket("socket")
    {
        SC_HAS_PROCESS(initiator);
        SC_THREAD(work);
    }

    void write(const char *what, std::uint64_t address, unsigned bytes)
    {
        unsigned char data[64] = {};
        tlm::tlm_generic_payload payload;
        sc_core::sc_time delay;
        payload.set_command(tlm::TLM_WRITE_COMMAND);
        payload.set_address(address);
        payload.set_data_ptr(data);
        payload.set_data_length(bytes);
        payload.set_streaming_width(bytes);
        socket->b_transport(payload, delay);
        std::printf("%s: %s\n", what, payload.get_response_string().c_str());
    }

    void work()
    {
        write("no such sip", 0xff000000000000, 64);
        write("no memory", 0xfffffffff0, 64);
        write("no bytes", DEVICE_SIP0_CUBE0_HBM_CTRL_PE0, 0);
        write("memory", DEVICE_SIP0_CUBE0_HBM_CTRL_PE0, 64);
    }
};

int sc_main(int, char **)
{
    device_tlm device("device");
    initiator one("one");
    one.socket.bind(device.target[0]);
    sc_core::sc_start();
    return 0;
}
