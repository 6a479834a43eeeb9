#!/usr/bin/python3
"""device: messages between PEs, buffers and simple compute give every value exactly, and each mistake its message."""
import itertools
import os
import re
import struct

from harness import LANES, ROOT, is_refused, ok, printed, run, small_machine, suite

KERNELS = [os.path.join(ROOT, "tests", "kernels", name) for name in ("messages.c", "device.c")]
PLACE = r"called at \S*\bdevice\.c:\d+"


def buffer(where):
    return f"cube.pe_template.components.pe_ipcq.attrs.buffer={where}"


def bf16(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.unpack("<f", struct.pack("<I", (bits + 0x7fff + (bits >> 16 & 1)) >> 16 << 16))[0]


def through(form, overflow):
    def stored(value):
        try:
            return struct.unpack(form, struct.pack(form, value))[0]
        except OverflowError:                           # beyond the range: infinity
            return overflow if value > 0 else -overflow
    return stored


def whole(bits, signed):
    def stored(value):
        value = int(value) % (1 << bits)
        return float(value - (1 << bits) if signed and value >> bits - 1 else value)
    return stored


STORED = {"f32": through("<f", float("inf")), "f16": through("<e", float("inf")), "bf16": bf16,
          "i32": whole(32, True), "i16": whole(16, True), "i8": whole(8, True), "u8": whole(8, False)}
OPS = {"add": lambda x, y: x + y, "mul": lambda x, y: x * y, "min": min, "max": max}


def neighbours(program, where, *words):
    """The elements of each PE combined with those of its left neighbour, exact before the one rounding."""
    settings = dict(word.split("=") for word in words)
    dtype, op, count = settings["dtype"], settings["op"], int(settings["n"])
    ended = run(program, "run", "right", "--data", "debug", *words)
    got = printed(ended, "from", "to")
    parts = [got.get("from", [])[pe * count:(pe + 1) * count] for pe in range(4)]
    number = int if dtype in ("i32", "i16", "i8", "u8") else float
    want = [STORED[dtype](OPS[op](number(x), number(y)))
            for pe in range(4) for x, y in zip(parts[pe], parts[pe - 1])]
    ok(ended.returncode == 0 and len(want) == 4 * count and got["to"] == want,
       f"PEs combine elements of their left neighbours by queues in {where}: {' '.join(words)}", ended.said)


def moved(program, where):
    for dtype, op in itertools.product(STORED, OPS):
        neighbours(program, where, f"dtype={dtype}", f"op={op}", "n=7")
        neighbours(program, where, f"dtype={dtype}", f"op={op}", "n=5", "piece=2", "async=true", "large=1")
    neighbours(program, where, "dtype=u8", "op=add", "n=1")
    neighbours(program, where, "dtype=f16", "op=add", "n=2500", "piece=1111", "async=true")
    neighbours(program, where, "dtype=f32", "op=max", "n=4096")      # a whole slot


def messages(program, where):
    ended = run(program, "run", "relay", "--data", "debug")
    got = printed(ended, "from", "to")
    ok(ended.returncode == 0 and got["to"] == [2 * x for x in got["from"]],
       f"bytes whose values are pending can be sent on by queues in {where}", ended.said)
    ended = run(program, "run", "relay", "look=true")
    pending = r"PENDING_RESULT at sip0\.cube1\.pe1\.pe_cpu.*result of add, operation \d+ of kernel relay, called at "
    ok(ended.returncode == 1 and re.search(pending + r"\S*messages\.c:\d+", ended.stderr),
       f"bytes that were pending when they were sent are pending at their receiver: queues in {where}", ended.said)
    ended = run(program, "run", "order", "--races", "off")             # it changes a buffer of a send under way
    ok(ended.returncode == 0 and printed(ended, "to")["to"] == [1.0] * 8 + [2.0] * 4 + [4.0] * 4
       and re.search(r"^\d+ ps sip0\.cube0\.pe1\.pe_cpu kernel order: message 1: 2 2$", ended.stderr, re.M),
       f"a message holds the values at the call of tl_send: queues in {where}", ended.said)
    for words in (("messages=60",), ("messages=37", "peek=true"), ("messages=1",)):
        ended = run(program, "run", "flood", *words)
        got = printed(ended, "from", "to")
        want = [2 * x % 256 for x in got.get("from", [])]
        ok(ended.returncode == 0 and want and got["to"] == want,
           f"every message of a flood arrives with its values: queues in {where}, {' '.join(words)}", ended.said)
        off = run(program, "run", "flood", words[0], "--data", "off")
        ok(off.returncode == 2 and "--data off does not compute" in off.stderr,
           f"a bench that looks at messages is refused with --data off: queues in {where}, {words[0]}", off.said)
    ended = run(program, "run", "refused")
    ok(ended.returncode == 1 and printed(ended, "to").get("to") == [1, 1] and "larger than a slot" in ended.stderr,
       f"a send that is refused leaves other messages alone: queues in {where}", ended.said)
    ended = run(program, "run", "apart")
    got = printed(ended, "from", "to")
    ok(ended.returncode == 0 and got["to"] == got["from"] and len(got["to"]) == 5,
       f"a message of one launch is received in the next one: queues in {where}", ended.said)


def places(program):
    ended = run(program, "run", "here")
    said = [f"0 {pe // 2}: {pe} 0 {pe // 2} {pe % 2} 0 {pe // 2}; 3 {pe}; 16384 4 " for pe in range(4)]
    ok(all(line.startswith(want) for line, want in zip(ended.stdout.splitlines(), said)),
       "each PE of a launch on all of them knows its place", ended.said)
    ended = run(program, "run", "here", "pes=odd")
    said = [f"0 {pe // 2}: {pe} 0 {pe // 2} 1 0 {pe // 2}; 3 {pe}; 16384 4 " for pe in (1, 3)]
    ok(all(line.startswith(want) for line, want in zip(ended.stdout.splitlines(), said)),
       "the position of a PE in its launch is not its number in the machine", ended.said)
    ended = run(program, "run", "room")
    ok(ended.stdout.splitlines()[:8] == ["0 64 448 768", "60 20 5 1", "1 1", "1"] * 2,
       "the allocator of the TCM uses gaps again", ended.said)


# what, exit status, what is said.
WRONG = (
    ("none", 0, ""),
    ("wait_late", 0, ""),
    ("peer", 1, r"KERNEL_ERROR .* tl_send: the launch has 4 PEs, there is no position 4"),
    ("number", 1, r"tl_recv: the machine has 4 PEs, there is no number 9"),
    ("place", 1, r"tl_place: the launch has 4 PEs, there is no position 77"),
    ("self", 1, r"KERNEL_ERROR .* send 1: a PE has no ring to or from itself"),
    ("self_recv", 1, r"recv 1: a PE has no ring to or from itself"),
    ("slot", 1, r"send 1: it is larger than a slot of the ring"),
    ("send_hbm", 1, r"tl_send: the buffer at sip0\.cube1\.hbm_ctrl\.pe1\+0x0 is not in this PE's TCM"),
    ("recv_hbm", 1, r"tl_recv: the buffer at \S* is not in this PE's TCM"),
    ("send_empty", 1, r"tl_send: the buffer is empty"),
    ("send_reserved", 1, r"BAD_ADDRESS .* tl_send: .*the region of the TCM that the scheduler reserves"),
    ("short", 1, r"KERNEL_ERROR at sip0\.cube0\.pe1\.pe_cpu.* recv 1: the next message has 12 bytes, the buffer 32; it "
                 r"was sent by kernel misused at \S*device\.c:\d+"),
    ("short_async", 1, r"recv 1: the next message has 33 bytes, the buffer 32"),
    ("never", 1, r"(?i)deadlock .*\n(.*\n)* .*pe0.* kernel misused.* in recv 1, .*called at"),
    ("look_load", 1, r"PENDING_RESULT .*\+0x[0-9a-f]*c are not known before tl_wait for dma_read, command 1 of kernel "
                     r"misused, called at \S*device\.c:\d+"),
    ("look_beside", 1, r"PENDING_RESULT .* are not known before tl_wait for dma_read, command 2 of kernel misused"),
    ("look_between", 1, r"PENDING_RESULT .* before tl_wait for dma_read, command 3 "),
    ("look_recv", 1, r"PENDING_RESULT .* are not known before tl_wait for recv, command 1 of kernel misused"),
    ("use_send", 1, r"KERNEL_ERROR .* tl_send: the bytes at \S* cannot be used before tl_wait for recv, command 1"),
    ("use_store", 1, r"tl_store: .* before tl_wait for recv"),
    ("use_math", 1, r"tl_compute: .* before tl_wait for recv"),
    ("use_load", 1, r"tl_load_into: .* before tl_wait for recv"),
    ("use_source", 1, r"tl_load_into: .* before tl_wait for recv"),
    ("use_recv", 1, r"tl_recv_async: .* before tl_wait for recv"),
    ("use_touching", 1, r"tl_compute: .* before tl_wait for recv, command 2 "),
    ("use_apart", 1, r"tl_compute: .* before tl_wait for recv, command 3 "),
    ("look_later", 1, r"PENDING_RESULT .* before tl_wait for dma_read, command 2 "),
    ("look_first", 1, r"PENDING_RESULT .* before tl_wait for dma_read, command 2 "),
    ("look_last", 1, r"PENDING_RESULT .* before tl_wait for dma_read, command 43 "),
    ("use_gemm", 1, r"tl_composite: .* before tl_wait for recv"),
    ("free_load", 1, r"tl_free: the bytes at \S* are in use by dma_read, command 1"),
    ("free_recv", 1, r"tl_free: the bytes at \S* are in use by recv, command 1"),
    ("free_other", 0, ""),
    ("look_math", 1, r"PENDING_RESULT .* are the pending result of mul, operation \d+ of kernel misused"),
    ("look_copy", 1, r"PENDING_RESULT .* are the pending result of add, operation \d+ of kernel misused"),
    ("into_load", 1, r"PENDING_RESULT .* tl_data_into: .* are not known before tl_wait for dma_read, command 1 of kernel "
                     r"misused, called at \S*device\.c:\d+"),
    ("into_math", 1, r"PENDING_RESULT .* tl_data_into: .* are the pending result of mul, operation \d+ of kernel misused"),
    ("into_hbm", 1, r"KERNEL_ERROR .* tl_data_into: the buffer at \S* is not in this PE's TCM: load it first"),
    ("into_null", 1, r"KERNEL_ERROR .* tl_data_into: a null pointer for the elements"),
    ("op", 1, r"tl_compute: exp takes 1 operand, but y is given"),
    ("no_op", 1, r"tl_compute: there is no op 'frobnicate' of this form"),
    ("null_op", 1, r"tl_compute: there is no op '' of this form"),
    ("shapes", 1, r"tl_compute: x of 8 does not fit a result of 7"),
    ("dtypes", 1, r"tl_compute: add of f32 and i32 is not defined: cast one of them first"),
    ("over", 1, r"tl_compute: the result overlaps a part of an operand"),
    ("odd", 1, r"BAD_ADDRESS .* tl_compute: the result at \S* is not aligned to f32"),
    ("math_hbm", 1, r"tl_compute: y at \S* is not in this PE's TCM"),
    ("full", 1, r"tl_alloc: no room for \d+ bytes in the TCM: \d+ left in one piece; tensors hold 1000, tl_load at \S*"
                r"device\.c:\d+ 32, tl_alloc at \S*device\.c:\d+ 32, .* 3072 in 3 buffers"),
    ("full_load", 1, r"tl_load: no room for 32 bytes in the TCM: 0 left in one piece"),
    ("last_bytes", 0, ""),
    ("zero", 1, r"tl_alloc: the buffer is empty"),
    ("axes", 1, r"tl_alloc: not a valid buffer: rank 5, dtype number 6"),
    ("dtype", 1, r"tl_alloc: not a valid buffer: rank 1, dtype number 99"),
    ("huge", 1, r"tl_alloc: the elements of the buffer reach further than any memory"),
    ("twice", 1, r"tl_free: the bytes at \S* were freed by tl_free at \S*device\.c:\d+"),
    ("free_part", 1, r"tl_free: no buffer of 5 bytes was allocated at "),
    ("free_inside", 1, r"tl_free: no buffer of 4032 bytes was allocated at "),
    ("fail", 1, r"KERNEL_ERROR .* tl_fail: code 42: no cheese"),
)


def main():
    for place in ("tcm", "sram", "hbm"):
        program = small_machine(place, KERNELS, buffer(place), LANES)
        moved(program, place)
        messages(program, place)
    everything = small_machine("tcm", KERNELS, buffer("tcm"), LANES)
    places(everything)
    is_refused(everything, "misused", PLACE, WRONG)
    few = small_machine("few_lanes", KERNELS)
    is_refused(few, "misused", PLACE,
               (("lanes", 1, r"KERNEL_ERROR .* math \d+: pe_math has no lanes for u8"),))
    ended = run(small_machine("sips", KERNELS, "system.sips=2", LANES), "run", "relay", "--data", "debug")
    got = printed(ended, "from", "to")
    ok(ended.returncode == 0 and got["to"] == [2 * x for x in got["from"]],
       "messages pass from SIP to SIP", ended.said)
    low = small_machine("low", KERNELS, buffer("sram"), "cube.pe_template.components.pe_ipcq.attrs.slots=256")
    ended = run(low, "run", "right")
    ok(ended.returncode == 1 and "send 1: the ring lies below the start of its memory" in ended.stderr,
       "a queue that lies below the start of its memory fails at the first send", ended.said)


suite(main)
