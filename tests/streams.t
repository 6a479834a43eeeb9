#!/usr/bin/python3
"""streams: what is wrong with a command stream is reported, all of it at once, with place and words."""
import json

from harness import ok, run, scratch, simulator, suite, topology, write

STEPS = "programs: {{ p: [{}] }}\nlaunches: [{{ program: p, targets: [sip0.cube0.pe0] }}]\n"
LAUNCH = "programs: {{ p: [{{ do: delay, ns: 1 }}], q: [] }}\nlaunches: [{}]\n"
HOST = "{}\nprograms: {{ p: [] }}\nlaunches: []\n"
LIST = "host: [{}]\nprograms: {{ p: [] }}\n"
L0 = "{ do: launch, program: p, targets: [sip0.cube0.pe0], id: l, async: true }"
L1 = "{ do: launch, program: p, targets: [sip0.cube0.pe0] }"
NEXT = "{ do: load, id: x, from: { space: hbm }, to: 0, bytes: 64 }"

# The sentence of the test, a stream with a hole, what goes there, each error and note as LINE:COLUMN: MESSAGE.
WRONG = (
    ("a stream is a mapping", "{}", "[]", "1:1: a command stream must be a mapping, not a sequence"),
    ("a stream has programs and launches", "{}", "name: x\n", "1:1: 'programs' is missing",
     "1:1: 'launches' is missing"),
    ("a stream has no other keys", "{}", "programs: {}\nlaunches: []\nlaunch: 1\n",
     "3:1: unknown key 'launch' in a command stream", "3:1: did you mean 'launches'?"),
    ("a step is a mapping", STEPS, "load", "1:17: a step must be a mapping, not 'load'"),
    ("a step says what it does", STEPS, "{ ns: 1 }", "1:17: 'do' is missing"),
    ("there is no such step", STEPS, "{ do: loda }",
     "1:23: do must be load, store, gemm, math, send, recv, composite, wait or delay, not 'loda'",
     "1:23: did you mean 'load'?"),
    ("a load needs its keys", STEPS, "{ do: load }", "1:17: 'from' is missing", "1:17: 'to' is missing",
     "1:17: 'bytes' is missing"),
    ("a load has no other keys", STEPS, "{ do: load, from: { va: 0 }, to: 0, bytes: 1, tile: 3 }",
     "1:63: unknown key 'tile' in a load", "1:63: its keys are do, id, from, to, bytes, async"),
    ("a load moves at least a byte", STEPS, "{ do: load, from: { va: 0 }, to: 0, bytes: 0 }",
     "1:60: bytes must be a whole number from 1 to 18446744073709551615, not '0'"),
    ("a store needs its keys", STEPS, "{ do: store }", "1:17: 'to' is missing", "1:17: 'from' is missing",
     "1:17: 'bytes' is missing"),
    ("a gemm needs its keys", STEPS, "{ do: gemm, m: 1 }", "1:17: 'k' is missing", "1:17: 'n' is missing",
     "1:17: 'dtype' is missing"),
    ("a math needs its keys", STEPS, "{ do: math }", "1:17: 'op' is missing", "1:17: 'elems' is missing",
     "1:17: 'dtype' is missing"),
    ("a dtype is one of the machine's", STEPS, "{ do: math, op: add, elems: 1, dtype: f17 }",
     "1:55: dtype must be f32, f16, bf16, i32, i16, i8, u8, f8e4m3 or f8e5m2, not 'f17'", "1:55: did you mean 'f16'?"),
    ("a send needs its keys", STEPS, "{ do: send }", "1:17: 'to' is missing", "1:17: 'from' is missing",
     "1:17: 'bytes' is missing"),
    ("a send goes to at least one PE", STEPS, "{ do: send, to: [], from: 0, bytes: 1 }",
     "1:33: 'to' must name at least one PE"),
    ("each PE that a send goes to exists", STEPS, "{ do: send, to: [sip0.cube0.pe1, sip0.cube0.pe9, x], from: 0, bytes: 1 }",
     "1:50: there is no PE 'sip0.cube0.pe9'; ids are like sip0.cube0.pe0", "1:66: there is no PE 'x'; ids are like sip0.cube0.pe0"),
    ("a list of PEs has ids", STEPS, "{ do: send, to: [[sip0.cube0.pe1]], from: 0, bytes: 1 }",
     "1:34: a PE must be a text, not a sequence"),
    ("a send goes to PEs", STEPS, "{ do: send, to: { pe: 1 }, from: 0, bytes: 1 }", "1:33: to must be a text, not a mapping"),
    ("a recv needs its keys", STEPS, "{ do: recv }", "1:17: 'from' is missing", "1:17: 'to' is missing"),
    ("a peer exists", STEPS, "{ do: recv, from: sip0.cube0.pe9, to: 0 }",
     "1:35: there is no PE 'sip0.cube0.pe9'; ids are like sip0.cube0.pe0"),
    ("a peer is written in one way", STEPS, "{ do: recv, from: sip0.cube0.pe01, to: 0 }",
     "1:35: there is no PE 'sip0.cube0.pe01'; ids are like sip0.cube0.pe0"),
    ("a composite says its op", STEPS, "{ do: composite }", "1:17: 'op' is missing"),
    ("a composite is gemm or math", STEPS, "{ do: composite, op: add }",
     "1:38: op must be gemm or math, not 'add'"),
    ("a gemm composite needs its keys", STEPS, "{ do: composite, op: gemm }", "1:17: 'm' is missing",
     "1:17: 'k' is missing", "1:17: 'n' is missing", "1:17: 'tile' is missing", "1:17: 'dtype' is missing",
     "1:17: 'a' is missing", "1:17: 'b' is missing", "1:17: 'c' is missing"),
    ("a pinned operand needs no address", STEPS,
     "{ do: composite, op: gemm, m: 1, k: 1, n: 1, tile: [1, 1, 1], dtype: f16, pinned: [a, b] }",
     "1:17: 'c' is missing"),
    ("a and b can be pinned", STEPS,
     "{ do: composite, op: gemm, m: 1, k: 1, n: 1, tile: [1, 1, 1], dtype: f16, pinned: [a, b, c], c: { va: 0 } }",
     "1:106: a pinned operand must be a or b, not 'c'", "1:106: did you mean 'a'?"),
    ("a gemm's tile has three sizes", STEPS,
     "{ do: composite, op: gemm, m: 1, k: 1, n: 1, tile: [1, 1], dtype: f16, pinned: [a, b], c: { va: 0 } }",
     "1:68: tile must have 3 entries here, it has 2"),
    ("an epilogue has an op", STEPS,
     "{ do: composite, op: gemm, m: 1, k: 1, n: 1, tile: [1, 1, 1], dtype: f16, pinned: [a, b], epilogue: [{ op: "
     "relu }, { scope: once }, { op: 3, scope: never }], c: { va: 0 } }", "1:132: 'op' is missing",
     "1:155: op must be a name of up to 128 letters, digits and _ that does not begin with a digit, not '3'",
     "1:165: scope must be k_tile, output_tile, once, per_k_tile or per_output_tile, not 'never'"),
    ("a math composite needs its keys", STEPS, "{ do: composite, op: math }", "1:17: 'fn' is missing",
     "1:17: 'm' is missing", "1:17: 'n' is missing", "1:17: 'tile' is missing", "1:17: 'dtype' is missing",
     "1:17: 'src' is missing", "1:17: 'dst' is missing"),
    ("a composite is never blocking", STEPS,
     "{ do: composite, op: math, fn: add, m: 1, n: 1, tile: [1, 1], dtype: f16, src: { va: 0 }, dst: { va: 0 }, "
     "async: true }", "1:123: unknown key 'async' in a math composite",
     "1:123: its keys are do, id, op, fn, m, n, tile, dtype, out_dtype, src, dst"),
    ("an id is given once", STEPS, f"{NEXT}, {NEXT}", "1:94: two commands have the id 'x'"),
    ("async is true or false", STEPS, "{ do: math, op: add, elems: 1, dtype: f16, async: 1 }",
     "1:67: async must be true or false, not '1'"),
    ("a wait names commands above it", STEPS, "{ do: wait, for: [x] }, " + NEXT,
     "1:35: no command above has the id 'x'"),
    ("a wait names something", STEPS, "{ do: wait }", "1:17: 'for' is missing"),
    ("a delay has its time", STEPS, "{ do: delay, ps: 3 }", "1:17: 'ns' is missing",
     "1:30: unknown key 'ps' in a delay", "1:30: did you mean 'ns'?"),
    ("an address has a space", STEPS, "{ do: load, from: { offset: 0 }, to: 0, bytes: 1 }",
     "1:35: 'space' is missing"),
    ("a space is a kind of memory", STEPS, "{ do: load, from: { space: l2 }, to: 0, bytes: 1 }",
     "1:44: space must be hbm, tcm or sram, not 'l2'"),
    ("an offset is below 2^36", STEPS, "{ do: load, from: { space: hbm, offset: 0x1000000000 }, to: 0, bytes: 1 }",
     "1:57: offset must be a whole number from 0 to 68719476735, not '0x1000000000'"),
    ("a virtual address is that alone", STEPS, "{ do: load, from: { va: 0, sip: 1 }, to: 0, bytes: 1 }",
     "1:44: unknown key 'sip' in a virtual address", "1:44: its keys are va"),
    ("a launch names a program", LAUNCH, "{ program: pp, targets: ['*'] }", "2:23: there is no program 'pp'",
     "2:23: did you mean 'p'?"),
    ("a launch needs its keys", LAUNCH, "{}", "2:12: 'program' is missing", "2:12: 'targets' is missing"),
    ("targets are PEs", LAUNCH, "{ program: p, targets: [sip9.*] }",
     "2:36: no PE matches 'sip9.*'; ids are like sip0.cube0.pe0"),
    ("a launch has a target", LAUNCH, "{ program: p, targets: [] }", "2:35: targets must name at least one PE"),
    ("a PE is in one part", LAUNCH,
     "{ parts: [{ program: p, targets: ['*'] }, { program: q, targets: [sip0.cube0.pe1] }] }",
     "2:78: sip0.cube0.pe1 is in two parts of the launch"),
    ("a launch has a part", LAUNCH, "{ parts: [] }", "2:21: parts must have at least one entry"),
    ("parts have the programs", LAUNCH, "{ program: p, parts: [{ program: p, targets: ['*'] }] }",
     "2:23: 'program' is given beside 'parts'; it belongs in one of them"),
    ("a policy is drain or fail_fast", LAUNCH, "{ program: p, targets: ['*'], on_failure: stop }",
     "2:54: on_failure must be drain or fail_fast, not 'stop'"),
    ("a map needs its keys", HOST, "mmu: [{}]", "1:7: 'va' is missing", "1:7: 'bytes' is missing",
     "1:7: 'to' is missing"),
    ("a map without its address is no crash", HOST, "mmu: [{ bytes: 0xffffffffffffffff, to: { space: hbm } }]",
     "1:7: 'va' is missing"),
    ("a map begins at a page", HOST, "mmu: [{ va: 1, bytes: 1, to: { space: hbm } }]",
     "1:13: virtual address 0x1 is no multiple of the page, 2097152 bytes"),
    ("a map is to a physical address", HOST, "mmu: [{ va: 0, bytes: 1, to: { va: 0 } }]",
     "1:32: unknown key 'va' in an address", "1:32: its keys are space, sip, cube, pe, offset",
     "1:30: 'space' is missing"),
    ("a memory request reads or writes", HOST, "memory: [{ do: copy }]",
     "1:16: do must be read or write, not 'copy'"),
    ("a read is from, a write to", HOST, "memory: [{ do: read, bytes: 1, to: [{ space: hbm }] }]",
     "1:32: unknown key 'to' in a memory request", "1:32: did you mean 'do'?", "1:10: 'from' is missing"),
    ("a memory request has an address", HOST, "memory: [{ do: write, bytes: 1, to: [] }]",
     "1:37: 'to' must name at least one address"),
    ("host is beside no other list", HOST, "host: []\nmmu: []", "2:6: 'mmu' is given beside 'host'; it belongs in that "
     "list", "4:11: 'launches' is given beside 'host'; it belongs in that list"),
    ("there is no such step of the host", LIST, "{ do: send }",
     "1:14: do must be map, unmap, read, write, launch, wait or delay, not 'send'", "1:14: did you mean 'read'?"),
    ("a step of the host is a mapping", LIST, "3", "1:8: a step of the host must be a mapping, not '3'"),
    ("a launch of a list has no other keys", LIST, f"{L0.replace('async', 'after')}",
     "1:68: unknown key 'after' in a launch",
     "1:68: its keys are do, program, targets, parts, timeout_ns, on_failure, start, id, async"),
    ("a launch outside a list has no id", LAUNCH, "{ program: p, targets: ['*'], id: x }",
     "2:42: unknown key 'id' in a launch",
     "2:42: its keys are program, targets, parts, timeout_ns, on_failure, start"),
    ("a start is barrier, cube or free", LAUNCH, "{ program: p, targets: ['*'], start: m_cpu }",
     "2:49: start must be barrier, cube or free, not 'm_cpu'"),
    ("a step's id is given once", LIST, "{ do: read, id: x, from: [{ space: sram }], bytes: 1 }, "
     "{ do: read, id: x, from: [{ space: sram }], bytes: 1 }", "1:80: two steps of the host have the id 'x'"),
    ("a wait of the host names steps above it", LIST, "{ do: wait, for: [x] }, { do: delay, ns: 1 }",
     "1:26: no step above has the id 'x'"),
    ("a wait is never async", LIST, "{ do: wait, for: [], async: true }", "1:29: unknown key 'async' in a wait",
     "1:29: its keys are do, for"),
    ("a delay of the host has its time", LIST, "{ do: delay }", "1:8: 'ns' is missing"),
    ("an unmap has no address", LIST, "{ do: unmap, va: 0, bytes: 1, to: { space: hbm } }",
     "1:38: unknown key 'to' in an unmap", "1:38: did you mean 'do'?"),
    ("targets of a map are PEs", LIST, "{ do: map, va: 0, bytes: 1, to: { space: hbm }, targets: [x] }",
     "1:66: no PE matches 'x'; ids are like sip0.cube0.pe0"),
    ("two launches in flight share no PE", LIST, f"{L0}, {L1}",
     "1:83: a launch is still in flight on sip0.cube0.pe0: wait for it first", "1:8: this one"),
    ("a launch in flight and a map share no PE", LIST,
     f"{L0}, {{ do: map, va: 0, bytes: 1, to: {{ space: hbm }} }}",
     "1:83: a launch is still in flight on sip0.cube0.pe0: wait for it first", "1:8: this one"),
    ("a map in flight and a launch share no PE", LIST,
     f"{{ do: unmap, va: 0, bytes: 1, async: true }}, {L1}",
     "1:53: a map or an unmap is still in flight on sip0.cube0.pe0: wait for it first", "1:8: this one"),
    ("an address of the host exists", HOST,
     "memory: [{ do: write, bytes: 1, to: [{ space: hbm, sip: 3, cube: 5 }] }]", "1:38: there is no SIP 3",
     "1:38: there is no cube 5 in a SIP"),
)


