#!/usr/bin/python3
"""impl: component models of users: same data, other times and orders; their parameters; every mistake. limit: 300

Under the sanitizers models that repeat the built-in ones run every third of the cases.
"""
import json
import os
import re
import shutil

from harness import CC, GEMM, KBGEN, ROOT, Replay, SAN, SMALL, done, first_difference, folder, normal, ok, options_of
from harness import read, run, scratch, without_host, write

OWN = os.path.join(ROOT, "tests", "impl")
SHOWN = os.path.join(ROOT, "topologies", "impl")
PE = "cube.pe_template.components."
GEMM_IMPL, GEMM_PARAMS = PE + "pe_gemm.impl=", PE + "pe_gemm.attrs.params."
FABRIC = {"host": "system.host", "switch": "system.switch", "pcie_ep": "sip.pcie_ep", "io_cpu": "sip.io_cpu",
          "m_cpu": "cube.m_cpu", "router": "cube.noc.router", "port": "cube.port"}
PARTS = {"gemm": "pe_gemm", "math": "pe_math", "move": "pe_fetch_store", "scheduler": "pe_scheduler", "cpu": "pe_cpu",
         "dma": "pe_dma", "tcm": "pe_tcm", "mmu": "pe_mmu", "ipcq": "pe_ipcq"}
# The file of each model that repeats the built-in one, and the key of its component.
SAME = {"same_sram": "cube.sram", "same_hbm": "cube.hbm_ctrl"}
SAME |= {"same_" + name: PE + part for name, part in PARTS.items()}
SAME |= {"same_" + part: key for part, key in FABRIC.items()}
CASES = ("random_two_sips_mmu", "host_two_writes_queue", "random_three_read_engines", "ipcq_in_hbm", "bad_address",
         "random_sram_rings", "random_six_cubes")
COMPILERS = ("gcc", "clang") if not SAN else (CC,)


def sets(*values):
    return options_of(settings=values)


def impls(*names, where=OWN):
    return options_of(impls=[os.path.join(where, name + ".c") for name in names])


def all_same():
    """Options that give every component a model that repeats the built-in one."""
    made = folder("same")
    for name in SAME:
        source = os.path.join(OWN, name + ".c")
        text = read(source) if os.path.exists(source) else \
            read(os.path.join(OWN, "same_router.c")).replace("router", name.removeprefix("same_"))
        write(os.path.join(made, name + ".c"), text)
    return sets(*(f"{part}.impl={name}" for name, part in SAME.items())) + impls(*SAME, where=made)


def make(name, topology, *options, cc=None):
    """The simulator of a topology with models of a user, and how kbgen ended."""
    program = scratch(name)
    return program, run(KBGEN, topology, "-o", program, *(["--cc", cc] if cc else []), *options)


def multiply(program, *options):
    """Result and trace of a verified GEMM."""
    result, trace = program + ".json", program + ".jsonl"
    ended = run(program, "run", "gemm", *GEMM, "--json", result, "--trace", trace, *options)
    return ended, read(result), read(trace)


# ---- the same formulas give the same trace

def sums_differ(text):
    """Where the rows of memories do not add up to the bytes moved; empty if they do."""
    stats = json.loads(text)
    for memory, name in (("hbm_ctrl", "hbm"), ("sram", "sram")):
        rows, moved = [row for row in stats["channels"] if memory in row["id"]], stats["bytes"][name]
        if any(row["channel"] != "model" for row in rows) or sum(row["bytes"] for row in rows) != sum(moved.values()):
            return f"channels of {name}: {rows}, {moved}"
    return ""


