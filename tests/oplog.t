#!/usr/bin/python3
"""oplog: the op log in memory, in temporary files and in files: its records, the later data pass, damage. limit: 240"""
import json
import os
import re
import struct
import sys

from harness import Broken, GEMM, ROOT, SAN, SCRATCH, ok, read, read_bytes, remove, run, scratch, small_machine, suite
from harness import without_host, write

KERNELS = [os.path.join(ROOT, "tests", "host", "many.c")]
ROUNDS, LONGER = "rounds=40", "rounds=800"              # the longer one has several blocks of records
HEAD = struct.Struct("<8sIIQQQ")                        # magic, version, order of bytes, seed, bytes of texts, sum
BLOCK = struct.Struct("<IIQQQ")                         # tag, bytes, id, time, sum
MASK = (1 << 64) - 1


def result(program, *words, **options):
    """A run's result as text without the host's figures, and how it ended."""
    path = scratch("result.json")
    remove(path)
    ended = run(program, "run", *words, "--json", path, **options)
    return without_host(read(path) or "{}"), ended


def logged(program, name, *words):
    """The op log of a run that ended well: its path and its bytes."""
    path = scratch(name)
    ended = run(program, "run", *words, "--oplog", path)
    if ended.returncode:
        raise Broken(ended.said)
    return path, read_bytes(path)


# ---- the place of the log changes no result

def streams(program):
    want, ended = result(program, "many", LONGER, "--exact-events")
    ok(ended.returncode == 0, "a run with its op log in memory ends well", ended.said)
    for words in (("--oplog-mem", "0"), ("--oplog-mem", "4 KiB"), ("--oplog", scratch("same"))):
        got, ended = result(program, "many", LONGER, "--exact-events", *words)
        ok(got == want, f"the result is the same with {words[0]} {os.path.basename(words[1])}", ended.said)
    ok(result(program, "many", LONGER)[0] == want, "a run with an op log gives the same with skipped periods")
    nowhere = os.environ | {"TMPDIR": scratch("no/such/folder")}
    ended = run(program, "run", "many", LONGER, "--oplog-mem", "1 KiB", env=nowhere)
    ok(ended.returncode == 3 and "cannot make a temporary file for the op log in" in ended.stderr,
       "a temporary file for the op log that cannot be made is an error of the host", ended.said)


