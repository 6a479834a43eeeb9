#!/usr/bin/python3
"""set: `--set` of a run gives what a build with that option gives. limit: 300

tests/set.t [COUNT [SEED]]: random changes of several keys (40, drawn from 1), after each key by itself.
"""
import json
import os
import random
import re
import shlex
import shutil
import sys

from harness import KBGEN, ROOT, SAN, folder, ok, read, run, simulator, suite, write

COUNT, SEED = (sys.argv[1:] + [None] * 2)[:2]
COUNT, SEED = int(COUNT or (3 if SAN else 40)), SEED or "1"
SAYS = "no compiler, no linker"
WHERE = folder("machine")
CACHED = os.environ | {"KBGEN_CACHE": os.path.join(WHERE, "cache")}     # with this machine's structure alone at first
PE = "cube.pe_template.components."
COMMON = """# included
cube:
  memory_map: { hbm_slices_per_cube: 2, hbm_slice_mb: 64, sram_mb: 4 }
  noc: { rows: 2, cols: 2 }
  pe_template: { components: { pe_tcm: { attrs: { size_mb: 1 } }, pe_math: { attrs: { lanes: { f16: 32 } } } } }
"""
OWN = """include: parts/common.yaml
system: { name: base }
sip: { cubes: { rows: 1, cols: 2 } }
cube: { pe_template: { components: { pe_tcm: { attrs: { reserved_mb: 0.5 } } } } }
"""
BUILT_WITH = "cube.hbm_ctrl.attrs.access_ns=40"
RUNS = (("gemm", {"m": 64, "k": 64, "n": 64, "tile_m": 32, "tile_k": 32, "tile_n": 32}),
        ("all_reduce", {"size": 4096}), ("softmax", {"rows": 16, "cols": 128}))
# Values of keys whose kind is no number.
OTHERS = {
    "system.name": "renamed", "system.wire.ns_per_mm": "0.3", "sip.io.attach": "[{cube: 1, side: e}]",
    "cube.m_cpu.at": "[1, 0]", "cube.sram.at": "[0, 0]", "cube.pe_layout": "{explicit: [[0, 1], [1, 0]]}",
    "cube.hbm_layout": "corners", "cube.pes": "3",
    PE + "pe_mmu.attrs.enabled": "true", PE + "pe_ipcq.attrs.buffer": "sram",
    PE + "pe_gemm.attrs.shared_resource": "accel_slot", PE + "pe_math.attrs.shared_resource": "mine",
    PE + "pe_math.attrs.cost": "{exp: 9, gelu_own: 3}", PE + "pe_tcm.attrs.size_mb": "2",
    PE + "pe_ipcq.attrs.overhead_ns": "0", PE + "pe_tcm.attrs.reserved_mb": "0.75", PE + "pe_ipcq.attrs.slot_kb": "8",
    PE + "pe_tcm.attrs.buffers": "operands", PE + "pe_dma.attrs.reads": "paired",
    PE + "pe_dma.attrs.max_request_bytes": "700", PE + "pe_dma.attrs.requests_in_flight": "3",
    "cube.noc.planes": "[{order: yx}]", "cube.noc.response": "own",
    # Alone, any other value is wrong.
    "cube.noc.wrap": "none", "sip.cubes.wrap": "none", "system.links": "[]", "cube.noc.plane_of.read": "0",
    "cube.noc.plane_of.write": "0", "cube.noc.plane_of.message": "0",
}


def schema_keys(schema, path=""):
    """Every key that has a value of its own, with its schema."""
    for name, value in schema.get("properties", {}).items():
        key = f"{path}.{name}" if path else name
        if value.get("type") == "object" and "properties" in value:
            yield from schema_keys(value, key)
        elif name not in ("kind", "impl", "params", "include"):
            yield key, value


LINKS = "[{a: {sip: 0, cube: 1, side: e}, b: {sip: 1, cube: 1, side: e}, bw_gbs: %s, latency_ns: %s}]"
KEYS = dict(schema_keys(json.loads(run(KBGEN, "--dump", "schema").stdout)))


def value_of(key, draw):
    """Another valid value, as --set has it."""
    if key in OTHERS:
        return OTHERS[key]
    form = KEYS[key]
    if "default" not in form:                           # by dtype
        return str(draw.randint(1, 64))
    if form.get("type") == "integer":
        return str(form["default"] + draw.randint(1, 3)) if form["maximum"] > 2 else "2"
    if any(kind.get("type") == "null" for kind in form["anyOf"]) and draw.random() < 0.15:
        return "~"
    number = round((form["default"] or 3) * draw.choice((0.25, 0.5, 2, 3)), 3)
    return str(int(number) if number == int(number) else number)


