#!/usr/bin/python3
"""ends: however a kernel or a bench ends, the run ends in order: a message with its place, a complete result, a status.

limit: 200
"""
import json
import os
import re
import select
import signal
import subprocess
import time

from harness import BUILD, CC, ROOT, SAN, SLOW, hold_text, ok, read, remove, run, scratch, simulator, small_machine, suite
from harness import topology, wait_until, write

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
            rf"KERNEL_ERROR at sip0\.cube0\.pe1\.pe_cpu, .*{what}: tl belongs to another kernel or PE.*\n"
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


def names():
    """Two kernels of the library have a function add_partial_sums each; gcc makes one program of all kernels."""
    if SAN or "clang" in CC:
        return
    found = re.findall(r"(?m)^\w+ t (add_partial_sums(?:\.\d+)?)$", run("nm", os.path.join(BUILD, "kernels.o")).stdout)
    ok(len(found) == 2 and "add_partial_sums" in found, "a debugger finds both functions of one name in the library's kernels", *found)


# ---- messages

def grouped():
    """Two mistakes on 128 PEs, and the places where they are."""
    program = simulator(topology("ref_sip"), "ref_sip", [SOURCE])
    ended, result = end(program, "fails")
    faults = [line for line in ended.stderr.splitlines() if line.startswith("fault: ")]
    ok(ended.returncode == 1 and len(result["launches"][0]["pes"]) == 128 and len(faults) == 4,
       "two mistakes on 64 PEs each are told in four lines", ended.said)
    ok(any(re.match(r"fault: KERNEL_ERROR at sip0\.cube0\.pe1\.pe_cpu, .* on number 1$", line) for line in faults)
       and any(re.match(r"fault: KERNEL_ERROR of kernel fails as at sip0\.cube0\.pe1\.pe_cpu, on 63 more PEs; the last "
                        r"one is sip0\.cube15\.pe7\.pe_cpu, \d+ ps$", line) for line in faults),
       "equal faults are one message with the first PE, how many more there are, and the last", ended.said)
    ended, _ = end(program, "scattered", "--sim-limit", "100 us")
    ok(ended.stderr.count("  kernel scattered on 13 PEs, the first is ") == 8 and "  24 more PEs elsewhere\n" in ended.stderr,
       "of the places where kernels are eight are printed, and how many PEs are elsewhere", ended.said)


# ---- limits

def interrupted(result, by, status=1):
    """Whether a result says that it was ended from outside, and is complete up to there."""
    return (result.get("interrupted") is True and result["ended_by"] == by and result["status"] == status
            and list(result)[-1] == "status" and result["launches"][0]["status"] == "running")