def same(case, cc):
    where = os.path.join(ROOT, "tests", "conformance", case)
    program, made = make(f"same-{cc}", os.path.join(where, "topo.yaml"), *ALL_SAME, "-O", "0", cc=cc)
    got = Replay(program, os.path.join(where, "stream.yaml"), program)
    wrong = [first_difference(read(os.path.join(where, "trace.jsonl")), got.trace),
             first_difference(normal(read(os.path.join(where, "expected.json"))), normal(got.result)),
             sums_differ(got.stats)]
    if case == "host_two_writes_queue":
        wrong += queues_differ(program, where, got.stats)
    good = made.returncode == 0 and not made.stderr and not any(wrong)
    ok(good, f"models that repeat the built-in ones give the trace of {case}, and its bytes, {cc}", made.said, *wrong, got.said)


def queues_differ(program, where, stats):
    """Where the rows of nodes, links, TCMs and engines are not those of built-in models; empty if they are."""
    _, made = make("same-plain", os.path.join(where, "topo.yaml"))
    plain = Replay(scratch("same-plain"), os.path.join(where, "stream.yaml"), program + "-plain")
    want, got = json.loads(plain.stats), json.loads(stats)
    for value in (want, got):
        value["channels"] = [row for row in value["channels"] if "pe_dma" in row["id"] or "pe_tcm" in row["id"]]
    longest = max(row["longest_queue"] for row in want["links"])
    return [made.said if made.returncode else "", "no link has a queue" if longest < 2 else ""] + \
        [first_difference(*(json.dumps(value[key], indent=1) for value in (want, got)))
         for key in ("nodes", "links", "channels", "engines")]


ALL_SAME = all_same()
missing = set(re.findall(r"^(?:IMPL|QUEUED|FABRIC)\((\w+)", read(os.path.join(ROOT, "rt", "kb", "impl.def")), re.M))
missing -= {key.rpartition(".")[2] for key in SAME.values()}
ok(not missing, "every component has a model that repeats the built-in one", *missing)
for number, name in enumerate(CASES[::3 if SAN else 1]):
    same(name, COMPILERS[number % len(COMPILERS)])

# ---- data stay, times change

plain, made = make("plain", SMALL)
first, result, trace = multiply(plain)
slow_options = sets(GEMM_IMPL + "same_gemm", GEMM_PARAMS + "more=1.5 us") + impls("same_gemm")
slow, made = make("slow", SMALL, *slow_options)
second, slow_result, slow_trace = multiply(slow)
ok(first.returncode == second.returncode == 0, "a GEMM with a slower pe_gemm verifies", made.said, second.said)
ended, slow_ended = json.loads(result), json.loads(slow_result)
ok(slow_ended["end_ps"] > ended["end_ps"] + 1500000,
   "a GEMM with a slower pe_gemm takes longer", ended["end_ps"], slow_ended["end_ps"])
ok(slow_ended["verify"] == ended["verify"] and slow_ended["bytes"] == ended["bytes"],
   "a slower pe_gemm changes no value and no count of bytes")


def services(text):
    """The time of each GEMM service, by node, command and tile."""
    began, took = {}, {}
    for line in text.splitlines():
        event = json.loads(line)
        name = (event["node"], *(event.get(key) for key in ("cmd", "tile", "stage")))
        if "pe_gemm" in event["node"] and event["ev"] == "engine_start":
            began[name] = event["t"]
        elif "pe_gemm" in event["node"] and event["ev"] == "engine_complete":
            took[name] = event["t"] - began[name]
    return took


fast, slowed = services(trace), services(slow_trace)
ok(fast and fast.keys() == slowed.keys() and all(slowed[key] == fast[key] + 1500000 for key in fast),
   "each GEMM service takes exactly as much longer as the parameter says", fast, slowed)
repeated = run(KBGEN, SMALL, "-o", slow, "-v", *slow_options)
ok(" compile " not in repeated.stderr and repeated.returncode == 0,
   "an unchanged model is not compiled again", repeated.said)
copy = folder("copy")
shutil.copy(os.path.join(OWN, "same_gemm.c"), copy)
changed_options = sets(GEMM_IMPL + "same_gemm", GEMM_PARAMS + "more=1.5 us") + impls("same_gemm", where=copy)
repeated = run(KBGEN, SMALL, "-o", slow, "-v", *changed_options)
ok(" compile " not in repeated.stderr and repeated.returncode == 0,
   "an equal model in another folder is not compiled again", repeated.said)