def compact(text):
    """A result without its figures of the host, in the order in which it was written."""
    value = json.loads(text)
    value.pop("host", None)
    return json.dumps(value)


def machine():
    write(os.path.join(folder("machine", "parts"), "common.yaml"), COMMON)
    write(os.path.join(WHERE, "base.yaml"), OWN)
    shutil.rmtree(CACHED["KBGEN_CACHE"], ignore_errors=True)
    path = os.path.join(WHERE, "base")
    made = run(KBGEN, "base.yaml", "-o", path, "--set", BUILT_WITH, cwd=WHERE, env=CACHED)
    ok(made.returncode == 0, "kbgen makes the machine of this suite", made.said)
    return path


def words(changes):
    return [word for change in changes for word in ("--set", "=".join(change))]


def build(changes):
    """Builds a machine; returns how kbgen ended, and the path."""
    path = os.path.join(WHERE, "built")
    return run(KBGEN, "base.yaml", "-v", "-o", path, "--set", BUILT_WITH, *words(changes), cwd=WHERE, env=CACHED), path


def values(changes):
    """Changes as an object of a point: numbers as JSON has them, all else as texts of YAML."""
    def flow(value):
        return value if re.match(r"[-\d.]+$|[\[{~]|true", value) else json.dumps(value)
    return "{" + ", ".join(f'"{key}": {flow(value)}' for key, value in changes) + "}"


def fed(text, *command):
    """Runs a command with a text on its standard input."""
    with open(write(os.path.join(WHERE, "input"), text), encoding="utf-8") as file:
        return run(*command, stdin=file)


def answers(program, bench, params, all_changes):
    """A line for each, from one process."""
    lines = "".join('{"--set": %s}\n' % values(changes) for changes in all_changes)
    given = [f"{name}={value}" for name, value in params.items()]
    ended = fed(lines, program, "run", bench, *given, "--data", "off", "--points", "-")
    return ended.stdout.splitlines()


def compare(title, program, all_changes):
    """Each set of changes in a process of many, and as a build: the same result, or that it needs a build."""
    wrong, built = [], 0
    per_run = {bench: answers(program, bench, params, all_changes) for bench, params in RUNS}
    for number, changes in enumerate(all_changes):
        bench, params = RUNS[number % len(RUNS)]
        got = per_run[bench][number] if number < len(per_run[bench]) else "{}"
        made, path = build(changes)
        if made.returncode:
            wrong.append(f"{changes}: {made.said}")
        elif SAYS not in made.stderr:
            built += 1
            if "another value needs a build" not in got:
                wrong.append(f"{changes} is structure, but is not refused: {got[:200]}")
        else:
            given = [f"{name}={value}" for name, value in params.items()]
            want = run(path, "run", bench, *given, "--data", "off", "--json", "-").stdout
            if compact(want) != compact(got):
                wrong.append(f"{changes}: {bench}\nwant {compact(want)[:300]}\ngot  {compact(got)[:300]}")
    ok(not wrong, f"{title}: {len(all_changes)} machines, {built} of which need a build", *wrong[:5])
    return built


def each_key(program):
    draw = random.Random(SEED)
    changes = [[(key, value_of(key, draw))] for key in KEYS]
    changes += [[(PE + "pe_math.attrs.cost", "{exp: 9, div: 1}")], [("system.name", 70 * "n")],
                [("sip.ucie.bw_gbs", "~")], [("cube.noc.rows", "2")],
                [("cube.pe_layout", "{explicit: [[0, 0], [1, 0]]}")],          # as it is
                [("cube.noc.rows", "3"), ("cube.noc.wrap", "cols")], [("sip.cubes.cols", "3"), ("sip.cubes.wrap", "rows")],
                [("cube.noc.planes", "[{}, {order: yx}]")],
                [("cube.noc.planes", "[{}, {}]"), ("cube.noc.plane_of.write", "1")],
                [("system.sips", "2"), ("system.links", LINKS % (50, 300))]]
    built = compare("a key by itself gives what a build gives", program, changes[::12 if SAN else 1])
    ok(SAN or built >= 17, "keys that decide what is compiled are among them", built)


def several_keys(program):
    draw = random.Random(SEED)
    numbers = [key for key in KEYS if key.endswith(("_ns", "_mm", "_gbs", "_ghz", "_cycles", "_depth", "slots", "entries",
                                                    "_kb", "_mb", "_bytes", ".f16", "name", "enabled", "buffer"))]
    compare("several keys give what a build gives", program,
            [[(key, value_of(key, draw)) for key in draw.sample(numbers, draw.randint(2, 8))] for _ in range(COUNT)])