MAP = "{ do: map, id: m, va: 0, bytes: 1, to: { space: hbm }, async: true }, { do: wait, for: [m] }"
RIGHT = (
    ("a map that was waited for is no longer in flight, nor are launches that have ended", f"{MAP}, {L1}, {L1}"),
    ("a step may be waited for twice", f"{MAP}, {{ do: wait, for: [m] }}, {L1}"),
    ("a PE may match several targets of a part", "{ do: launch, program: p, targets: ['*', sip0.cube0.pe0] }"),
)


def errors(program, text):
    """The run of a stream, and the errors and notes on standard error, from the place on."""
    path = write(scratch("wrong.yaml"), text)
    ended = run(program, "replay", path)
    lines = [line[len(path) + 1:] for line in ended.stderr.splitlines() if line.startswith(path + ":")]
    return ended, [line.replace(": error: ", ": ", 1) for line in lines]


def wrong():
    program = simulator(topology("small"))
    for sentence, where, part, *want in WRONG:
        ended, said = errors(program, where.format(part))
        ok(ended.returncode == 2 and said == want, sentence, where.format(part), ended.said, *want)
    ended, said = errors(program, STEPS.format(NEXT))
    ok(ended.returncode in (0, 1) and not said, "a stream with nothing wrong is run", ended.said)
    for sentence, part in RIGHT:
        ended, said = errors(program, LIST.format(part))
        ok(ended.returncode == 0 and not said, sentence, ended.said)