with open(os.path.join(copy, "same_gemm.c"), "a", encoding="utf-8") as file:
    file.write(f"/* no cache has seen these bytes: {os.urandom(8).hex()} */\n")
repeated = run(KBGEN, SMALL, "-o", slow, "-v", *changed_options)
ok(" compile " in repeated.stderr and repeated.returncode == 0,
   "a model with another byte is compiled again", repeated.said)
write(os.path.join(copy, "twin_gemm.c"), read(os.path.join(OWN, "same_gemm.c")).replace("same_gemm", "twin_gemm"))
twin, made = make("twin", SMALL, *sets(GEMM_IMPL + "twin_gemm", GEMM_PARAMS + "more=1.5 us"),
                  *impls("twin_gemm", where=copy))
hashes = {run(program, "info").stdout.partition("topology ")[2].split(",")[0] for program in (plain, slow, twin)}
ok(len(hashes) == 3, "a machine with another model, or one of another name, has another topology hash", made.said,
   hashes)

# ---- every other part: its share of a time is what its parameters say

VARIED = write(scratch("varied.yaml"), """
system: { name: varied }
sip: { cubes: { rows: 1, cols: 1 } }
cube:
  memory_map: { hbm_slices_per_cube: 2, hbm_slice_mb: 64, sram_mb: 4 }
  noc: { rows: 2, cols: 2, link_bw_gbs: 64 }
  pe_template:
    components:
      pe_dma: { attrs: { wr_engines: 3 } }
      pe_mmu: { attrs: { enabled: true } }
      pe_ipcq: { attrs: { slots: 1 } }
""")
# In ps. A digit of a sum shows how often a part took its share.
MORE = {"router": 1, "port": 10**2, "m_cpu": 10**3, "io_cpu": 10**4, "pcie_ep": 10**5, "switch": 10**6, "host": 10**7}
FIRST, PREPARE, HIT, SEND, RECEIVE, CREDIT = 10**8, 10**9, 5000, 10**10, 10**11, 10**12


def given(part, **values):
    """Parameters of the model of a component: below `attrs`, if the component has that key."""
    key = FABRIC.get(part) or PE + part
    return [f"{key}.{'' if part in FABRIC and part != 'm_cpu' else 'attrs.'}params.{name}={value}"
            for name, value in values.items()]


ORDERS = given("router", last=1) + given("m_cpu", last=1) + given("pe_dma", shortest=1)
TIMES = [word for part, ps in MORE.items() for word in given(part, more=f"{ps} ps")]
TIMES += given("pe_cpu", first=f"{FIRST} ps") + given("pe_dma", prepare=f"{PREPARE} ps") + given("pe_tcm", ports=1)
TIMES += given("pe_mmu", hit=f"{HIT} ps")
TIMES += given("pe_ipcq", send=f"{SEND} ps", receive=f"{RECEIVE} ps", credit=f"{CREDIT} ps")
plain_program, plain_made = make("varied-plain", VARIED)
varied_program, varied_made = make("varied", VARIED, *ALL_SAME, *sets(*TIMES, *ORDERS))
ok(plain_made.returncode == varied_made.returncode == 0 and not varied_made.stderr,
   "a machine with a model of a user for every component is made", plain_made.said, varied_made.said)


def replayed(program, name, steps):
    """The result of a stream: of one program on pe0, or a whole stream."""
    if isinstance(steps, str):
        steps = "launches: [{ program: a, targets: [sip0.cube0.pe0] }]\nprograms:\n  a: [" + steps + "]\n"
        steps = "name: x\n" + steps
    else:
        steps = "name: x\n" + "".join(steps)
    replay = Replay(program, write(scratch(name + ".yaml"), steps), program + "-" + name)
    return json.loads(replay.result) if replay.status == 0 else {"launches": [], "said": replay.said}