def messages(program):
    """What a build refuses, a run refuses with the same words at the same places."""
    for wrong in (["cube.noc.link_bw_gbs=-1"], ["cube.noc.link_bw_gb=1"], ["cube.noc.link_bw_gbs"], ["=1"],
                  ["cube.noc=~"], ["cube.noc.link_bw_gbs=[1"], ["cube.noc.link_bw_gbs="], ["sip.cubes.rows=99"],
                  [PE + "pe_tcm.attrs.reserved_mb=3"], [PE + "pe_tcm.attrs.size_mb=0.25"], ["cube.m_cpu.at=[5, 0]"],
                  [PE + "pe_ipcq.attrs.overhead_ns=3"], ["cube.memory_map.hbm_slice_mb=0.3 B"], ["system.name=7"],
                  [PE + "pe_math.attrs.lanes={f17: 3}"], [PE + "pe_ipcq.attrs.buffer=tsm"],
                  ["system.wire.ns_per_mm=~", "cube.noc.pitch_mm=1e9", "sip.ucie.bw_gbs=true"]):
        options = [word for option in wrong for word in ("--set", option)]
        want = run(KBGEN, "base.yaml", "--check", "--set", BUILT_WITH, *options, cwd=WHERE)
        got = run(program, "run", "gemm", "--data", "off", *options)
        ok(want.returncode == got.returncode == 2 and want.stderr == got.stderr and len(want.stderr) > 20,
           f"--set {' '.join(wrong)} is refused as a build refuses it", want.said, got.said)


def chip_links():
    """The bandwidths and latencies of links between chips are numbers of a run; what they join is not."""
    sizes = ("--set", "system.sips=2", "--set", "system.links=" + LINKS % (50, 300))
    other = "system.links=" + LINKS % (7, 40)
    program, built = (os.path.join(WHERE, name) for name in ("linked", "linked_otherwise"))
    made = run(KBGEN, "base.yaml", "-o", program, "--set", BUILT_WITH, *sizes, cwd=WHERE, env=CACHED)
    again = run(KBGEN, "base.yaml", "-v", "-o", built, "--set", BUILT_WITH, *sizes, "--set", other, cwd=WHERE, env=CACHED)
    ok(made.returncode == 0 and SAYS in again.stderr, "a machine whose links between chips have other numbers is not compiled",
       made.said, again.said)
    bench = "run", "all_reduce", "size=4096", "--data", "off", "--json", "-"
    want, got, first = (run(path, *bench, *more).stdout for path, more in ((built, ()), (program, ("--set", other)), (program, ())))
    ok(compact(want) == compact(got) != compact(first), "other numbers of links between chips give what a build gives",
       want[:300], got[:300])
    moved = run(program, *bench, "--set", other.replace("side: e}, bw", "side: s}, bw"))
    ok(moved.returncode == 2 and "another value needs a build" in moved.stderr, "a link to another side needs a build", moved.said)


def structure(program):
    for change, command in (("sip.cubes.rows=2", "kbgen base.yaml --set " + BUILT_WITH + " --set sip.cubes.rows=2"),
                            ("cube.m_cpu.at=[1, 0]", "--set 'cube.m_cpu.at=[1, 0]'"),
                            ("include=other.yaml", "--set include=other.yaml"),
                            (PE + "pe_gemm.impl=mine", f"--set {PE}pe_gemm.impl=mine"),
                            (PE + "pe_gemm.attrs.params={a: 1}", "attrs.params={a: 1}'")):
        ended = run(program, "run", "gemm", "--data", "off", "--set", change)
        ok(ended.returncode == 2 and "decides what is compiled" in ended.stderr and command in ended.stderr,
           f"--set {change} needs a build, and the command is named", ended.said)


def command_of(message):
    """The command that a message has, as a shell splits it."""
    commands = re.findall(r"^\S+: (kbgen .*)", message, re.M)
    return shlex.split(commands[0]) if commands else []


def quoted_commands():
    """Names that mean something to a shell or to YAML come out of the command as they went in."""
    topology, other = "it's; echo $HOME.yaml", "x: y, 'z.yaml"
    write(os.path.join(WHERE, topology), OWN)
    write(os.path.join(WHERE, other), "{}\n")
    path = os.path.join(WHERE, "quoted")
    made = run(KBGEN, topology, "-o", path, cwd=WHERE, env=CACHED)
    ok(made.returncode == 0, "kbgen makes a machine whose file has a quote in its name", made.said)
    point = {"--set": {"include": other, "sip.io.attach": [{"cube": 1, "side": "e"}]}}
    told = run(path, "run", "gemm", "--points", write(os.path.join(WHERE, "points.jsonl"), json.dumps(point) + "\n"))
    command = command_of(told.stderr)
    ok(command[:2] == ["kbgen", topology] and command[2:5:2] == ["--set", "--set"] and len(command) == 6
       and command[3] == f'include="{other}"', "the command of a build quotes a path, and a text that YAML would take for more",
       command, told.said)
    made = run(KBGEN, *command[1:], "--check", cwd=WHERE)
    ok(made.returncode == 0, "kbgen takes the command", made.said)


