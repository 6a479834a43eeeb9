#!/usr/bin/python3
"""slices: machines whose PEs and HBM slices differ in number, and machines without HBM or without an sram. limit: 120

What a PE's own slice is, rings in a slice that PEs share, memories that do not exist, and what each subcommand says of
such machines.
"""
import json
import os
import re

from harness import LANES, ROOT, Replay, first_difference, ok, read, result, run, scratch, simulator, suite, verifies
from harness import without_host, write

MACHINES = {
    # 10 PEs and 4 slices in two cubes: PEs 0 to 2 of a cube have its slice 0, PEs 3 and 4 its slice 1.
    "shared": """
sip: { cubes: { rows: 1, cols: 2 } }
cube:
  pes: 5
  memory_map: { hbm_slices_per_cube: 2, hbm_slice_mb: 64, sram_mb: 4 }
  noc: { rows: 3, cols: 3 }
  pe_template: { components: { pe_ipcq: { attrs: { buffer: hbm } }, pe_mmu: { attrs: { enabled: true } } } }
""",
    # PE 0 has slice 0, PE 1 slice 2.
    "many": """
sip: { cubes: { rows: 1, cols: 1 } }
cube:
  pes: 2
  memory_map: { hbm_slices_per_cube: 4, hbm_slice_mb: 64, sram_mb: 4 }
  hbm_layout: corners
""",
    "no_hbm": """
sip: { cubes: { rows: 1, cols: 2 } }
cube:
  pes: 2
  memory_map: { hbm_slices_per_cube: 0, sram_mb: 4 }
  noc: { rows: 2, cols: 2 }
""",
    "tcm_alone": """
sip: { cubes: { rows: 1, cols: 2 } }
cube:
  pes: 3
  memory_map: { hbm_slices_per_cube: 0, sram_mb: 0 }
  noc: { rows: 2, cols: 2 }
""",
}
made = {}


def machine(name, rings=None):
    """A simulator of one of MACHINES; with another memory for rings, it is another one."""
    settings = (LANES,) + ((f"cube.pe_template.components.pe_ipcq.attrs.buffer={rings}",) if rings else ())
    path = (name, rings)
    if path not in made:
        made[path] = simulator(write(scratch(name + ".yaml"), f"system: {{ name: {name} }}{MACHINES[name]}"),
                               f"{name}_{rings}" if rings else name, settings=settings)
    return made[path]


def replayed(program, name, text):
    return Replay(program, write(scratch(name + ".yaml"), f"name: stream\n{text}"), scratch(name))


def same_streams(program, title, one, other):
    """Two streams that say the same in two ways have one result, one trace and one set of statistics."""
    got = [replayed(program, f"same{i}", text) for i, text in enumerate((one, other))]
    told = [one.result + one.trace + one.stats for one in got]
    ok(got[0].status == 0 and "hbm_ctrl" in got[0].stats and told[0] == told[1], title, first_difference(*told),
       got[0].said, got[1].said)


# ---- own slices

HOST = """host: [ {} ]
programs:
  a: [ {{{{ do: load, from: {}, to: 0x200000, bytes: 4096 }}}} ]
"""


def launch(address):
    """A load by each PE of the machine `shared`; `address` has the memory's by the number of the PE in its cube."""
    parts = "".join(f"      - {{ program: p{pe}, targets: ['*.pe{pe}'] }}\n" for pe in range(5))
    programs = "".join(f"  p{pe}: [ {{ do: load, from: {address(pe)}, to: 0x200000, bytes: 4096 }} ]\n" for pe in range(5))
    return f"launches:\n  - parts:\n{parts}programs:\n{programs}"


