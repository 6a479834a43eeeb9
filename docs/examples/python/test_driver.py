"""test_driver: a driver in Python, and tests of it against the simulated device of docs/examples/driver.

pytest runs it; so does python3 alone. DEVICE names the library, build/device.lib unless it is set.
"""
import os

import numpy

import kbsim

DEVICE = kbsim.load(os.environ.get("DEVICE", "build/device.lib"))
X_VA, Y_VA, PAGE = 0x10000000, 0x20000000, 64 * 1024    # as square.h and device.yaml have them
US = 1_000_000                                          # in picoseconds


class Driver:
    """Squares arrays of two axes on a device, which each test has anew."""

    def __init__(self, sim):
        self.sim = sim

    def move(self, call, tensor, data):
        """Moves a tensor over PCIe by sim.write or sim.read: each PE's rows are one run of bytes."""
        shards = tensor.shards()
        for (address, _), rows in zip(shards, numpy.split(data, len(shards))):
            assert self.sim.wait(call(address, rows))["outcome"] == "ok"

    def map(self, tensor, va):
        shards = tensor.shards()
        self.sim.wait(self.sim.map(va, [address for address, _ in shards], pages=-(-shards[0][1] // PAGE)))

    def square(self, data, maps_result=True, timeout_ps=1000 * US):
        """Returns the result of the launch, and the squares if it is good."""
        x, y = (self.sim.tensor(name, data.shape, data.dtype) for name in "xy")
        self.move(self.sim.write, x, data)
        self.map(x, X_VA)
        if maps_result:
            self.map(y, Y_VA)
        result = self.sim.wait(self.sim.launch("square", [x, y], timeout_ps=timeout_ps))
        squares = numpy.empty_like(data)
        if result["outcome"] == "ok":
            self.move(self.sim.read, y, squares)
        return result, squares


def some_data():
    return numpy.arange(64 * 1024, dtype=numpy.float32).reshape(64, 1024) % 1000 - 500


def test_squares_are_exact():
    with DEVICE.create() as sim:
        result, squares = Driver(sim).square(some_data())
        assert result["outcome"] == "ok" and 1 * US < result["done_ps"] - result["submitted_ps"] < 100 * US
        assert (squares == some_data() ** 2).all()


def test_a_forgotten_page_is_a_fault_and_a_reset_helps():
    lines = []
    with DEVICE.create(log=lines.append) as sim:
        result, _ = Driver(sim).square(some_data(), maps_result=False)
        assert (result["outcome"], result["failure"]) == ("failed", "PAGE_FAULT")
        assert result["failure_node"] == "sip0.cube0.pe0.pe_mmu" and "0x20000000 is unmapped" in lines[0]
        sim.reset()
        result, squares = Driver(sim).square(some_data())
        assert result["outcome"] == "ok" and (squares == some_data() ** 2).all()


def test_a_failed_pe_starts_nothing_before_a_reset():
    with DEVICE.create() as sim:
        Driver(sim).square(some_data(), maps_result=False)
        try:
            sim.program()
            assert False, "it starts"
        except kbsim.Error as error:
            assert error.status == "KB_WRONG" and "starts nothing until kb_sim_reset" in error.text


def test_a_slow_kernel_times_out():
    with DEVICE.create() as sim:
        result, _ = Driver(sim).square(some_data(), timeout_ps=2 * US)
        assert result["outcome"] == "timeout" and result["done_ps"] >= result["submitted_ps"] + 2 * US


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("ok", name)