def both(name, steps):
    """A stream's result with the built-in models and with those of the user."""
    return replayed(plain_program, name, steps), replayed(varied_program, name, steps)


def ends(result):
    """When the kernels began, and when each command was complete, by (PE, number)."""
    launch = result["launches"][0]
    return launch["start_ps"], {(row["pe"][-1], row["n"]): row["complete_ps"] for row in launch["commands"]}


# Down: port, three routers, m_cpu, two routers, pe_cpu. The request and the response of the load pass one router each.
# Back: two routers, m_cpu, three routers, port, io_cpu. What is not in this list of visits has no share.
LOAD = "{ do: load, from: { space: hbm }, to: 0x200000, bytes: 8192 }"
was, now = both("load", LOAD)
share = 12 * MORE["router"] + MORE["host"] + FIRST + PREPARE
share += 2 * sum(MORE[part] for part in ("port", "m_cpu", "io_cpu", "pcie_ep", "switch"))
ok(was.get("end_ps") == 1528180 and now.get("end_ps") == 1528180 + share,
   "a load takes longer by the share of each part on its way, and of pe_cpu and pe_dma", was, now, share)

# Both 4096 bytes at 512 GB/s: 8000 ps. The built-in TCM reads and writes at once.
was, now = both("tcm", "{ do: load, from: { space: tcm, offset: 0x200000 }, to: 0x300000, bytes: 4096 }")
(start, end), (late_start, late_end) = ends(was), ends(now)
ok(late_end["0", 0] - late_start == end["0", 0] - start + FIRST + PREPARE + 8000,
   "a TCM of one port reads and writes one after the other", end, late_end)

# The first load walks the page table, the second finds the page in the TLB, the third is of a page that was mapped anew.
MAP = "{ do: map, va: 0x10000000, bytes: 65536, to: { space: hbm }, targets: [ sip0.cube0.pe0 ] }"
RUN = "{ do: launch, program: a, targets: [ sip0.cube0.pe0 ] }"
TWICE = ("{ do: load, from: { va: 0x10000000 }, to: 0x200000, bytes: 64 }, "
         "{ do: load, from: { va: 0x10000000 }, to: 0x200000, bytes: 64 }")
was, now = both("pages", [f"host: [{MAP}, {RUN}, {MAP}, {RUN}]\nprograms: {{ a: [{TWICE}] }}\n"])
took = []
for result in (was, now):
    for launch in result["launches"]:
        rows = launch["commands"]
        took.append([row["complete_ps"] - row["submitted_ps"] for row in rows])
slower = 2 * MORE["router"] + PREPARE
ok(len(took) == 4 and took[2] == [took[0][0] + slower, took[0][1] + slower + HIT]
   and took[3] == [took[1][0] + slower, took[1][1] + slower + HIT] and took[1][0] - took[1][1] >= 100000,
   "a page that the TLB of a model has takes the time of its hit, and a map drops the page", took)

# pe0 sends over a ring of one slot: each message waits for the credit of the one before. The shorter one behind them must
# not pass.
was, now = both("ring", ["""launches:
  - parts:
      - { program: a, targets: [sip0.cube0.pe0] }
      - { program: b, targets: [sip0.cube0.pe1] }
programs:
  a:
    - { do: send, id: x, to: sip0.cube0.pe1, from: 0x200000, bytes: 128, async: true }
    - { do: send, id: y, to: sip0.cube0.pe1, from: 0x200000, bytes: 128, async: true }
    - { do: send, to: sip0.cube0.pe1, from: 0x200000, bytes: 64 }
  b:
    - { do: recv, from: sip0.cube0.pe0, to: 0x200000 }
    - { do: recv, from: sip0.cube0.pe0, to: 0x200000 }
    - { do: recv, from: sip0.cube0.pe0, to: 0x200000 }
"""])
(start, end), (late_start, late_end) = ends(was), ends(now)
once, back = PREPARE + SEND + 2 * MORE["router"] + RECEIVE, CREDIT + 2 * MORE["router"]
late = [late_end["1", i] - late_start - (end["1", i] - start) for i in range(3)]
ok(late == [FIRST + (i + 1) * once + i * back for i in range(3)],
   "a pe_ipcq delays sends, receives and credits, and messages on a ring keep their order", late)