def options(program):
    """What the option does beside replacing numbers."""
    change = ("cube.noc.link_bw_gbs", "77")
    _, path = build([change])
    want = run(path, "info").stdout
    got = run(program, "info", "--set", "cube.noc.link_bw_gbs=5", *words([change]))
    ok(want == got.stdout and "77 GB/s" in want, "info describes the machine with its replaced numbers; the last one counts",
       got.said)
    ends = ("host", "sip0.cube1.sram")
    built, got = run(path, "probe", *ends).stdout, run(program, "probe", *ends, *words([change])).stdout
    ok(built == got and "77 GB/s" in got, "probe measures the machine with its replaced numbers", built, got)
    ended = run(program, "list", *words([change]))
    ok(ended.returncode == 2, "a subcommand that reads no number does not take --set", ended.said)
    stream = os.path.join(ROOT, "tests/conformance/units")
    units = simulator(os.path.join(stream, "topo.yaml"), "units")
    before = run(units, "replay", os.path.join(stream, "stream.yaml"), "--json", "-").stdout
    slower = ("cube.hbm_ctrl.attrs.access_ns", "400")
    got = run(units, "replay", os.path.join(stream, "stream.yaml"), "--json", "-", *words([slower])).stdout
    run(KBGEN, os.path.join(stream, "topo.yaml"), "-o", os.path.join(WHERE, "units"), *words([slower]))
    want = run(os.path.join(WHERE, "units"), "replay", os.path.join(stream, "stream.yaml"), "--json", "-").stdout
    ok(want == got and want != before, "replay takes --set", got[:300])
    log = os.path.join(WHERE, "log")
    run(program, "run", "gemm", "m=64", "k=64", "n=64", "--oplog", log, *words([change]))
    refused, taken = run(program, "data", log), run(program, "data", log, *words([change]))
    ok(refused.returncode == 2 and taken.returncode == 0 and "same" in taken.stdout,
       "an op log needs the numbers that it was recorded with", refused.said, taken.said)


def points(program):
    """Numbers of points."""
    lines = [{"m": 64}, {"m": 64, "--set": {"cube.noc.attach.bw_gbs": 3}}, {"m": 64},
             {"m": 64, "--set": {"cube.noc.attach.bw_gbs": 3, "system.name": "other"}}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    file = write(os.path.join(WHERE, "points.jsonl"), text)
    for base in ((), words([("cube.hbm_ctrl.attrs.pc_bw_gbs", "9")])):
        got = [json.loads(line) for line in run(program, "run", "gemm", "--points", file, *base).stdout.splitlines()]
        alone = json.loads(run(program, "run", "gemm", "m=64", "--json", "-", *base, "--set", "cube.noc.attach.bw_gbs=3").stdout)
        ends = [answer["end_ps"] for answer in got]
        ok(len(got) == 4 and ends[0] == ends[2] < ends[1] == ends[3] == alone["end_ps"] and got[3]["system"] == "other"
           and got[2]["system"] == "base", f"numbers of a point hold for that point {' '.join(base)}", ends)
    for line, message in (('{"--set": {"cube.noc.link_bw_gbs": -1}}', "points.jsonl:2:36: error: cube.noc.link_bw_gbs must be"),
                          ('{"--set": {"cube.noc.link_bw": 1}}', "points.jsonl:2:22: error: unknown key 'link_bw' in cube.noc"),
                          ('{"--set": 3}', "points.jsonl:2:11: error: --set must be a mapping"),
                          ('{"--set": {"system.sips": 2}}', "points.jsonl:2:27: error: system.sips decides what is compiled")):
        write(file, '{"--set": {"cube.noc.link_bw_gbs": 4}}\n' + line + "\n")
        ended = run(program, "run", "gemm", "--points", file, cwd=WHERE)
        told = fed(read(file), program, "run", "gemm", "m=64", "--data", "off", "--points", "-")
        ok(ended.returncode == 2 and message in ended.stderr and not ended.stdout, f"a wrong point is refused: {line}",
           ended.said)
        ok('"error": "' in told.stdout.splitlines()[1] and '"end_ps": ' in told.stdout.splitlines()[0],
           f"of standard input, it alone is refused: {line}", told.said)


def main():
    program = machine()
    each_key(program)
    chip_links()
    several_keys(program)
    messages(program)
    structure(program)
    quoted_commands()
    options(program)
    points(program)


suite(main)