def most_memory(*command):
    """The peak of a command's memory, in bytes."""
    code = ("import resource, subprocess, sys; status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)."
            "returncode; print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    status, kib = map(int, run(sys.executable, "-c", code, *command).stdout.split())
    return kib << 10 if status == 0 else None


def is_bounded(program):
    """Many operations take less than a byte for each beyond the first that wait. The sanitizers keep freed memory."""
    if SAN:
        return
    for words in (("--data", "off"), ("--oplog-mem", "256 KiB"), ("--json", "/dev/null", "--oplog-mem", "0")):
        few, many = (most_memory(program, "run", "looped", f"rounds={rounds}", *words) for rounds in (9000, 36000))
        ok(few and many and many - few < 27000 * 4 * 6,
           f"the op log takes bounded memory with {' '.join(words)}", few, many)


# ---- the records

def operations(program, path):
    shown = [json.loads(line) for line in run(program, "oplog", path).stdout.splitlines()]
    ops = [line for line in shown if "op" in line]
    tiles = [line for line in shown if "of" in line]
    return ops, tiles, {line["tensor"]: line["hash"] for line in shown if "hash" in line}


def shows(program):
    path, _ = logged(program, "many", "many", ROUNDS)
    ops, tiles, hashes = operations(program, path)
    ok([op["op"] for op in ops] == list(range(3 + 4 * 6 * 41)),
       "the ids of operations count up in the order of the data",
       len(ops))
    called = [op["called_ps"] for op in ops]
    ok(called == sorted(called), "operations are in the order of the instants of their calls")
    order = [(op["called_ps"], op["pe"], op["command"]) for op in ops if op["pe"] != "host"]
    ok(order == sorted(order), "operations of one instant are in the order of PEs and their commands")
    names = {(op["op_kind"], op["op_name"]) for op in ops}
    ok(names == {("memory", name) for name in ("fill", "host_write", "dma_read", "dma_write", "send", "recv")}
       | {("gemm", "gemm_f16"), ("math", "max")}, "the log has every kind and name of operation", sorted(names))
    by_pe = [op for op in ops if op["pe"] != "host"]
    ok(all(op["t_start"] <= op["t_end"] and op["called_ps"] <= op["t_end"] and op["line"] for op in by_pe),
       "each operation of a PE has its times and its line")
    ok(all(re.match(r"sip0\.cube\d\.pe\d\.pe_", op["component"]) for op in by_pe if op["op_name"] != "recv"),
       "each operation of a PE has its component")
    receives = [op for op in ops if op["op_name"] == "recv"]
    ok(all(ops[op["depends"][0]]["op_name"] == "send" for op in receives), "a receive depends on its send")
    loads = [op for op in ops if op["op_name"] == "dma_read"]
    ok(sum(len(op["depends"]) for op in loads) == 4 * 39
       and all(ops[at]["op_name"] == "gemm_f16" for op in loads for at in op["depends"]),
       "tl_after makes a dependency")
    stages = {}
    for tile in tiles:
        stages.setdefault(tile["of"], []).append(tile)
    gemms = [op for op in ops if op["op_kind"] == "gemm"]
    ok(set(stages) == {op["op"] for op in gemms}, "the stages of tiles name their composite",
       len(stages))
    ok(all((op["t_start"], op["t_end"], op["services"])
           == (min(s["t_start"] for s in of), max(s["t_end"] for s in of), len(of))
           for op in gemms for of in [stages[op["op"]]]), "the times of a composite are those of its stages")
    gemm = gemms[0]["params"]
    ok(gemm["a"]["shape"] == [8, 8] and gemm["acc"] == "f32" and gemm["epilogues"][0]["op"] == "relu"
       and gemm["tile"] == [8, 8, 8], "a gemm has its shapes, accumulator, epilogues and tile", gemm)
    ok(set(hashes) == {"x", "y"}, "the log has the hash of each tensor at the end", hashes)
    summary = run(program, "oplog", path, "--summary").stdout
    ok(f"many on small, seed 0: {len(ops)} operations, {len(tiles)} stages of tiles\n" in summary
       and re.search(r"\n +164 .* gemm_f16, many many.c:\d+\n", summary),
       "--summary has a line for each operation by name and line", summary)
    by_name = {line[-1]: line[:-1] for line in (re.split(r"\s{2,}", line.strip()) for line in summary.splitlines())}
    served_us = {name: sum(op["t_end"] - op["t_start"] for op in by_pe if op["op_name"] == name) / 1e6
                 for name in ("gemm_f16", "max")}
    ok(by_name["gemm_f16"] == ["164", f"{164 * 3 * 128 / 1024:.4g} KiB", f"{164 * 2 * 8 ** 3 / 1000:.4g} kOP",
                               f"{served_us['gemm_f16']:.4g} us"]
       and by_name["max"] == ["164", f"{164 * 3 * 128 / 1024:.4g} KiB", f"{164 * 8 ** 2 / 1000:.4g} kOP",
                              f"{served_us['max']:.4g} us"]
       and by_name["fill"] == ["2", "1 KiB", "-", "-"],
       "--summary adds up bytes, what is computed, and times", summary)


def names(program):
    """tl_after makes a dependency on a command of its launch, complete or not."""
    path, _ = logged(program, "named", "named")
    ops = [op for op in operations(program, path)[0] if op["pe"] != "host"]
    kernels = [[op for op in ops if op["pe"] == pe] for pe in sorted({op["pe"] for op in ops})]
    for own in (kernel[at:at + 4] for kernel in kernels for at in range(0, 12, 4)):
        load, store, send, receive = (next(op for op in own if op["op_name"] == name)
                                      for name in ("dma_read", "dma_write", "send", "recv"))
        ok(receive["depends"][0] == load["op"] and len(receive["depends"]) == 2 and send["depends"] == []
           and store["depends"] == [receive["op"], load["op"]] and load["depends"] == [],
           f"a command depends on those that tl_after named: PE {own[0]['pe']}", own)
    ended = run(program, "data", path)
    ok(len(kernels) == 4 and ended.returncode == 0, "tl_after does not change the data pass",
       ended.said)


def kept_out(program):
    """tl_data_op keeps commands out of the op log, and forces them in; they take the same time."""
    every = {"add", "dma_read", "dma_write", "recv", "send"}
    found = {}
    for keep, names, times, verdict in ((0, every, 0, "ok"), (1, every - {"dma_read"}, 4, "wrong"),
                                        (2, every - {"add"}, 4, "wrong"), (4, every, 4, "wrong"),
                                        (8, {"add", "recv", "send"}, 12, "wrong"), (16, every, 0, "ok")):
        path, answer = scratch("quiet"), scratch("quiet.json")
        ended = run(program, "run", "quiet", f"keep={keep}", "--oplog", path, "--json", answer)
        result = json.loads(read(answer))
        ops = [op for op in operations(program, path)[0] if op["pe"] != "host"]
        found[keep] = result["end_ps"], [row["complete_ps"] for row in result["launches"][0]["commands"]]
        ok({op["op_name"] for op in ops} == names and len(ops) == 4 * 6 - times,
           f"keep={keep}: the op log has the data operations alone", len(ops), sorted({op["op_name"] for op in ops}))
        ok(result["verify"][0]["status"] == verdict and ended.returncode == (verdict != "ok"),
           f"keep={keep}: what was kept out has no effect, and the verdict is {verdict}", ended.said)
        said = re.search(r"^kept out +(\d+) commands of the op log, the first by quiet at .*many.c:\d+;", ended.stdout, re.M)
        ok(result.get("kept_out", {"commands": 0})["commands"] == times == int(said[1] if said else 0),
           f"keep={keep}: the summary and the JSON count what was kept out", ended.stdout, result.get("kept_out"))
    ok(len(set(map(str, found.values()))) == 1, "commands that are kept out take the same time", found)


# ---- the data pass, later

def later(program):
    for words in (("many", ROUNDS), ("many", ROUNDS, "--data", "debug"), ("gemm", *GEMM, "--seed", "7"),
                  ("all_reduce", "size=1000")):
        path, _ = logged(program, "later", *words)
        ended = run(program, "data", path)
        ok(ended.returncode == 0 and "DIFFERS" not in ended.stdout and ended.stdout.count("same  ") >= 2,
           f"the data pass of {' '.join(words)} gives the same bytes later", ended.said)
    hashes = set(re.findall(r"^same +(.*)$", ended.stdout, re.M))
    path, _ = logged(program, "timing", "all_reduce", "size=1000", "--data", "off")
    ended = run(program, "data", path, "--debug")
    found = set(re.findall(r"^computed +(.*)$", ended.stdout, re.M))
    ok(ended.returncode == 0 and found and found <= hashes,
       "the data pass of a run with --data off gives the bytes of a run with data", ended.said, sorted(hashes))


# ---- damaged files

def hashed(value, data):
    """hash_bytes of rt/base/hash.h."""
    for at in range(0, len(data), 8):
        word = data[at:at + 8]
        mixed = value ^ int.from_bytes(word, "little") ^ (len(word) << 56 if len(word) < 8 else 0)
        value = mixed * 0x9e3779b97f4a7c15 & MASK
        value ^= value >> 29
    return value


def blocks(data):
    """(position, bytes with the head) of each block."""
    at = HEAD.size + HEAD.unpack_from(data)[4]
    while at < len(data):
        size = BLOCK.size + BLOCK.unpack_from(data, at)[1]
        yield at, data[at:at + size]
        at += size


def summed(block):
    """A block with the checksum that its bytes have."""
    tag, size, number, time, _ = BLOCK.unpack_from(block)
    value = hashed(hashed(size, struct.pack("<QQ", number, time)), block[BLOCK.size:])
    return BLOCK.pack(tag, size, number, time, value) + block[BLOCK.size:]


def refused(program, what, data, said):
    path = write(scratch("damaged"), data)
    wrong = []
    for command in (("oplog",), ("oplog", "--summary"), ("data",)):
        ended = run(program, *command, path)
        if ended.returncode != 2 or not re.search(rf"^{re.escape(path)}: byte \d+: error: .*{said}", ended.stderr):
            wrong.append(ended.said)
    ok(not wrong, f"{what} is refused with its byte", *wrong)


def damage(program):
    _, data = logged(program, "whole", "many", ROUNDS)
    places = list(blocks(data))
    ok(len(places) > 1 and all(summed(block) == block for _, block in places),
       "each block of the log has its checksum")
    refused(program, "an empty op log", b"", "no op log")
    refused(program, "a file that is no op log", b"#!/bin/sh\necho not this one\n", "no op log")
    refused(program, "an op log of another version", data[:8] + struct.pack("<I", 77) + data[12:],
            "version 77, this simulator")
    refused(program, "an op log in another order of bytes", data[:12] + data[15:11:-1] + data[16:],
            "another order of bytes")
    refused(program, "an op log with another seed", data[:16] + b"\1" + data[17:], "checksum of the head")
    for what, end in (("in the head", 20), ("in the texts", HEAD.size + 3), ("before the records", places[0][0]),
                      ("in the head of a block", places[1][0] + 5), ("in a block", places[0][0] + 999),
                      ("between blocks", places[1][0]), ("at the last byte", len(data) - 1)):
        refused(program, "an op log truncated " + what, data[:end], "truncated")
    for what, at in (("in a record", places[0][0] + 500), ("in the last record", len(data) - 2),
                     ("in the place of a block", places[1][0] + 10)):
        refused(program, "an op log with a wrong bit " + what, data[:at] + bytes([data[at] ^ 4]) + data[at + 1:],
                "checksum")
    at = places[1][0]
    refused(program, "an op log without a block where one should be", data[:at] + b"??" + data[at + 2:],
            "no block of records")
    refused(program, "an op log with a block after its end", data + places[0][1], "the file has not")
    at, block = places[0]
    wrong = summed(block[:BLOCK.size] + b"\x7f" + block[BLOCK.size + 1:])
    refused(program, "an op log with a record of no kind", data[:at] + wrong + data[at + len(block):],
            "a record of the block is")
    ended = run(program, "oplog", scratch("none"))
    ok(ended.returncode == 2 and "none: No such file or directory; " in ended.stderr, "an op log that does not exist is refused",
       ended.said)
    ended = run(program, "data", SCRATCH)
    ok(ended.returncode == 2 and "is no file" in ended.stderr, "a folder instead of an op log is refused", ended.said)


def differs(program):
    """A wrong hash of a tensor, with a valid checksum of the block."""
    _, data = logged(program, "whole", "many", ROUNDS)
    at, block = list(blocks(data))[-1]
    shown = operations(program, scratch("whole"))[2]["y"]
    number = int(shown, 16).to_bytes(8, "little")
    if not ok(block.count(number) == 1, "the hash of a tensor is in the last block", shown):
        return
    ended = run(program, "data", write(scratch("other"), data[:at] + summed(block.replace(number, b"otherone"))))
    ok(ended.returncode == 1 and f"DIFFERS      y: {shown}, in the run " in ended.stdout,
       "the data pass tells bytes that differ from those of the run",
       ended.said)


def others(program):
    """Logs of other machines and of runs that failed."""
    path, _ = logged(program, "of_small", "many", ROUNDS)
    other = small_machine("slower", KERNELS, "cube.noc.link_bw_gbs=64")
    ended = run(other, "data", path)
    ok(ended.returncode == 2 and "byte 0: error: this op log is of the machine small, topology" in ended.stderr,
       "an op log of another machine is refused", ended.said)
    path = scratch("stuck")
    ended = run(program, "run", "stuck", "--oplog", path)
    ok(ended.returncode == 1 and os.path.exists(path), "a run that fails leaves its op log", ended.said)
    ended = run(program, "data", path)
    ok(ended.returncode == 0 and "; the run did not end well" in ended.stdout,
       "the data pass of a failed run computes what was done",
       ended.said)
    ended = run(program, "oplog", path)
    ok(ended.returncode == 0 and '"op_name": "dma_read"' in ended.stdout, "the op log of a failed run can be shown",
       ended.said)
    left = [name for name in os.listdir(SCRATCH) if name.endswith(".tmp")]
    ok(not left, "no partial file is left", left)


def main():
    small = small_machine("small", KERNELS)
    for part in (streams, shows, names, kept_out, later, damage, differs, others, is_bounded):
        part(small)


suite(main)
