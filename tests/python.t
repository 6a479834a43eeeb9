#!/usr/bin/python3
"""python: rt/embed/kbsim.py, the module for libraries: results, arrays in place, callbacks, wrong use; the example of
docs/examples/python. plain build only, limit: 60
"""
import array
import ast
import gc
import json
import os
import re
import sys
import threading
from random import Random

from harness import KBGEN, ROOT, ok, read, run, scratch, simulator, skip, suite, write

sys.dont_write_bytecode = True
sys.path.insert(1, os.path.join(ROOT, "rt", "embed"))
import kbsim                                            # noqa: E402  pylint: disable=wrong-import-position
try:
    import numpy
except ImportError:
    numpy = None

EXAMPLE = os.path.join(ROOT, "docs", "examples", "python")
DRIVER = os.path.join(ROOT, "docs", "examples", "driver")
MODULE = os.path.join(ROOT, "rt", "embed", "kbsim.py")
DEVICE = os.path.join(DRIVER, "device.yaml"), "-k", os.path.join(DRIVER, "square.c")
LIBRARY = scratch("device.lib")
FAILS = """#include <kb/host.h>
struct nothing { int unused; };
KB_KERNEL(stops, struct nothing) { (void)arg; tl_fail(tl, 1, "on purpose"); }
KB_BENCH(fails, "a kernel that fails", KB_INT(n, 1, 1, 2, "a number"))
{
    kb_wait(kb_launch(stops, kb_pes("*"), &(struct nothing){0}));
}
"""
GEMM = {"m": 64, "n": 64, "k": 64}
HBM, HBM1, SRAM = 0, 1 << 56, 137438953472              # of PE 0 and PE 1, and the cube's
STREAM = {"launches": [{"program": "a", "targets": ["*"]}],
          "programs": {"a": [{"do": "load", "id": "x", "from": {"space": "hbm"}, "to": 0x200000, "bytes": 4096},
                             {"do": "wait", "for": ["x"]}, {"do": "delay", "ns": 5}]}}


def make(*words):
    made = run(KBGEN, *DEVICE, "-k", write(scratch("fails.c"), FAILS), "--emit", "lib", "-o", LIBRARY, *words)
    ok(made.returncode == 0, "kbgen makes the library of the device", made.said)
    return kbsim.load(LIBRARY)


def raises(name, kind, pattern, function):
    """Checks that a call raises this exception, with a text that has a part like the pattern."""
    try:
        got = function()
    except Exception as why:                            # pylint: disable=broad-except; any other one is the diagnostic
        ok(type(why) is kind and re.search(pattern, str(why)), name, f"{type(why).__name__}: {why}")
        return why
    ok(False, name, f"it returns {got!r}")
    return None


def squared(sim, data):
    """Squares a whole array of f32 as the driver does; returns the launch's result and the tensor."""
    tensors = [sim.tensor(name, data.shape, "f32") for name in "xy"]
    tensors[0].set(data)
    for tensor, va in zip(tensors, (0x10000000, 0x20000000)):
        sim.wait(sim.map(va, [address for address, _ in tensor.shards()], pages=2))
    return sim.wait(sim.launch("square", tensors)), tensors[1]


# ---- what the module says of kb/sim.h