def own_slices():
    program, own = machine("shared"), [0, 0, 0, 1, 1]
    same_streams(program, "an hbm address without a PE names the own slice of each PE",
                 launch(lambda pe: f"{{ space: hbm, offset: {4096 * pe} }}"),
                 launch(lambda pe: f"{{ space: hbm, pe: {own[pe]}, offset: {4096 * pe} }}"))
    virtual = HOST.format("{{ do: map, va: 0x100000, bytes: 65536, to: {{ space: hbm{} }}, targets: ['*.pe4'] }},"
                          " {{ do: launch, program: a, targets: ['*.pe4'] }}", "{{ va: 0x100000 }}")
    same_streams(program, "in a map as well", virtual.format(""), virtual.format(", pe: 1"))
    memory = HOST.format("{{ do: write, to: [ {{ space: hbm{} }} ], bytes: 4096 }}", "{{ space: sram }}")
    same_streams(program, "in a memory request of the host it names slice 0", memory.format(""), memory.format(", pe: 0"))
    for name, want in (("shared", ["cube0.hbm_ctrl.pe0", "cube0.hbm_ctrl.pe1", "cube1.hbm_ctrl.pe0", "cube1.hbm_ctrl.pe1"]),
                       ("many", ["cube0.hbm_ctrl.pe0", "cube0.hbm_ctrl.pe2"])):
        ended, got = result(machine(name), "elementwise", "rows=2000", "cols=64", name=name)
        used = [row["id"].removeprefix("sip0.") for row in got.get("hbm_slices", [])]
        ok(verifies(got) and used == want, f"tensors of PEs lie in their own slices of {name}", used, ended.said)