def limits(program):
    for what, text in (("loop", "turns++"), ("loop_calls", "tl_free(tl, tl_alloc"), ("loop_heap", "free(malloc"),
                       ("delay", "tl_delay(tl, 1000000)"), ("delay_0", "tl_delay(tl, 0)"), ("loads", "tl_load_async")):
        # loads: their time is short, since they take memory; time that stands still may be found first
        ended, result = end(program, "ends", f"what={what}", "--time-limit", "0.5", "--mem-limit", "2GB")
        place = line_of("tl_alloc(tl, KB_f16, 1, 8)" if what in ("loop", "loop_heap") else text)
        ok(ended.returncode == 1 and re.search(rf"  kernel ends on \d PEs?\b.*sip0\..*; its last call is tl_\w+, at {place}",
                                               ended.stderr),
           f"--time-limit names the kernels that run: {what}", ended.said)
        after_s = re.findall(r"ended by --time-limit after ([\d.]+) s", ended.stderr)
        ok(interrupted(result, "--time-limit") and len(after_s) == 1 and float(after_s[0]) >= 0.5
           and ended.stdout.endswith("\nend          status 1\n"),
           f"--time-limit ends a run in order: {what}", ended.said, result)
    ended, result = end(program, "ends", "what=loops", "--time-limit", "0.5")
    ok(ended.returncode == 1 and ended.stderr.count("is left where it is") == 1 and interrupted(result, "--time-limit"),
       "of four kernels that do not come back one is left where it is, and no other goes on", ended.said)
    ended, result = end(program, "ends", "what=loads", "--mem-limit", "200 MiB", "--data", "off")
    ok(ended.returncode == 1 and interrupted(result, "--mem-limit") and "tl_load_async" in ended.stderr,
       "--mem-limit ends endless loads", ended.said)
    if not SAN:
        with subprocess.Popen([program, "run", "ends", "what=loads", "--mem-limit", "200 MiB", "--data", "off"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            most = os.wait4(process.pid, 0)[2].ru_maxrss
            process.returncode = 1                      # it was waited for
        ok(200 << 10 <= most < 400 << 10, "--mem-limit ends a run soon after it has that much memory", f"{most} KiB")
        ended, result = end(program, "ends", "what=heap", "--mem-limit", "300 MiB")
        ok(ended.returncode == 1 and interrupted(result, "--mem-limit"), "--mem-limit ends a kernel that takes memory",
           ended.said)
    for more in ((), ("--exact-events",), ("--data", "off")):
        ended, result = end(program, "ends", "what=delay", "--sim-limit", "1.5 ms", *more)
        ok(ended.returncode == 1 and interrupted(result, "--sim-limit") and result["end_ps"] == 1500000000,
           f"--sim-limit ends a run at its time {' '.join(more)}", ended.said)
    words = ("gemm", "m=1024", "k=256", "n=512", "tile_m=16", "tile_n=16", "tile_k=16", "--data", "off", "--profile")
    ended, plain = end(program, *words)
    ok(int(re.search(r" (\d+) in skipped periods", ended.stderr)[1]) > 10000, "a run that is limited skips periods", ended.said)
    at = plain["end_ps"]
    for limit, status in ((at, 0), (at - 1, 1), (at // 2, 1)):
        ended, result = end(program, *words, "--sim-limit", f"{limit} ps")
        ok(ended.returncode == status == result["status"] and result["end_ps"] == limit
           and (status or result["launches"] == plain["launches"]),
           f"a run that needs {at} ps has status {status} with --sim-limit {limit} ps", ended.said)
    exact = end(program, *words, "--sim-limit", f"{at // 2} ps", "--exact-events")[1]
    ok(all(result[part] == exact[part] for part in ("launches", "util", "bytes")),
       "a limit within periods that are skipped gives the result of --exact-events", result["util"], exact["util"])
    ended, result = end(program, "bench_ends", "what=loop", "--time-limit", "0.5")
    ok(ended.returncode == 1 and result.get("ended_by") == "--time-limit"
       and re.search(r"the bench does not come back .*; its last call is kb_wait, at \S*ends\.c:\d+", ended.stderr),
       "--time-limit ends a bench that does not come back", ended.said)
    for option, text, why in (("--time-limit", "soon", "a time such as 30 s is needed"), ("--sim-limit", "5", "unit"),
                              ("--time-limit", "0", "must not be 0"), ("--mem-limit", "1 s", "a size such as"),
                              ("--sim-limit", "-1 ns", "a time such as 10 ms is needed")):
        ended = run(program, "run", "ends", option, text)
        ok(ended.returncode == 2 and why in ended.stderr, f"{option} {text} is refused: {why}", ended.said)


def signals(program):
    for name, ignored, want, by in (("SIGTERM", False, 143, "SIGTERM"), ("SIGINT", True, 1, "--time-limit")):
        path = scratch("signal.json")
        remove(path)
        before = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else before)     # a child inherits what is ignored
        process = subprocess.Popen([program, "run", "ends", "what=delay", "--time-limit", f"{2 * SLOW:.3f}", "--json", path],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        signal.signal(signal.SIGINT, before)
        wait_until(lambda: int(read(f"/proc/{process.pid}/stat").split()[13]) > 0.2 * os.sysconf("SC_CLK_TCK"))
        process.send_signal(getattr(signal, name))
        status = process.wait(60 * SLOW)
        hold_text("result", read(path))
        result = json.loads(read(path) or "{}")
        ok(status == want and interrupted(result, by, want), f"{name} ends a run in order" if not ignored else
           f"{name} that was ignored when the run began stays ignored", status, result)


def is_pending(pid, number):
    """Whether a process has not got a signal yet that was sent to it."""
    pending = re.search(r"(?m)^ShdPnd:\t(\w+)$", read(f"/proc/{pid}/status"))
    return bool(int(pending[1], 16) >> (number - 1) & 1)


def twice(program):
    """A second signal while the run comes to its end: the kernel does not come back for half a second."""
    with subprocess.Popen([program, "run", "ends", "what=loop"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) as process:
        wait_until(lambda: int(read(f"/proc/{process.pid}/stat").split()[13]) > 0.2 * os.sysconf("SC_CLK_TCK"))
        process.send_signal(signal.SIGINT)
        wait_until(lambda: not is_pending(process.pid, signal.SIGINT))
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
    ok(process.returncode == -signal.SIGINT and not said, "the second SIGINT ends the process at once", said)


def unread(program):
    """Nobody reads for a while what a run says at its end: it waits, and then ends in order."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while os.write(writer, b"." * 65536):
            pass
    except BlockingIOError:
        os.set_blocking(writer, True)
    with subprocess.Popen([program, "run", "ends", "what=delay", "--sim-limit", "1.5 ms"], stdout=subprocess.DEVNULL,
                          stderr=writer) as process:
        os.close(writer)
        time.sleep(1)
        with os.fdopen(reader, "rb") as file:
            said = file.read().strip(b".").decode()
    ok(process.returncode == 1 and said.startswith("ends: ended by --sim-limit after "),
       "a run at its --sim-limit waits for who reads its messages", process.returncode, said)


def stalled(program):
    ended, _ = end(program, "ends", "what=sleep", "--time-limit", "11")
    ok(re.search(rf"kernel ends on sip0\.cube0\.pe1 has made no device call for 1\d s; its last one is tl_alloc, at "
                 rf"{line_of('tl_alloc(tl, KB_f16, 1, 8)')}", ended.stderr),
       "a kernel without a device call for 10 s is named", ended.said)


def replays(program):
    stream = write(scratch("endless.yaml"), "name: endless\nprograms:\n  p: [" + "{do: delay, ns: 1000000}, " * 20 + "]\n"
                   "launches:\n  - {program: p, targets: [\"*\"]}\n")
    path = scratch("replay.json")
    ended = run(program, "replay", stream, "--sim-limit", "3 ms", "--json", path)
    result = json.loads(read(path) or "{}")
    ok(ended.returncode == 1 and result.get("interrupted") is True and result["ended_by"] == "--sim-limit"
       and "interrupted, end 3000000000 ps" in ended.stdout and "UNFINISHED" in ended.stdout and "FAILED" not in ended.stdout
       and re.search(r"\nhost   set-up .*, simulation .* \(\d+ events, .*/s\)\n", ended.stdout),
       "--sim-limit ends a replay", ended.said)


# ---- sweeps

def sweeps(program):
    bad = [what for what in (*CALLS, *(() if SAN else SIGNALS), "tl_load", "tl_delay", "jump_kernel", "jump_bench",
                             "loop", "delay", "delay_0")]
    points = ["none", *(what for one in bad for what in (one, "none"))]
    lines = write(scratch("bad.jsonl"), "".join(json.dumps({"what": what}) + "\n" for what in points))
    path, limit_s = scratch("answers.jsonl"), f"{0.3 * SLOW:.3f}"
    ended = run(program, "run", "ends", "--points", lines, "--json", path, "--time-limit", limit_s)
    answers = [json.loads(line) for line in read(path).splitlines()]
    ok(len(answers) == len(points) and [answer["params"]["what"] for answer in answers] == points
       and ended.returncode == 1, "a sweep goes on after points that end in any way", ended.said)
    wrong = [answer for what, answer in zip(points, answers) if answer["status"] != (what != "none")]
    ok(not wrong, "each answer of a sweep has the status of its point", *wrong)
    ended = [json.dumps({key: value for key, value in answer.items() if key != "host"})
             for what, answer in zip(points, answers) if what == "none"]
    ok(len(set(ended)) == 1, "a point after a bad one has the same result as before", *set(ended))
    took_s = {what: answer["host"]["seconds"] for what, answer in zip(points, answers) if answer.get("ended_by")}
    ok(took_s and min(took_s.values()) >= float(limit_s), "each point of a sweep has the whole time of the limit", took_s)
    stops = {what: answer.get("ended_by") for what, answer in zip(points, answers)}
    ok(stops["loop"] == stops["delay"] == "--time-limit" and not stops["none"] and not stops["exit"],
       "an answer says what has ended its point", stops)


def kept_answers(program):
    """The answers that are there when a signal ends a sweep."""
    lines = write(scratch("kept.jsonl"), "".join(json.dumps({"what": what}) + "\n" for what in ("none", "none", "delay",
                                                                                          "none")))
    for name, want, points in (("SIGINT", 130, lines), ("SIGINT", 130, "-"), ("SIGKILL", None, lines)):
        path = scratch("kept.answers")
        remove(path)
        with open(lines, encoding="utf-8") as given, \
             subprocess.Popen([program, "run", "ends", "--points", points, "--json", path], stdin=given,
                              stderr=subprocess.DEVNULL) as process:
            wait_until(lambda: read(path).count("\n") >= 2)
            time.sleep(0.3)                             # the third point, which does not end, has begun
            process.send_signal(getattr(signal, name))
            status = process.wait(60 * SLOW)
        hold_text("point", read(path), 2)
        answers = [json.loads(line) for line in read(path).splitlines()]
        kept = [answer.get("ended_by") for answer in answers]
        between = (status, kept) == (-getattr(signal, name), [None, None])         # or it has not begun yet
        ok(between or (status, kept) == (want, [None, None, name]),
           f"the answers of a sweep that {name} ends stay: {'standard input' if points == '-' else 'a file'}", status, answers)


def misuses(program):
    """Points whose bench asks for the impossible."""
    lines = write(scratch("misuse.jsonl"), '{"m": 64}\n{"m": 16777216, "k": 16777216, "n": 1}\n{"m": 64}\n')
    ended = run(program, "run", "gemm", "--points", lines)
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    ok(ended.returncode == 2 and [answer["status"] for answer in answers] == [0, 2, 0]
       and "kb_tensor_new: no room for tensor 'a'" in answers[1]["error"] and "error" not in answers[2],
       "a point whose bench asks for the impossible is answered with its error, and the next one runs", ended.said)


# ---- progress

def on_terminal(program, *words, verb="run", send=None, until=b"\n", timeout=60):
    """What a run writes to standard error, a terminal; `send` is a signal for when it has written `until`."""
    terminal, its_side = os.openpty()
    with subprocess.Popen([program, verb, *words], stdout=subprocess.PIPE, stderr=its_side) as process:
        os.close(its_side)
        said, end_s = b"", time.monotonic() + timeout * SLOW
        while time.monotonic() < end_s:
            if not select.select([terminal], [], [], 0.1)[0]:
                continue
            try:
                part = os.read(terminal, 65536)
            except OSError:                             # the other side is closed
                break
            said += part
            if send and until in said:
                process.send_signal(send)
                send = None
        else:
            process.kill()
        out = process.stdout.read()
    os.close(terminal)
    return process.returncode, said.decode(), out.decode()


def progress(program):
    status, said, out = on_terminal(program, "ends", "what=delay", send=signal.SIGINT, until=b"simulated, ")
    ok(status == 130 and re.search(r"\r\x1b\[Ksimulation 12 %, [0-9.]+ m?s simulated, [0-9.]+ [kM]?events, [0-9.]+ [kM]/s", said)
       and "\x1b" not in out, "a simulation of more than two seconds shows its progress on a terminal", said, out)
    ok(re.search(r"\r\x1b\[Kends: ended by SIGINT after .*\r\n  kernel ends on 4 PEs, the first is ", said)
       and "\nINTERRUPTED  by SIGINT" in out and out.endswith("end          status 130\n"),
       "Ctrl-C prints where the run was, and its summary", said, out)
    status, said, out = on_terminal(program, "gemm", "m=8192", "k=2048", "n=4096", "--exact-events", "tile_m=16",
                                    "tile_n=16", "tile_k=16", "--data", "off", send=signal.SIGINT, until=b" left")
    ok(status == 130 and re.search(r"\r\x1b\[Ksimulation \d+ %, .* simulated, .*, about [0-9.e+]+ s left", said),
       "the progress of composites has their share and the time left", said, out)
    for what, rows, why in (("half", 800, "complete commands, once a kernel of its function has ended"),
                            ("all", 1600, "the bytes of tensors, in a first launch without composites")):
        status, said, out = on_terminal(program, "reads", f"what={what}", "--exact-events", "--json", scratch("reads.json"),
                                        send=signal.SIGINT, until=b" left")
        read_rows = json.loads(read(scratch("reads.json")))["bytes"]["hbm"]["read"] / 128
        shares = [int(share) for share in re.findall(r"simulation (\d+) %, .* simulated, .*, about [0-9.]+ m?s left", said)]
        ok(status == 130 and shares and abs(shares[-1] - 100 * read_rows / rows) < 6, f"the progress of kernels goes by {why}",
           shares, read_rows, said)
    for count, size, waits in ((4, "m: 4096, k: 8192, n: 2048", False), (400, "m: 512, k: 4096, n: 512", True)):
        steps = "".join(f"  - {{id: g{i}, do: composite, op: gemm, {size}, tile: [16, 16, 16], dtype: f16, out_dtype: f16, "
                        "a: {space: hbm, offset: 0}, b: {space: hbm, offset: 0}, c: {space: hbm, offset: 0x1000000}}\n"
                        + (f"  - {{do: wait, for: [g{i}]}}\n" if waits else "") for i in range(count))
        stream = write(scratch("products.yaml"), f"launches: [{{program: products, targets: [sip0.cube0.pe0]}}]\nprograms:\n  products:\n{steps}")
        status, said, out = on_terminal(program, stream, "--exact-events", "--json", scratch("products.json"), verb="replay",
                                        send=signal.SIGINT, until=b" left")
        shares = [int(share) for share in re.findall(r"simulation (\d+) %, .* left", said)]
        commands = json.loads(read(scratch("products.json")))["launches"][0]["commands"]
        complete = 100 * sum(bool(command["complete_ps"]) for command in commands) / count
        ok(status == 130 and shares and complete - 6 <= shares[-1] <= complete + 100 / count + 0.5,  # shares are rounded
           f"the progress of a replay knows the commands to come ({count})", shares, complete, said)
    status, said, out = on_terminal(program, "ends", "what=fills", "--threads", "1", send=signal.SIGINT, until=b"%")
    ok(status == 130 and re.search(r"\r\x1b\[Kset-up, (?:[2-9]|\d\d+) s, fill \d+ %", said) and "\x1b" not in out
       and re.search(r"\r\x1b\[Kends: ended by SIGINT after [\d.]+ s, at 0 ps simulated\r\n", said),
       "a set-up of more than two seconds shows its progress on a terminal", said, out)
    status, said, out = on_terminal(program, "gemm", "m=64", "k=64", "n=64")
    ok(status == 0 and said == "" and "verified" in out, "a short run shows no progress", said)


def asked(program):
    for what, want in (("delay", r"simulation 12 %, .* simulated, .*\n  kernel ends on 4 PEs, the first is sip0\.cube0\.pe0; its "
                        r"last call is tl_delay"), ("loop", r"kernel ends on sip0\.cube0\.pe1 has made no device call for "
                                                    r"\d+ s; its last one is tl_alloc")):
        with subprocess.Popen([program, "run", "ends", f"what={what}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True) as process:
            wait_until(lambda: int(read(f"/proc/{process.pid}/stat").split()[13]) > 0.2 * os.sysconf("SC_CLK_TCK"))
            process.send_signal(signal.SIGUSR1)
            said = "".join(process.stderr.readline() for _ in range(1 + want.count("\\n")))
            going_on = process.poll() is None
            process.send_signal(signal.SIGINT)
            process.stderr.read()
        ok(going_on and process.returncode == 130 and re.match(rf"ends: {want}", said), f"SIGUSR1 prints where a run is: {what}", said)


def asked_in_data_pass(program):
    with open(scratch("said"), "w+") as stderr, subprocess.Popen([program, "run", "gemm", "m=2048", "k=4096", "n=4096"],
                                                                 stdout=subprocess.DEVNULL, stderr=stderr) as process:
        wait_until(lambda: int(read(f"/proc/{process.pid}/stat").split()[13]) > 0.2 * os.sysconf("SC_CLK_TCK"))
        while process.poll() is None:
            process.send_signal(signal.SIGUSR1)
            time.sleep(0.02)
        stderr.seek(0)
        said = stderr.read()
    answers = said.count("\n  no kernel runs\n")
    ok(process.returncode == 0 and answers > 2, "SIGUSR1 is answered in the data pass too", process.returncode, answers, said)


def data_pass_on_terminal(_):
    """One level of gemms, which takes much longer than this test waits."""
    program = small_machine("ends_large", [SOURCE], "cube.memory_map.hbm_slice_mb=256")
    path = scratch("pass.json")
    begin_s = time.monotonic()
    status, said, out = on_terminal(program, "gemm", "m=16384", "k=4096", "n=8192", "--json", path, send=signal.SIGINT,
                                    until=b"data pass")
    host = json.loads(read(path) or "{}").get("host", {})
    ok(status == 130 and re.search(r"\r\x1b\[Kdata pass +\d+ %", said) and out.endswith("end          status 130\n"),
       "a level of the data pass shows its progress, and is ended by SIGINT", said, out)
    ok(time.monotonic() - begin_s < 30 * SLOW and host.get("data_pass_s", 0) > 1.5 > 0.1 > host["reference_s"]
       and host["setup_s"] + host["simulation_s"] < host["seconds"] - host["data_pass_s"] + 1e-6,
       "the time of a data pass that is ended is that of the data pass", host)


def outputs(program):
    """The files of a run that is ended while its kernels run."""
    names = {"json": "cut.json", "timeline": "cut.pftrace", "waves": "cut.vcd", "stats": "cut.stats", "trace": "cut.jsonl",
             "report": "cut.html", "oplog": "cut.log"}
    paths = {option: scratch(name) for option, name in names.items()}
    for path in paths.values():
        remove(path)
    words = [word for option, path in paths.items() for word in ("--" + option, path)]
    with subprocess.Popen([program, "run", "gemm", "m=4096", "k=1024", "n=2048", "tile_m=16", "tile_n=16", "tile_k=16",
                           *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: int(read(f"/proc/{process.pid}/stat").split()[13]) > 0.5 * os.sysconf("SC_CLK_TCK"))
        process.send_signal(signal.SIGTERM)
        status = process.wait(60 * SLOW)
    result, stats = (json.loads(read(paths[option]) or "{}") for option in ("json", "stats"))
    ok(status == 143 and interrupted(result, "SIGTERM", 143), "a run with all its outputs is ended in order", status, result)
    ok(stats.get("interrupted") is True and stats["ended_by"] == "SIGTERM" and stats["end_ps"] == result["end_ps"],
       "--stats of a run that was ended says so", list(stats))
    ok(read(paths["waves"]).endswith("\n$comment interrupted by SIGTERM $end\n"), "--waves of a run that was ended says so")
    with open(paths["timeline"], "rb") as file:
        ok(b"interrupted by SIGTERM" in file.read(), "--timeline of a run that was ended says so")
    rows = [json.loads(line) for line in read(paths["trace"]).splitlines()]
    ok(rows and max(row["t"] for row in rows) <= result["end_ps"], "the trace of a run that was ended is complete up to there")
    ok(read(paths["report"]).rstrip().endswith("</html>"), "the report of a run that was ended is complete")
    shown = run(program, "oplog", paths["oplog"], "--summary")
    ok(shown.returncode == 0 and "gemm" in shown.stdout, "the op log of a run that was ended can be read", shown.said)


def lines_of_progress(program):
    ended, _ = end(program, "ends", "what=slow_delay", "--time-limit", "11", "--progress")
    ok(re.match(r"simulation 12 %, [0-9.]+ [mu]?s simulated, .*\n", ended.stderr) and "\x1b" not in ended.stderr,
       "--progress prints a line every 10 s without a terminal", ended.said)


def times(program):
    _, result = end(program, "gemm", "m=1024", "k=1024", "n=512")
    host = result["host"]
    parts = sum(host[part] for part in ("setup_s", "simulation_s", "data_pass_s", "reference_s"))
    ok(abs(parts - host["seconds"]) < 1e-6 and 0 < host["setup_s"] < host["seconds"]
       and abs(host["events_per_s"] * host["simulation_s"] / host["events"] - 1) < 1e-6,
       "the host's time is that of set-up, simulation, data pass and references", host)


def main():
    program = small_machine("ends", [SOURCE])
    process(program)
    strays(program)
    children(program)
    if not SAN:
        from_outside(program)
    grouped()
    names()
    parts = [limits, signals, twice, unread, replays, sweeps, kept_answers, misuses, asked]
    if not SAN:                                         # what is printed while a run goes on: asked prints it too
        parts += [stalled, progress, outputs, data_pass_on_terminal, asked_in_data_pass, lines_of_progress, times]
    for part in parts:
        part(program)


suite(main)