# ---- every other part: which goes next

# Three loads from sram, three routers away: the long one is first, since the others are not there yet.
loads = [f"{{ do: load, id: l{i}, from: {{ space: sram, offset: {i << 16} }}, to: {0x200000 + (i << 16)}, bytes: {size}, "
         f"async: true }}" for i, size in enumerate((32768, 8192, 64))]
was, now = both("shortest", ", ".join(loads + ["{ do: wait, for: [l0, l1, l2] }"]))
(_, end), (_, late_end) = ends(was), ends(now)
second, third = end["0", 1] - end["0", 0], end["0", 2] - end["0", 1]
slower = PREPARE + 6 * MORE["router"]
ok(late_end["0", 2] - late_end["0", 0] == third + slower and late_end["0", 1] - late_end["0", 2] == second + slower,
   "a pe_dma that prefers short transfers lets a short load pass a longer one", end, late_end)

# Three stores to sram, at one router, from which a message takes 4096 bytes / 64 GB/s = 64 ns over its link.
stores = [f"{{ do: store, id: s{i}, from: {0x200000 + (i << 16)}, to: {{ space: sram, offset: {i << 16} }}, bytes: 4096, "
          f"async: true }}" for i in range(3)]
was, now = both("last", ", ".join(stores + ["{ do: wait, for: [s0, s1, s2] }"]))
(_, end), (_, late_end) = ends(was), ends(now)
ok([end["0", i] - end["0", 0] for i in (1, 2)] == [64000, 128000]
   and [late_end["0", i] - late_end["0", 0] for i in (1, 2)] == [128000, 64000],
   "a router that prefers the last message lets it pass the one before", end, late_end)

# Three reads by the host of one sram. An m_cpu has one of them in flight; two wait at it. On the way back the data are
# handled one after the other, by the built-in switch for 100 ns, by the host of the user for its share.
reads = [f"{{ do: read, id: r{i}, from: [{{ space: sram, offset: {i << 16} }}], bytes: 64, async: true }}" for i in range(3)]
was, now = both("reads", [f"host: [{', '.join(reads)}, {{ do: wait, for: [r0, r1, r2] }}]\nprograms: {{}}\n"])
done_ps = [[row["done_ps"] - result["memory"][0]["done_ps"] for row in result.get("memory", [])] for result in (was, now)]
ok(done_ps == [[0, 100000, 200000], [0, 2 * MORE["host"], MORE["host"]]],
   "an m_cpu that prefers the last request lets it pass the one before", done_ps)

for bench in (("gemm", *GEMM), ("all_reduce", "size=4096")):
    ended = run(varied_program, "run", *bench)
    ok(ended.returncode == 0 and "verified" in ended.stdout,
       f"{bench[0]} verifies with other times and orders in every component", ended.said)

# ---- parameters

PROBE = write(scratch("params.c"), "#include <kb/impl.h>\n" + "".join(
    f"_Static_assert({claim}, \"\");\n" for claim in (
        "params_a == 19400", "params_b == 2097152", "params_c == 1400000", "params_d == 6400000000", "params_e == 2000",
        "params_f == 12 && params_f_num == 12 && params_f_den == 1", "params_g_num == 17 && params_g_den == 20",
        "params_h == UINT64_MAX", "params_i == 19457", "params_j == 0 && params_j_den == 1", "params_k == 255",
        "sizeof params_f == 8", "sizeof(struct { int member[params_f]; }) == 48")) + """
#if defined params_g || defined params_a_num
#error "a fraction is no whole number, and a quantity is rounded"
#endif
uint64_t params_service(const struct kb_gemm_request *ask) { return ask->pe; }
""")
GIVEN = {"a": "19.4 ns", "b": "2 MiB", "c": "1.4 GHz", "d": "6.4 GB/s", "e": "2 mm", "f": "12", "g": "0.85",
         "h": "18446744073709551615", "i": "19.4565 ns", "j": "0", "k": "0xff"}