def scopes():
    """The launches of a gemm of several k tiles and output tiles, by the scope that its epilogue is given."""
    program, launches = simulator(topology("small")), {}
    for scope in ("k_tile", "per_k_tile", "output_tile", "per_output_tile", None, "once"):
        epilogue = "{ op: gelu" + (f", scope: {scope}" if scope else "") + " }"
        step = "{ do: composite, op: gemm, m: 64, k: 96, n: 64, tile: [32, 32, 32], dtype: f16, pinned: [a, b], " \
               f"epilogue: [{epilogue}], c: {{ space: hbm }} }}"
        ended = run(program, "replay", write(scratch("scope.yaml"), STEPS.format(step)), "--json", "-")
        launches[scope] = json.loads(ended.stdout)["launches"] if ended.returncode == 0 else ended.said
    ok(launches["per_k_tile"] == launches["k_tile"], "per_k_tile is another word for the scope k_tile", launches)
    ok(launches["per_output_tile"] == launches["output_tile"],
       "per_output_tile is another word for the scope output_tile", launches)
    ok(launches[None] == launches["output_tile"], "an epilogue without a scope is of output tiles", launches)
    ok(len({str(launches[scope]) for scope in ("k_tile", "output_tile", "once")}) == 3,
       "the scopes take different times", launches)


def files():
    program = simulator(topology("small"))
    path = write(scratch("good.yaml"), STEPS.format(NEXT))
    with open(path, encoding="utf-8") as file:
        given = run(program, "replay", "-", "--json", "-", stdin=file)
    named = run(program, "replay", path, "--json", "-")
    ok('"launches"' in given.stdout and given.stdout == named.stdout, "replay - replays standard input", given.said)
    with open(write(scratch("wrong.yaml"), "name: [\n"), encoding="utf-8") as file:
        given = run(program, "replay", "-", stdin=file)
    ok(given.returncode == 2 and given.stderr.startswith("standard input:"),
       "an error of a stream from standard input is told with its place", given.said)
    ended = run(program, "replay", scratch("godo.yaml"))
    ok(ended.returncode == 2 and f"cannot open {scratch('godo.yaml')}: No such file or directory; did you mean "
       f"'{path}'?" in ended.stderr, "a stream that does not exist is told with the nearest name", ended.said)


suite(wrong, scopes, files)