def interface():
    """Layouts, words and calls are those of the header's version."""
    layout = dict(line.split(" ", 1) for line in read(os.path.join(ROOT, "tests", "embed", f"abi_{kbsim.ABI}.txt")).splitlines())
    fields = {f"{struct}.{name}": f"{getattr(kind, name).offset} {getattr(kind, name).size}"
              for struct, kind in kbsim.STRUCTS.items() for name, _ in kind._fields_}
    wanted = {name: place for name, place in layout.items() if "." in name}
    extra = {name for name in fields if name not in wanted and not name.endswith((".struct_size", ".reserved"))}
    ok(len(wanted) > 40 and wanted.items() <= fields.items() and not extra, "the structs are those of the library",
       *sorted(wanted.items() - fields.items()), *extra)
    words = {word: i for i, word in enumerate(kbsim.STATUSES)} | {"KB_STOP_" + word.upper(): number for word, number in kbsim.STOPS.items()}
    for prefix, names in (("", kbsim.OUTCOMES), ("", kbsim.KINDS), ("START_", kbsim.STARTS)):
        words |= {f"KB_SIM_{prefix}{word.upper()}": i for i, word in enumerate(names)}
    numbers = {name: int(value) for name, value in layout.items() if "." not in name and "DATA" not in name}
    ok(words == numbers, "the words are its enumerators", words.items() ^ numbers.items())
    header, host, kb = (read(os.path.join(ROOT, "rt", "kb", name)) for name in ("sim.h", "host.h", "dtypes.def"))
    calls = set(re.findall(r"^enum kb_status kb_sim_(\w+)\(", header, re.M))
    ok(calls == set(kbsim._CALLS) | {"create"}, "the calls are its calls", calls ^ set(kbsim._CALLS))
    ok(f"#define KB_ABI_VERSION {kbsim.ABI}\n" in header, "and its version is that of the module")
    for family, names in (("space", kbsim.SPACES), ("split", kbsim.SPLITS)):
        found = re.search(rf"enum kb_{family} {{ (.*?) }};", host)[1]
        ok(found == ", ".join("KB_" + word.upper() for word in names), f"each {family} is that of kb/host.h", found)
    dtypes = [(name, int(size)) for name, size in re.findall(r"^DTYPE\((\w+), (\d)", kb, re.M)]
    ok(dtypes == [(name, array.array(kind if kind != "e" else "h").itemsize) for name, (_, kind) in kbsim.DTYPES.items()],
       "dtypes are those of kb/dtypes.def", dtypes)
    ast.parse(read(MODULE), feature_version=(3, 9))


# ---- without NumPy

def results(machine):
    path = scratch("result.json")
    ended = run(simulator(DEVICE[0], "device", [DEVICE[2]]), "run", "gemm", "m=64", "n=64", "k=64", "--seed", "3", "--json", path)
    wanted = json.loads(read(path))
    with machine.create(seed=3) as sim:
        got = sim.run_bench("gemm", **GEMM)
        stats = sim.stats()
        ok(sim.stat("end_ps") == got["end_ps"] == stats["end_ps"] and len(stats) > 100, "numbers of a result have their paths")
    for one in got, wanted:
        one.pop("host")
    ok(ended.returncode == 0 and got == wanted, "a bench gives the dict of the simulator's JSON", str(got)[:300])
    ok(machine.run("gemm", **GEMM)["end_ps"] == got["end_ps"], "run does so on an instance of its own")
    slow = machine.create(set={"cube.pe_template.components.pe_gemm.attrs.clock_ghz": 0.25}).run_bench("gemm", **GEMM)
    ok(slow["end_ps"] > got["end_ps"], "set replaces a number of the machine", slow["end_ps"])
    ok(machine.memories["sip0.cube0.sram"]["address"] == SRAM and machine.pes == ["sip0.cube0.pe0", "sip0.cube0.pe1"]
       and "square" in str(machine.describe()["kernels"]), "a machine is described", machine.describe().keys())


def requests(machine):
    """Streams, programs, time."""
    told, lines, events = [], [], []
    with machine.create(completed=told.append, log=lines.append) as sim:
        ok(sim.now_ps == 0 and sim.next_ps is None, "a new instance is at time 0, and nothing is due")
        sim.trace(events)
        stream = sim.wait(sim.replay(STREAM))
        ok((stream["kind"], stream["outcome"]) == ("stream", "ok") and told == [stream], "a stream of dicts is replayed, and told of", told)
        count = len(events)
        ok(count > 3 and all("t" in event for event in events), "a list gets the events of the trace", events[:2])
        sim.trace(None)
        begin = sim.now_ps
        program = sim.program(pes="sip0.cube0.pe1", name="mine")
        for step in STREAM["programs"]["a"]:
            sim.command(program, 1, step)
        raises("a program that is not ended is waited for in vain", kbsim.Error, "nothing is due", lambda: sim.wait(program))
        sim.program_end(program)
        done = sim.wait(program)
        pes = sim.poll_pes(program)
        ok(done["outcome"] == "ok" and done["submitted_ps"] == begin and [one["pe"] for one in pes] == [1] and pes[0]["dma_ps"] > 0,
           "a program takes its commands one at a time", done, pes)
        ok(len(events) == count, "a trace that is stopped gets nothing more")
        request = sim.write(SRAM, 4096)
        due = sim.next_ps
        early = sim.run(until_ps=due)
        ok(early["now_ps"] == due > begin and early["reason"] == "until" and sim.poll(request)["done_ps"] is None and sim.poll(request)["outcome"] == "running",
           "time passes up to an instant", early)
        late = sim.run(stop=["completed", "fault"])
        ok((late["reason"], late["request"], sim.now_ps) == ("completed", request, late["now_ps"]), "or to a completion", late)
        sim.wait(sim.write(SRAM + (1 << 36), 64))
        ok(sim.poll(request + 1)["failure"] == "BAD_ADDRESS" and "BAD_ADDRESS" in lines[0],
           "a fault is a result, and a line of the log", sim.poll(request + 1), lines)
        short, long = sim.write(HBM, 64), sim.write(SRAM, 1 << 20)
        first = sim.wait(short)
        ok(sim.now_ps == first["done_ps"] and sim.poll(long)["outcome"] == "running", "a request is waited for, and no other", first)
        ok(sim.result()["end_ps"] == sim.stat("end_ps"), "the result is there at any time")