def bounds():
    """10 PEs have 4 slices, of which 3 PEs of a cube share one."""
    _, got = result(machine("shared"), "elementwise", "rows=2000", "cols=64", "dtype=f32", "residual=true")
    problem = got["bounds"][0]["problem"]["memory_ps"]
    moved = got["bytes"]["hbm"]
    want = -(-(moved["read"] + moved["write"]) // 4) * 10**12 // (4 * 32 * 10**9)
    ok(abs(problem - want) <= want // 100, "the roofline counts slices and not PEs", problem, want)


# ---- rings

def rings():
    """Rings of one PE to others that share a slice lie at the same bytes of it."""
    _, got = result(machine("shared"), "all_to_all", "size=4000", "dtype=f32")
    ok(verifies(got), "messages in rings of a shared slice do not mix", got.get("verify"))
    sends = "launches:\n  - { program: a, targets: [sip0.cube0.pe0] }\n" \
            "programs:\n  a: [ { do: send, to: sip0.cube0.pe1, from: 0x200000, bytes: 64 } ]\n"
    receives = "launches:\n  - { program: a, targets: [sip0.cube0.pe0] }\n" \
               "programs:\n  a: [ { do: recv, from: sip0.cube0.pe1, to: 0x200000 } ]\n"
    for name, program in (("no_hbm", machine("no_hbm", "hbm")), ("tcm_alone", machine("tcm_alone", "sram"))):
        got = replayed(program, "send", sends)
        ok(got.status == 1 and "KERNEL_ERROR" in got.result and "the ring's memory does not exist" in got.said,
           f"a send to a ring that {name} has no memory for is a KERNEL_ERROR", got.said)
        got = replayed(program, "receive", receives)
        ok(got.status == 1 and "DEADLOCK" in got.said, f"a receive from it on {name} waits", got.said)


# ---- what does not exist

def absent():
    for name, address, said in (("no_hbm", "{ space: hbm }", "the machine has no HBM"),
                                ("tcm_alone", "{ space: sram }", "the machine has no sram"),
                                ("shared", "{ space: hbm, pe: 2 }", "there is no such HBM slice"),
                                ("shared", "{ space: tcm, pe: 5, offset: 0x200000 }", "there is no such PE"),
                                ("many", "{ space: hbm, pe: 4 }", "there is no such HBM slice")):
        got = replayed(machine(name), "absent", "launches:\n  - { program: a, targets: [sip0.cube0.pe0] }\nprograms:\n"
                       f"  a: [ {{ do: load, from: {address}, to: 0x200000, bytes: 64 }} ]\n")
        ok(got.status == 1 and "BAD_ADDRESS" in got.result and said in got.said, f"a load of {address} on {name} is a fault",
           got.said)
        request = f"{{ do: read, from: [ {address} ], bytes: 64 }}"
        host = replayed(machine(name), "host", f"host: [ {request} ]\nprograms: {{ a: [ {{ do: delay, ns: 1 }} ] }}\n")
        ok(host.status == 1 and "BAD_ADDRESS" in host.result and said in host.said, f"the host's read of it is one too",
           host.said)
    for name, words, said in (("no_hbm", ["gemm", "m=16384", "k=16384", "n=64"], "no room for tensor 'a'"),
                              ("tcm_alone", ["gemm"], "tensor 'a': the machine has no HBM"),
                              ("tcm_alone", ["all_reduce", "space=sram"], "tensor 'in': the machine has no sram")):
        ended = run(machine(name), "run", *words)
        ok(ended.returncode == 2 and re.search(rf"kernels/\w+\.c?h?:\d+: error: kb_tensor_new: {said}", ended.stderr),
           f"a tensor in a memory that {name} lacks, or lacks the room for, is refused where it is made", ended.said)
    for name, space in (("no_hbm", "sram"), ("tcm_alone", "tcm")):
        _, got = result(machine(name), "broadcast", "size=4096", f"space={space}")
        ok(verifies(got) and not got["hbm_slices"], f"a bench in {space} runs on {name}", got)
    for bench, note in ((("gemm", "m=200", "k=64", "n=96"), []),
                        (("broadcast", "size=4096"), ["space=hbm: sram is used, the machine has no HBM"])):
        _, got = result(machine("no_hbm"), *bench)
        bounds = got["bounds"][0]
        ok(verifies(got) and got.get("notes", []) == note and bounds["algorithm"]["memory_ps"] >= bounds["problem"]["memory_ps"] > 0
           and got["bytes"]["sram"]["read"] > 0, f"tensors of {bench[0]} lie in the srams of no_hbm, which its bounds count", got)


def layer():
    """What a cube's PEs share lies in HBM if there is no sram."""
    program = simulator(write(scratch("no_sram.yaml"), f"system: {{ name: no_sram }}{MACHINES['shared']}"), "no_sram",
                        settings=(LANES, "cube.memory_map.sram_mb=0"))
    ended, got = result(program, "layer", "tokens=8", "dtype=f32")
    ok(verifies(got), "a layer runs on a machine without sram", ended.said)


# ---- what subcommands say

def info():
    for name, lines in (("shared", ["PEs        10: 5 in each cube", "  hbm      128 GB/s       512 GB/s",
                                    "hbm        256 MiB: 2 slices in each cube, 64 MiB and 4 pseudo channels each"]),
                        ("no_hbm", ["hbm        none", "sram       8 MiB: 4 MiB for each cube"]),
                        ("tcm_alone", ["hbm        none", "sram       none", "tcm        24 MiB: 4 MiB for each PE"])):
        said = run(machine(name), "info").stdout
        ok(all(line in said for line in lines) and ("  sram     " in said) == (name != "tcm_alone")
           and ("  hbm      " in said) == (name == "shared"), f"info lists what {name} has", said)
    single = simulator(write(scratch("single.yaml"), '''system: { name: single }
cube: { pes: 2, memory_map: { hbm_slices_per_cube: 1, hbm_slice_mb: 64, sram_mb: 0 }, hbm_ctrl: { attrs: { pcs: 1 } } }
'''), "single")
    said = run(single, "info").stdout
    ok("hbm        1 GiB: 1 slice in each cube, 64 MiB and 1 pseudo channel each\n" in said, "one slice is one", said)
    shared, alike = run(machine("shared"), "info").stdout, re.search(r"(?m)^  f16 .* (\S+) FLOP/B$", run(
        machine("shared"), "info").stdout)
    ok(alike and float(alike[1]) == 2 * 64 * 64 * 5 / 2 / 128, "the ridge of the roofline is that of 5 PEs with 2 slices", shared)


def probes():
    for name, words, status, said in (
            ("shared", ["sip0.cube0.pe4", "sip0.cube0.hbm_ctrl.pe1"], 0, "a store by the PE's pe_dma"),
            ("shared", ["sip0.cube0.pe4", "sip0.cube0.hbm_ctrl.pe2"], 2, "shared has no end 'sip0.cube0.hbm_ctrl.pe2'"),
            ("no_hbm", ["--matrix", "pe:hbm"], 2, "matrix pe:hbm: no_hbm has no hbm"),
            ("tcm_alone", ["--matrix", "sram:pe"], 2, "matrix sram:pe: tcm_alone has no sram"),
            ("tcm_alone", ["host", "sip0.cube1.m_cpu"], 0, "part of a launch"),
            ("tcm_alone", ["--matrix", "cube:cube"], 0, "cube:cube on tcm_alone"),
            ("no_hbm", ["--matrix", "pe:sram"], 0, "pe:sram on no_hbm")):
        ended = run(machine(name), "probe", *words)
        ok(ended.returncode == status and said in ended.said, f"probe {' '.join(words)} on {name} ends with {status}",
           ended.said)
    ended = run(machine("shared"), "probe", "--matrix", "pe:hbm", "--json", "-")
    columns = [name[len("sip0."):] for name in json.loads(ended.stdout)["probe_matrix"]["to"]]
    ok(columns == [f"cube{cube}.hbm_ctrl.pe{slice}" for cube in (0, 1) for slice in (0, 1)],
       "the matrix pe:hbm has a column for each slice", columns, ended.said)


def outputs():
    """All outputs of a run of each machine are written, and have the forms of their schemas."""
    for name, words in (("shared", ["gemm", "m=200", "k=64", "n=96"]), ("many", ["gemm", "m=200", "k=64", "n=96"]),
                        ("no_hbm", ["all_reduce", "size=4096", "space=sram"]),
                        ("tcm_alone", ["all_reduce", "size=4096", "space=tcm"])):
        path = {what: scratch(f"{name}.{what}") for what in ("trace", "stats", "timeline", "waves", "report", "oplog")}
        options = [word for what, file in path.items() for word in (f"--{what}", file)]
        program = machine(name)
        ended, got = result(program, *words, *options, "--why", "--trace-all", name=name)
        ok(verifies(got) and all(os.path.getsize(file) for file in path.values()), f"a run on {name} writes every output",
           ended.said)
        rows = {series: len(of["row_of"]) for series, of in got["activity"]["frames"]["series"].items()}
        slices = {"shared": 4, "many": 4}.get(name)
        ok(rows.get("hbm") == slices and rows["kernel"] == {"shared": 10, "many": 2, "no_hbm": 4, "tcm_alone": 6}[name],
           f"its report on {name} has a row for each slice and for each PE", rows)
        _, exact = result(program, *words, "--exact-events", name=name + "_exact")
        _, plain = result(program, *words, name=name + "_plain")
        ok(without_host(json.dumps(exact)) == without_host(json.dumps(plain)), f"{name} skips nothing that does not repeat")


def models():
    """Models of users serve the slices that there are, and none where there is none."""
    impls = [os.path.join(ROOT, "tests", "impl", name + ".c") for name in ("same_hbm", "same_sram")]
    settings = ("cube.hbm_ctrl.impl=same_hbm", "cube.sram.impl=same_sram", LANES)
    for name, words in (("shared", ["gemm", "m=40", "k=32", "n=24"]), ("many", ["gemm", "m=40", "k=32", "n=24"]),
                        ("tcm_alone", ["all_reduce", "size=512", "space=tcm"])):
        own = simulator(scratch(name + ".yaml"), name + "_own", settings=settings, impls=impls)
        traces = [read(scratch(f"{name}.own.jsonl"))
                  for program in (machine(name), own)
                  if run(program, "run", *words, "--trace", scratch(f"{name}.own.jsonl")).returncode == 0]
        ok(len(traces) == 2 and traces[0] and traces[0] == traces[1], f"models that do the same give the same trace on {name}",
           first_difference(*traces) if len(traces) == 2 else "")


def numbers():
    """The size of an sram is a number, whether there is one is not."""
    for name, value, status in (("shared", "2", 0), ("shared", "0", 2), ("tcm_alone", "2", 2), ("tcm_alone", "0", 0)):
        ended = run(machine(name), "info", "--set", f"cube.memory_map.sram_mb={value}")
        said = "cube.memory_map.sram_mb decides what is compiled"
        ok(ended.returncode == status and (said in ended.stderr) == (status == 2),
           f"sram_mb={value} for a run of {name} ends with {status}", ended.said)
    ended = run(machine("shared"), "info", "--set", "cube.pes=2")
    ok(ended.returncode == 2 and "cube.pes decides what is compiled" in ended.stderr, "a run cannot change cube.pes",
       ended.said)
    ended = run(machine("shared"), "info", "--set", "cube.memory_map.hbm_slices_per_cube=2", "--set", "cube.pes=5")
    ok(ended.returncode == 0, "but it may say again what the machine has", ended.said)


suite(own_slices, bounds, rings, absent, layer, info, probes, outputs, models, numbers)