for cc in COMPILERS:
    _, made = make("params", SMALL, *sets(GEMM_IMPL + "params", *(GEMM_PARAMS + f"{name}={value}"
                                                                   for name, value in GIVEN.items())),
                   "--impl", PROBE, cc=cc)
    ok(made.returncode == 0 and not made.stderr,
       f"parameters reach a model as constants in base units, {cc}", made.said)
dumped = run(KBGEN, SMALL, "--dump", "model", *slow_options).stdout
ok(f"{GEMM_PARAMS}more" in dumped and "1500000 ps" in dumped, "--dump model shows the parameters of a model", dumped)

# ---- mistakes: each at the topology's line, status 2, nothing written

WRONG = folder("wrong")
HEAD = "#include <kb/impl.h>\n"
SERVICE = "uint64_t mine_service(const struct kb_gemm_request *ask) { return ask->m; }\n"
AT = "topo.yaml:2:55: error: cube.pe_template.components.pe_gemm.impl: "
TOPOLOGY = "system: { name: wrong }\ncube: { pe_template: { components: { pe_gemm: { impl: mine } } } }\n"


def refused(name, text, *said, topology=TOPOLOGY, files=("mine.c",), options=(), cc=COMPILERS[0]):
    for left in os.listdir(WRONG):
        os.unlink(os.path.join(WRONG, left))
    for file, content in [("topo.yaml", topology)] + [(file, text) for file in files]:
        write(os.path.join(WRONG, file), content)
    before = sorted(os.listdir(WRONG))
    wrong = []
    for check in ([], ["--check"]):
        ended = run(KBGEN, "topo.yaml", "--cc", cc, *check, *(word for file in files for word in ("--impl", file)),
                    *options, cwd=WRONG)
        if ended.returncode != 2 or ended.stdout or any(part not in ended.stderr for part in said):
            wrong += ["want status 2 and: " + " ... ".join(said), ended.said]
    if sorted(os.listdir(WRONG)) != before:
        wrong.append(f"something was written: {os.listdir(WRONG)}")
    ok(not wrong, f"{name} is refused", *wrong)


MODEL = AT + "mine.c is no model of it", "it has to define uint64_t mine_service(const struct kb_gemm_request *ask)"
for cc in COMPILERS:
    refused(f"a model without its function, {cc},", HEAD, *MODEL, "mine_service", cc=cc)
    refused(f"a model that only declares its function, {cc},", HEAD + SERVICE.partition("{")[0] + ";\n", *MODEL,
            "alias", cc=cc)
    refused(f"a model with another signature, {cc},", HEAD + "uint64_t mine_service(uint64_t m) { return m; }\n",
            *MODEL,
            "conflicting types", "mine.c:2:10", cc=cc)
    refused(f"a model with another type of result, {cc},", HEAD + SERVICE.replace("uint64_t", "double"), *MODEL,
            "conflicting types", cc=cc)
    refused(f"a model with a static function, {cc},", HEAD + "static " + SERVICE, *MODEL, "static declaration", cc=cc)
    refused(f"a model that is not C, {cc},", "not C\n", *MODEL, "mine.c:1:", cc=cc)
    refused(f"a model that uses a parameter that is not given, {cc},", SERVICE.replace("ask->m", "mine_speed"), *MODEL,
            "mine_speed",
            options=sets(GEMM_PARAMS + "sped=1"), cc=cc)
refused("a model of another kind of component", read(os.path.join(OWN, "same_math.c")).replace("same_math", "mine"),
        *MODEL)