def memory(machine):
    """Buffers of Python itself."""
    with machine.create() as sim:
        sim.poke(SRAM, b"12345678")
        out = bytearray(8)
        ok(sim.peek(SRAM, out) is out and out == b"12345678" == sim.peek(SRAM, 8), "bytes go into memory and back")
        sim.wait(sim.write([HBM, HBM1], array.array("i", [7, 8])))
        back = array.array("i", [0, 0])
        sim.wait(sim.read([HBM1, HBM], back))
        ok(list(back) == [8, 7] and sim.peek(HBM1, 4) == bytes(array.array("i", [8])),
           "a write and a read have an equal part for each address", back)
        inner = bytearray(12)
        sim.peek(SRAM, memoryview(inner)[2:10])
        ok(inner == b"\0\0" + b"12345678" + b"\0\0", "a part of a buffer is filled in place", inner)
        held = memoryview(inner)
        held.release()
        inner.extend(b"x")
        ok(len(inner) == 13, "a buffer is free after the call")


def wrong_calls(machine):
    sim, other = machine.create(), machine.create()
    x = sim.tensor("x", (4, 8), "f32")
    error = kbsim.Error
    for name, kind, pattern, function in (
            ("an unknown bench", error, "^KB_WRONG: kb_sim_run_bench: .*gemmm", lambda: machine.run("gemmm")),
            ("a parameter out of range", error, "^KB_WRONG: .*m", lambda: machine.run("gemm", m=0)),
            ("an unknown key", error, "unknown key 'foo'", lambda: machine.create(set={"cube.foo": 1})),
            ("a negative seed", OverflowError, "seed is -1", lambda: machine.create(seed=-1)),
            ("a seed that is too large", OverflowError, r"2\^64", lambda: machine.create(seed=2 ** 64)),
            ("a fraction of a picosecond", TypeError, "until_ps is a whole number, not float", lambda: sim.run(1.5)),
            ("a log that is no function", TypeError, "log is a function, not list", lambda: machine.create(log=[])),
            ("a visitor that is no function", TypeError, "visitor is a function or a list", lambda: sim.trace(3)),
            ("an unknown reason to stop", ValueError, "stop is one of until, ", lambda: sim.run(stop="soon")),
            ("a request that there is not", error, "there is no request 9", lambda: sim.poll(9)),
            ("an unknown kernel", error, "no kernel 'cube'", lambda: sim.launch("cube")),
            ("a kernel's name with a NUL", ValueError, "NUL", lambda: sim.launch("square\0")),
            ("arguments that are too few", error, "16 bytes, not 8", lambda: sim.launch("square", [x])),
            ("a number without a C type", TypeError, "c_uint32", lambda: sim.launch("square", [x, 5])),
            ("a tensor of another instance", ValueError, "'x' is of another instance", lambda: other.launch("square", [x, x])),
            ("a PE by a wrong name", ValueError, "no PE 'sip9'", lambda: sim.program("sip9")),
            ("a PE by a wrong number", error, "there is no number 2", lambda: sim.program([0, 2])),
            ("a PE twice", error, "given twice", lambda: sim.program([0, 0])),
            ("no PE", error, "there is no PE", lambda: sim.program([])),
            ("a stream that is none", error, "programs", lambda: sim.replay({"launches": []})),
            ("addresses that are too few", ValueError, "1 addresses for 2 PEs", lambda: sim.map(0, [0])),
            ("bytes that are not equal parts", ValueError, "3 bytes are not equal parts for 2", lambda: sim.write([0, 64], b"abc")),
            ("a poke beyond a memory", error, "bytes at", lambda: sim.poke(SRAM + (4 << 20) - 1, b"ab")),
            ("no bytes", error, "there are no bytes", lambda: sim.poke(SRAM, b"")),
            ("a str as bytes", TypeError, "not str", lambda: sim.poke(SRAM, "text")),
            ("a list as bytes", TypeError, "not list", lambda: sim.poke(SRAM, [1, 2])),
            ("a peek into bytes", ValueError, "read-only", lambda: sim.peek(SRAM, b"1234")),
            ("a part with gaps", ValueError, "not C-contiguous", lambda: sim.peek(SRAM, memoryview(bytearray(8))[::2])),
            ("elements of another dtype", TypeError, "f32 is numpy.float32, not d", lambda: x.set(array.array("d", [0] * 32))),
            ("elements of another shape", ValueError, r"shape is \(4, 8\), not \(32,\)", lambda: x.set(array.array("f", [0] * 32))),
            ("bytes of another length", error, "128 bytes, not 3", lambda: x.set(b"abc")),
            ("an unknown dtype", ValueError, "dtype is one of f32, ", lambda: sim.tensor("y", (4,), "f64")),
            ("a tensor of five axes", ValueError, "at most 4 axes", lambda: sim.tensor("y", (1,) * 5, "f32")),
            ("a tensor that is too large", error, "no room for tensor 'y'", lambda: sim.tensor("y", (1 << 40, 4), "f32")),
            ("a number that there is not", error, "no number 'end'", lambda: sim.stat("end")),
            ("a file that is no library", OSError, "invalid ELF header", lambda: kbsim.load(MODULE)),
            ("a folder that is no library", FileNotFoundError, r"no lib\*.so", lambda: kbsim.load(EXAMPLE)),
            ("a library of something else", error, "is not a library of kbgen", lambda: kbsim.load(libc()))):
        raises(f"{name} is an exception that says so", kind, pattern, function)
    ok(sim.now_ps == 0 and sim.wait(sim.write(SRAM, b"1"))["outcome"] == "ok", "the instance goes on after wrong calls")
    raises("time does not go back", error, "cannot go back", lambda: sim.run(until_ps=1))
    sim.reset()
    raises("a tensor ends with a reset", ValueError, "before the instance was reset", x.shards)
    sim.destroy()
    for name, function in (("a call", lambda: sim.now_ps), ("another destruction", sim.destroy), ("a tensor's call", lambda: x.set(bytes(128)))):
        raises(f"{name} of a destroyed instance is an exception", *((ValueError, "reset") if "tensor" in name else (error, "is destroyed")), function)
    other.destroy()


