#!/usr/bin/python3
"""examples: the programs of docs/examples run with the tools that they are for, as their pages say.

plain build only, limit: 240
"""
import os
import re
import shutil

from harness import KBGEN, ROOT, folder, ok, read, run, skip, suite

EXAMPLES = os.path.join(ROOT, "docs", "examples")
PAGE = read(os.path.join(ROOT, "docs", "embedding.md"))


def example(name, file):
    return os.path.join(EXAMPLES, name, file)


def library(name, *words):
    """The library of an example's device."""
    path = os.path.join(folder(name), "device.lib")
    made = run(KBGEN, example(name, "device.yaml"), "--emit", "lib", "-o", path, *words)
    ok(made.returncode == 0, f"{name}: kbgen makes the library", made.said)
    return path


def driver():
    """A driver in C: it writes, launches, is told of a page fault, resets the device, does it again and reads."""
    lib = library("driver", "-k", example("driver", "square.c"))
    program = os.path.join(folder("driver"), "driver")
    made = run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", program, example("driver", "driver.c"), f"-I{lib}",
               f"-I{ROOT}/rt", f"-L{lib}", "-ldevice", f"-Wl,-rpath,{lib}")
    ok(made.returncode == 0, "driver: it compiles without warnings", made.said)
    ended = run(program)
    said = [re.sub(r"[\d.]+ us", "T us", line) for line in ended.stdout.splitlines() if line.startswith("driver: ")]
    moves = ["driver: {} 131072 bytes in T us"] * 2
    ok(ended.returncode == 0 and said == [
        *(line.format("wrote") for line in moves), "driver: PAGE_FAULT at sip0.cube0.pe0.pe_mmu, T us",
        "driver: resets the device", *(line.format("wrote") for line in moves),
        "driver: kernel done in T us", *(line.format("read") for line in moves), "driver: 0 of 65536 elements are wrong"],
       "driver: it is told of the fault, resets the device, and gets what it asked for", ended.said)
    ok("\ndevice: fault: PAGE_FAULT at sip0.cube0.pe0.pe_mmu," in ended.stdout, "driver: the device's log says so", ended.said)
    ok(run(program).stdout == ended.stdout, "driver: two runs say the same")
    ok(f"```text\n$ build/driver\n{ended.stdout}```" in PAGE, "driver: docs/embedding.md shows what it prints", ended.said)


def verilator():
    """RTL: the copy there and back is right, and skips cycles without a difference."""
    if not shutil.which("verilator"):
        return skip("verilator: the bench compiles", "there is no verilator")
    lib = library("verilator")
    sources = [example("verilator", name + ".sv") for name in ("dma", "accelerator", "bench")]
    made = run("nice", "verilator", "--binary", "--timing", "-Wno-fatal", "-O0", "--top-module", "bench", "--Mdir", folder("rtl"),
               "-o", "bench", os.path.join(lib, "device_dpi.sv"), *sources, os.path.join(lib, "libdevice.a"), "-CFLAGS", "-O0",
               "-LDFLAGS", "-ldl -lpthread", timeout=200)
    ok(made.returncode == 0, "verilator: the bench compiles", made.said)
    program = os.path.join(folder("rtl"), "bench")
    found, cycles = [], []
    for words in (("+cycles",), ("+every_cycle",)):
        ended = run(program, *words)
        cycles += [int(count) for count in re.findall(r"^(\d+) cycles$", ended.stdout, re.M)]
        found.append([line for line in ended.stdout.splitlines() if re.match(r"\d+ (bytes|of) ", line)])
        ok(ended.returncode == 0 and len(found[-1]) == 3 and found[-1][2].startswith("0 of 16 beats are wrong; ends at "),
           f"verilator: with {words[0]} the RTL gets its bytes back", ended.said)
    ok(found[0] == found[1] and 10 * cycles[0] < cycles[1],
       "verilator: cycles in which nothing happens are left out, and make no difference", found, cycles)
    ok(f"{cycles[0]} of {cycles[1]:,} cycles" in PAGE, "verilator: docs/embedding.md has their number", cycles)
    return None


def systemc():
    """TLM-2.0: the end is the same whatever the quantum is."""
    if not shutil.which("g++") or run("g++", "-E", "-x", "c++", "-include", "systemc", "/dev/null").returncode != 0:
        return skip("systemc: the bench compiles without warnings", "there is no g++ or no SystemC")
    lib = library("systemc")
    program = os.path.join(folder("systemc"), "tlm")
    made = run("nice", "g++", "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-o", program, example("systemc", "bench.cpp"),
               f"-I{lib}", f"-L{lib}", "-ldevice", "-lsystemc", f"-Wl,-rpath,{lib}")
    ok(made.returncode == 0, "systemc: the bench compiles without warnings", made.said)
    ended = {quantum: run(program, quantum) for quantum in ("0", "10", "1000", "100000")}
    lines = {quantum: [line for line in one.stdout.splitlines() if line.startswith("a ends at ")] for quantum, one in ended.items()}
    switches = [int(re.search(r"(\d+) switches", one.stderr)[1]) for one in ended.values()]
    ok(all(one.returncode == 0 for one in ended.values()) and all("; 0 of 16 blocks are wrong" in "".join(one) for one in lines.values())
       and len({tuple(one) for one in lines.values()}) == 1,
       "systemc: both initiators get their bytes, at the same times whatever the quantum is", *(one.said for one in ended.values()))
    ok(sorted(switches, reverse=True) == switches and switches[0] > switches[-1],
       "systemc: a larger quantum needs fewer switches", switches)
    refuses = os.path.join(folder("systemc"), "refused")
    made = run("nice", "g++", "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-o", refuses,
               os.path.join(ROOT, "tests", "embed", "refused.cpp"), f"-I{lib}", f"-L{lib}", "-ldevice", "-lsystemc", f"-Wl,-rpath,{lib}")
    ended = run(refuses)
    ok(made.returncode == 0 and ended.returncode == 0 and ended.stdout.splitlines()[-4:] == [
        "no such sip: TLM_ADDRESS_ERROR_RESPONSE", "no memory: TLM_ADDRESS_ERROR_RESPONSE", "no bytes: TLM_BURST_ERROR_RESPONSE",
        "memory: TLM_OK_RESPONSE"], "systemc: a wrong request of an initiator is its error, and the simulation goes on",
       made.said, ended.said)
    return None


def named():
    """Each example has a page."""
    for name in sorted(os.listdir(EXAMPLES)):
        page = read(os.path.join(EXAMPLES, name, "README.md")) if os.path.isdir(os.path.join(EXAMPLES, name)) else ""
        files = [file for file in os.listdir(os.path.join(EXAMPLES, name)) if file != "README.md"] if page else []
        ok(page.startswith("# ") and files, f"{name}: the example has a page and files")


suite(named, driver, verilator, systemc)