MEMORY = "system: { name: wrong }\ncube: { hbm_ctrl: { impl: mine } }\n"
NEEDS = ("topo.yaml:2:27: error: cube.hbm_ctrl.impl: mine.c is no model of it", "and KB_STATE(mine);")
STATE = read(os.path.join(OWN, "same_hbm.c")).replace("same_hbm", "mine")
refused("a memory model without its state", STATE.replace("KB_STATE(mine);", ""), *NEEDS, "mine_state", topology=MEMORY)
refused("a memory model without its struct", HEAD + "KB_STATE(mine);\n", *NEEDS, "incomplete", topology=MEMORY)
refused("a memory model whose states are too large", HEAD + "struct mine { char all[300 << 20]; };\nKB_STATE(mine);\n",
        NEEDS[0], "all states fit into 1 GiB", topology=MEMORY)
refused("an impl whose file is not given", "", AT + "no --impl gives mine.c",
        "--impl FILE names the C file mine.c", files=())
refused("an impl whose file has another name", SERVICE, AT + "no --impl gives mine.c",
        "did you mean 'mind'?", files=("mind.c",))
refused("a file that no component names", SERVICE, "kbgen: --impl other.c: no component of topo.yaml has `impl: other`",
        files=("mine.c", "other.c"))
refused("a file for a machine of built-in models", SERVICE, "kbgen: --impl mine.c: no component", topology="{}\n")
refused("a file that does not exist", SERVICE, "kbgen: --impl none.c: No such file", options=("--impl", "none.c"))
refused("a file that is given twice", SERVICE, "kbgen: --impl gives two files mine.c", options=("--impl", "./mine.c"))
for path in ("mine.cc", "mi-ne.c", "1st.c", ".c"):
    refused(f"a file named {path}", SERVICE, "--impl takes a file NAME.c, NAME being a name of ",
            f"letters, digits and _ that does not begin with a digit; not '{path}'", options=("--impl", path))
refused("one file for two components", SERVICE, "mine.c models one part alone",
        "it models this one already", options=sets("cube.sram.impl=mine"))
ROUTER = "system: { name: wrong }\ncube: { noc: { router: { impl: mine } } }\n"
HANDLES = read(os.path.join(OWN, "same_router.c")).replace("same_router", "mine")
refused("a router's model without its choice", HANDLES.partition("uint32_t mine_next")[0],
        "topo.yaml:2:32: error: cube.noc.router.impl: mine.c is no model of it",
        "it has to define struct kb_handled mine_service(struct mine *state, const struct kb_head_request *ask), "
        "uint32_t mine_next(struct mine *state, const struct kb_head_queue *ask) and KB_STATE(mine);", "mine_next",
        topology=ROUTER)
refused("a router's model that chooses from another queue", HANDLES.replace("kb_head_queue", "kb_dma_queue"),
        "topo.yaml:2:32: error: cube.noc.router.impl: mine.c is no model of it", "conflicting types", topology=ROUTER)
for name in ("state", "service", "next", "nodes", "bytes", "a_num", "a_den"):
    refused(f"a parameter named {name}", SERVICE, f"'{name}' means something else",
            options=sets(f"{GEMM_PARAMS}{name}=1"))

# ---- impossible times and choices

for name, part, want in (("late", PE + "pe_gemm", "simulated time runs past 2^64 ps (213 days): late_service of small"),
                         ("early", "cube.hbm_ctrl", "early_service of small: a read of")):
    extra = sets("cube.hbm_ctrl.attrs.params.by=1 ps") if name == "early" else []
    program, made = make(name, SMALL, *sets(f"{part}.impl={name}"), *extra, *impls(name))
    ended = run(program, "run", "gemm", *GEMM)
    ok(ended.returncode == 1 and want in ended.stderr,
       f"{name}.c, whose times are impossible, stops the run", made.said, ended.said)