def libc():
    """The path of a library that is loaded in this process."""
    return re.search(r"\S*/libc\.so\.6", read("/proc/self/maps"))[0]


def failures(machine):
    """What callbacks raise, and benches that fail."""
    def busy(_):
        held.append(sim.now_ps)
    held = []
    with machine.create(completed=busy) as sim:
        request = sim.write(SRAM, 64)
        why = raises("a call from a callback is refused", kbsim.Error, "KB_BUSY", lambda: sim.wait(request))
        ok(why and why.status == "KB_BUSY" and not held and sim.poll(request)["outcome"] == "ok", "the work of the interrupted call is done")
    with machine.create() as sim:
        sim.trace(lambda event: sim.trace(None))
        raises("a visitor cannot replace itself", kbsim.Error, "KB_BUSY", lambda: sim.wait(sim.replay(STREAM)))
    with machine.create() as sim:
        sim.trace(lambda event: event["no such key"])
        raises("an exception of a callback is raised by the call", KeyError, "no such key", lambda: sim.wait(sim.replay(STREAM)))
    why = raises("a bench that fails is an exception", kbsim.RunFailed, "KB_RUN_FAILED: kb_sim_run_bench: ", lambda: machine.run("fails", n=2))
    ok(why and why.result["bench"] == "fails" and why.result["launches"][0]["status"] == "failed", "which has its result", why and why.result)
    with machine.create(memory_bytes=3 << 20) as sim:
        why = raises("a limit of memory is an exception", kbsim.Error, "KB_NO_MEMORY", lambda: sim.run_bench("gemm", m=8192, n=4096, k=64))
        if why:
            raises("an instance that has ended says so", kbsim.Error, "KB_ENDED", lambda: sim.run(1))
            sim.reset()
            ok(sim.now_ps == 0, "a reset makes it new")


