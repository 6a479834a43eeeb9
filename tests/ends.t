#!/usr/bin/python3
"""ends: however a kernel or a bench ends, the run ends in order: a message with its place, a complete result, a status.

limit: 200
"""
import json
import os
import re
import signal
import subprocess

from harness import ROOT, SAN, ok, read, remove, run, scratch, simulator, small_machine, suite, topology
from harness import wait_until

SOURCE = os.path.join(ROOT, "tests", "ends", "ends.c")


def line_of(text):
    """The place of the last line of ends.c that has a text, as a regular expression."""
    number = max(number for number, line in enumerate(read(SOURCE).splitlines(), 1) if text in line)
    return rf"\S*ends\.c:{number}\b"


def end(program, *words, timeout=60, **options):
    """A run and its result; {} if there is none."""
    path = scratch("end.json")
    remove(path)
    ended = run(program, "run", *words, "--json", path, timeout=timeout, **options)
    return ended, json.loads(read(path) or "{}")


# ---- what a kernel or bench does to the process

CALLS = {"exit": r"it called exit\(0\)", "_exit": r"it called _exit\(0\)", "_Exit": r"it called _Exit\(0\)",
         "quick_exit": r"it called quick_exit\(0\)", "exit_7": r"it called exit\(7\)",
         "pthread_exit": r"it called pthread_exit\(0\)"}
SIGNALS = {"abort": "SIGABRT: abort", "assert": r"SIGABRT: abort\(\), a failed assert", "raise_abort": "SIGABRT",
           "raise": "SIGSEGV, which the program has raised itself", "free": "SIGABRT: .*free", "segv": "SIGSEGV at "
           "address 0x10", "overflow": "stack of [0-9]+ KiB.* is full"}


def process(program):
    for what, said in (CALLS if SAN else CALLS | SIGNALS).items():
        ended, result = end(program, "ends", f"what={what}")
        launch = result.get("launches", [{}])[0]
        states = [pe["status"] for pe in launch.get("pes", [])]
        code = "STACK_OVERFLOW" if what == "overflow" else "KERNEL_ERROR"
        place = rf"; its last call is tl_alloc, at {line_of('tl_alloc(tl, KB_f16, 1, 8)')}\n"
        ok(ended.returncode == 1 and re.search(rf"fault: {code} at sip0\.cube0\.pe1\.pe_cpu, \d+ ps, .*{said}.*{place}",
                                               ended.stderr),
           f"a kernel that ends by {what} is a fault with its PE, time and last call", ended.said)
        ok(states == ["ok", "failed", "ok", "ok"] and launch["failure"]["code"] == code and "host" in result,
           f"a kernel that ends by {what} leaves a complete result, and the other PEs go on", ended.said, result)
        ended, result = end(program, "bench_ends", f"what={what}")
        place = rf"; its last call is kb_wait, at {line_of('kb_wait(kb_launch(ends, all, &(struct ends_args){a}));')}"
        ok(ended.returncode == 1 and re.search(rf"fault: bench bench_ends, \d+ ps: .*{said}.*{place}", ended.stderr)
           and re.search(said, result.get("fault", "")) and result["launches"][0]["status"] == "ok",
           f"a bench that ends by {what} is a fault with its last call, and the result is complete", ended.said)


def strays(program):
    for what in ("tl_load", "tl_delay", "tl_fail", "tl_alloc"):
        ended, result = end(program, "ends", f"what={what}")
        place = line_of(f'if (is("{what}")) {what}(first_tl')
        ok(ended.returncode == 1 and result.get("launches") and re.search(
            rf"KERNEL_ERROR at sip0\.cube0\.pe1\.pe_cpu, .*{what}: tl is that of another kernel or PE.*\n"
            rf"  called at {place}", ended.stderr),
           f"{what} with the tl of another PE is a fault of the PE that calls it", ended.said)
    for what, victim in (("jump_kernel", r"KERNEL_ERROR at sip0\.cube0\.pe0\.pe_cpu"),
                         ("jump_bench", "the host program of rank 0"), ("jump_wait", "the host program of rank 0")):
        ended, result = end(program, "ends", f"what={what}")
        ok(ended.returncode == 1 and result.get("launches")
           and re.search(r"fault: KERNEL_ERROR at sip0\.cube0\.pe1\.pe_cpu, ", ended.stderr)
           and re.search(rf"fault: {victim}\b.*longjmp", ended.stderr),
           f"a kernel that jumps to another stack is a fault, as is whose stack it was: {what}", ended.said)
    ended, _ = end(program, "bench_ends", "what=tl_delay")
    ok(ended.returncode == 2 and "tl_delay: it is for kernels" in ended.stderr,
       "a device call of a bench is refused", ended.said)


def children(program):
    for what in ("fork", "fork_exit", "fork_abort", "fork_exec"):
        ended, result = end(program, "ends", f"what={what}")
        ok(ended.returncode == 0 and ended.stdout.count("simulated\n") == 1 and len(result["launches"]) == 1
           and not ended.stderr,
           f"a run whose kernels fork reports once: {what}", ended.said)
        trace = scratch("fork.jsonl")
        run(program, "run", "ends", f"what={what}", "--trace", trace)
        lines = read(trace).splitlines()
        ok(lines and len(set(lines)) == len(lines), f"a child process writes nothing into the trace: {what}",
           f"{len(lines)} lines, {len(set(lines))} different ones")


def from_outside(program):
    process = subprocess.Popen([program, "run", "ends", "what=loop"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    busy = wait_until(lambda: int(read(f"/proc/{process.pid}/stat").split()[13]) > 0.3 * os.sysconf("SC_CLK_TCK"))
    process.send_signal(signal.SIGSEGV)
    status = process.wait(60)
    ok(busy and status == -signal.SIGSEGV, "a signal of another process is no fault of the kernel that runs", status)


# ---- messages

def grouped():
    """Two mistakes on 128 PEs."""
    program = simulator(topology("ref_sip"), "ref_sip", [SOURCE])
    ended, result = end(program, "fails")
    faults = [line for line in ended.stderr.splitlines() if line.startswith("fault: ")]
    ok(ended.returncode == 1 and len(result["launches"][0]["pes"]) == 128 and len(faults) == 4,
       "two mistakes on 64 PEs each are told in four lines", ended.said)
    ok(any(re.match(r"fault: KERNEL_ERROR at sip0\.cube0\.pe1\.pe_cpu, .* on number 1$", line) for line in faults)
       and any(re.match(r"fault: KERNEL_ERROR of kernel fails as at sip0\.cube0\.pe1\.pe_cpu, on 63 more PEs; the last "
                        r"one is sip0\.cube15\.pe7\.pe_cpu, \d+ ps$", line) for line in faults),
       "equal faults are one message with the first PE, how many more there are, and the last", ended.said)


def main():
    program = small_machine("ends", [SOURCE])
    process(program)
    strays(program)
    children(program)
    if not SAN:
        from_outside(program)
    grouped()


suite(main)