# What a model that repeats the built-in one says instead, the stream, and how the run ends. With `last` and `shortest`
# there is a choice to make.
STORES = ", ".join(stores + ["{ do: wait, for: [s0, s1, s2] }"])
TWO_SENDS = ", ".join(["{ do: send, to: sip0.cube0.pe1, from: 0x200000, bytes: 64 }"] * 2)
IMPOSSIBLE = (
    ("a router that is done with a message before it arrives", "router", "{state->free_ps, start_ps", "{ask->at_ps - 1, start_ps",
     LOAD, "wrong_router_service of varied: a data message that reaches sip0.cube0.noc.r0c0 at 741095 ps cannot"),
    ("a router that keeps a control message too long", "router", "{length_ps, 0}", "{UINT64_C(1) << 50, 0}",
     LOAD, "wrong_router_service of varied: a control message that reaches sip0.cube0.noc.r0c1 at 0 ps cannot"),
    ("a router that chooses what is not there", "router", "same_router_last ? ask->count - 1 : 0", "ask->count",
     STORES, "wrong_router_next of varied: it chooses number 2 of 2 that wait at sip0.cube0.noc.r0c0"),
    ("a pe_dma that chooses what is not there", "dma", "return best;", "return ask->count;",
     LOAD, "wrong_dma_next of varied: it chooses number 1 of 1 that wait for sip0.cube0.pe0 at 705080 ps, which does not"),
    ("a pe_dma that chooses what is not ready", "dma", "waiting->ready && (waiting->first", "(waiting->first",
     TWO_SENDS, "wrong_dma_next of varied: it chooses number 0 of 1 that wait for sip0.cube0.pe0 at"),
    ("a pe_dma that never chooses", "dma", "return best;", "return KB_NONE;",
     LOAD, "load 0, tile 0 at stage DMA_READ, which the model of pe_dma does not choose"),
    ("a pe_dma that takes too long", "dma", "return same_dma_prepare;", "return UINT64_MAX;",
     LOAD, "simulated time runs past 2^64 ps (213 days): wrong_dma_service of varied"),
    ("a pe_cpu that takes too long", "cpu", "return kb_attrs.pe_cpu_overhead_ps", "return UINT64_MAX",
     LOAD, "simulated time runs past 2^64 ps (213 days): wrong_cpu_service of varied"),
    ("a TCM that answers before it is asked", "tcm", "{start_ps, *free_ps", "{start_ps, ask->at_ps - 1",
     LOAD, "wrong_tcm_service of varied: a write of 8192 bytes"),
)
for title, name, before, after, steps, want in IMPOSSIBLE:
    text = read(os.path.join(OWN, f"same_{name}.c"))
    own = write(os.path.join(folder("wrong-models"), f"wrong_{name}.c"),
                text.replace(before, after).replace(f"same_{name}", f"wrong_{name}"))
    key = SAME["same_" + name]
    program, made = make("impossible", VARIED, *sets(f"{key}.impl=wrong_{name}"), "--impl", own, "-O", "0")
    got = replayed(program, "impossible", steps)
    ok(before in text and made.returncode == 0 and want in got.get("said", ""), f"{title} stops the run", made.said, got)

# ---- the models that come with kbgen

SWAPPED = impls("systolic", "vector", "hbm_banks", where=SHOWN)
told = []
for cc in COMPILERS:
    program, made = make(f"swapped-{cc}", os.path.join(SHOWN, "swapped.yaml"), *SWAPPED, cc=cc)
    ended, result, trace = multiply(program)
    ok(made.returncode == 0 and not made.stderr and ended.returncode == 0, f"a GEMM on swapped.yaml verifies, {cc}",
       made.said, ended.said)
    told.append(without_host(result) + trace)
ended = run(program, "run", "gemm", "m=256", "k=256", "n=256", "tile_m=16", "tile_n=16", "tile_k=16", "--data", "off",
            "--profile")
found = re.search(r"(\d+) stage services: (\d+) in skipped periods, (\d+) on PEs", ended.stderr)
ok(found and int(found[1]) > 5000 and found[2] == found[3] == "0",
   "with models of a user every event is simulated: fast-forward does not know their state", ended.said)
ok(told[0] == told[-1],
   "both compilers give the same result and trace on swapped.yaml", first_difference(told[0], told[-1]))
done()