def lifetime(machine):
    """Instances on threads, and those that nobody destroys."""
    found = []
    threads = [threading.Thread(target=lambda: found.append(machine.run("gemm", **GEMM)["end_ps"])) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    ok(len(found) == 4 and len(set(found)) == 1, "instances run on several threads", found)
    gc.disable()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        machine.create(log=print, completed=print).trace(found)
    ok(len(os.listdir("/proc/self/fd")) == before, "an instance without a name left is freed at once")
    gc.enable()


def made_anew(machine):
    end = machine.run("gemm", **GEMM)["end_ps"]
    ok(kbsim.load(LIBRARY)._library is machine._library, "a library is loaded once")
    new = make("--set", "system.host.overhead_ns=70000")
    ok(new.hash != machine.hash and new.run("gemm", **GEMM)["end_ps"] > end, "a library that was made anew is loaded anew")
    ok(machine.run("gemm", **GEMM)["end_ps"] == end, "the machine of the old one goes on")


def without_numpy():
    code = ("import sys; sys.modules['numpy'] = None; import kbsim\nwith kbsim.load(sys.argv[1]).create() as sim:\n"
            "    x = sim.tensor('x', (4, 8), 'i8')\n    x.set(bytes(range(32)))\n    print(x.get(bytearray(32)) == bytes(range(32)))")
    ended = run(sys.executable, "-c", code, LIBRARY, env=os.environ | {"PYTHONPATH": os.path.dirname(MODULE), "PYTHONDONTWRITEBYTECODE": "1"})
    ok(ended.stdout == "True\n", "the module needs no NumPy", ended.said)


def launched(sim, data):
    """What squared does up to its launch: the request, and the tensors."""
    tensors = [sim.tensor(name, (64, 1024), "f32") for name in "xy"]
    tensors[0].set(data)
    for tensor, va in zip(tensors, (0x10000000, 0x20000000)):
        sim.wait(sim.map(va, [address for address, _ in tensor.shards()], pages=2))
    return sim.launch("square", tensors), tensors


def states(machine):
    """A kernel in flight, its data and its faults: what follows a restored state is what follows without."""
    data = array.array("f", (i % 1000 for i in range(64 * 1024))).tobytes()
    with machine.create() as sim:
        request, tensors = launched(sim, data)
        wanted = sim.wait(request), sim.result(), tensors[1].get(bytearray(len(data)))
    random, lost, states_saved = Random(3), None, 0
    with machine.create() as sim, machine.create() as other:
        request, tensors = launched(sim, data)
        while sim.poll(request)["outcome"] == "running":
            sim.run(sim.now_ps + random.randrange(60_000))
            state, t_ps = sim.save(), sim.now_ps
            lost = sim.tensor("lost", (4,), "f32")
            if random.randrange(2):
                sim.poke(tensors[0].shards()[0][0], bytes(4096))
                sim.wait(request)
                tensors[1].get(bytearray(len(data)))
            else:
                sim.unmap(0x20000000, pages=2)
                sim.run()
            sim.restore(state)
            states_saved += 1
            if sim.now_ps != t_ps:
                break
        got = sim.poll(request), sim.result(), tensors[1].get(bytearray(len(data)))
        ok(states_saved > 100 and got == wanted, "states of a kernel in flight are restored: data, time and result are the same",
           states_saved, str(got[:1]), str(wanted[:1]))
        raises("a tensor that was made after the state has ended", ValueError, "'lost' was made before .* restored", lost.shards)
        raises("bytes are no state", TypeError, "a State is needed, not bytes", lambda: sim.restore(bytes(state.buffer)))
        raises("nor is the state of another instance", kbsim.Error, "of another instance", lambda: other.restore(state))


# ---- with NumPy

def arrays(machine):
    if not numpy:
        return skip("arrays of NumPy are used in place", "there is no NumPy")
    data = (numpy.arange(64 * 1024, dtype=numpy.float32) % 1000).reshape(64, 1024)
    with machine.create() as sim:
        result, y = squared(sim, data)
        got = y.get()
        ok(result["outcome"] == "ok" and got.dtype == numpy.float32 and (got == data * data).all(), "a kernel computes with arrays", result)
        out = numpy.zeros((3, 64, 1024), numpy.float32)
        ok(y.get(out[1]).base is out and (out[1] == got).all() and not out[0].any() and not out[2].any(), "a view of an array is filled in place")
        half = numpy.array(numpy.arange(16), numpy.float16)
        sim.poke(SRAM, half)
        ok((sim.peek(SRAM, numpy.empty_like(half)) == half).all(), "a poke and a peek take arrays of any dtype")
        try:
            three = sim.peek(SRAM, numpy.int64(3))
        except (TypeError, ValueError, kbsim.Error) as why:
            three = why
        ok(three == half.tobytes()[:3], "a number of NumPy is a number of bytes", three)
        for dtype, (name, _) in kbsim.DTYPES.items():
            tensor, some = sim.tensor("t", (4, 6), dtype), numpy.arange(24).reshape(4, 6).astype(name)
            tensor.set(some)
            again = tensor.get()
            ok(again.dtype == some.dtype and (again == some).all(), f"elements of {dtype} come back as they were")
        frozen, x = got.copy(), sim.tensor("z", (64, 1024), "f32")
        frozen.flags.writeable = False
        x.set(frozen)
        ok((x.get() == got).all(), "a read-only array can be set from")
        for name, kind, pattern, function in (
                ("a read-only array", ValueError, "read-only", lambda: x.get(frozen)),
                ("a transposed array", ValueError, "not C-contiguous", lambda: x.set(numpy.zeros((1024, 64), "f4").T)),
                ("every other row", ValueError, "not C-contiguous", lambda: x.set(numpy.zeros((128, 1024), "f4")[::2])),
                ("an array of f64", TypeError, "f32 is numpy.float32, not float64", lambda: x.set(numpy.zeros((64, 1024)))),
                ("an array of big-endian f32", TypeError, "not >f4", lambda: x.set(numpy.zeros((64, 1024), ">f4"))),
                ("a tensor of uint16, which is no dtype", ValueError, "not 'uint16'", lambda: sim.tensor("u", (4,), numpy.uint16)),
                ("an array as a dtype", ValueError, "dtype is one of f32, ", lambda: sim.tensor("u", (4,), numpy.zeros(2))),
                ("an array of another shape", ValueError, r"shape is \(64, 1024\), not \(64,\)", lambda: x.set(numpy.zeros(64, "f4"))),
                ("an array of objects", TypeError, "Python objects", lambda: sim.poke(SRAM, numpy.array([None, 1]))),
                ("a read into a read-only array", ValueError, "read-only", lambda: sim.read(HBM, frozen))):
            raises(f"{name} is an exception that says so", kind, pattern, function)
    return None


def example():
    """The example's tests, and its notebook as a script."""
    if not numpy:
        return skip("the example of docs/examples/python", "there is no NumPy")
    env = os.environ | {"PYTHONPATH": os.path.dirname(MODULE), "DEVICE": LIBRARY, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = run(sys.executable, os.path.join(EXAMPLE, "test_driver.py"), env=env)
    names = re.findall(r"^def (test_\w+)", read(os.path.join(EXAMPLE, "test_driver.py")), re.M)
    ok(ended.returncode == 0 and ended.stdout.split() == [word for name in names for word in ("ok", name)] and len(names) > 3,
       "the tests of the driver in Python pass", ended.said)
    page = re.search(r"^```python\n(.*?)^```$", read(os.path.join(ROOT, "docs", "embedding.md")), re.M | re.S)[1]
    ended = run(sys.executable, "-c", page.replace('"build/device.lib"', repr(LIBRARY)), env=env)
    ok(ended.returncode == 0 and re.fullmatch(r"65536\.0 \d+\n", ended.stdout), "the example of docs/embedding.md runs", ended.said)
    notebook = json.loads(read(os.path.join(EXAMPLE, "bringup.ipynb")))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    ok(notebook["nbformat"] == 4 and cells and not any(cell["outputs"] or cell["execution_count"] for cell in cells),
       "the notebook has cells, and no outputs")
    ended = run(sys.executable, "-c", "\n".join("".join(cell["source"]) for cell in cells), env=env)
    said = re.search(r"write: (\d+) ns, then ([\d.]+) GB/s\ngemm at 1 GHz: ([\d.]+) us, data (\w+)\ngemm at 2 GHz: ([\d.]+) us, data (\w+)\n"
                     r"square: ok, [\d.]+ us, 0 elements are wrong\n\{.*'engine_start': \d+", ended.stdout)
    ok(ended.returncode == 0 and said and float(said[5]) < float(said[3]) and said[4] == said[6] == "ok",
       "the cells of the notebook run one after the other", ended.said)
    return None


DEVICE_MACHINE = make()
suite(interface, *((lambda part=part: part(DEVICE_MACHINE)) for part in (results, requests, memory, wrong_calls, failures, lifetime, states, arrays)),
      without_numpy, example, lambda: made_anew(DEVICE_MACHINE))
