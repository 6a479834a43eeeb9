#!/usr/bin/python3
"""emit: the generated C is clean, the same in any folder, and whatever is made is made whole. limit: 300"""
import os
import shutil
import signal
import subprocess
import time

from harness import BUILD, KBGEN, ROOT, SCRATCH, done, folder, ok, read, run, script, write

KERNEL = """#include <kb/tl.h>

struct nothing { int unused; };

KB_KERNEL(idle, struct nothing)
{
    (void)arg;
    tl_delay(tl, 1000);
}
"""
CC, SANITIZED = os.environ.get("CC") or "gcc", os.environ.get("SAN")
MACHINES = {
    "defaults": "system: {name: x}\n",
    "everything_else": """
system: {name: y, sips: 2}
sip:
  cubes: {rows: 2, cols: 3}
  ucie: {bw_gbs: ~}
  io: {attach: [{cube: 5, side: s}, {cube: 0, side: n}, {cube: 0, side: w}]}
cube:
  memory_map: {hbm_slices_per_cube: 5}
  noc: {rows: 3, cols: 5, link_bw_gbs: 12.3456789}
  pe_layout: {explicit: [[0, 0], [2, 4], [2, 4], [1, 1], [0, 3]]}
  pe_template:
    components:
      pe_dma: {attrs: {rd_engines: 3, wr_engines: 2}}
      pe_fetch_store: {attrs: {ports: 2}}
      pe_gemm: {attrs: {shared_resource: ~}}
      pe_mmu: {attrs: {enabled: true}}
      pe_ipcq: {attrs: {buffer: hbm}}
      pe_math: {attrs: {cost: {while: 3, EOF: 2, __LINE__: 9, int: 0}}}
""",
    "least": """
system: {name: int}
sip: {cubes: {rows: 1, cols: 1}}
cube:
  memory_map: {hbm_slices_per_cube: 1}
  noc: {rows: 1, cols: 1}
  m_cpu: {at: [0, 0]}
  sram: {at: [0, 0]}
""",
    "most": """
system: {name: most, sips: 4}
sip: {cubes: {rows: 16, cols: 16}}
cube:
  memory_map: {hbm_slices_per_cube: 64}
  noc: {rows: 64, cols: 64}
""",
}
PLACES = (
    ".noc_link_bw_bps = 1500 * MB_PER_S, /* place.yaml:4 cube.noc.link_bw_gbs */",
    ".noc_pitch_ps = 30 * PS, /* place.yaml:5 cube.noc.pitch_mm */",
    ".pcie_bw_bps = 1 * GB_PER_S, /* --set system.pcie.bw_gbs */",
    ".pcie_latency_ps = 250 * NS, /* default system.pcie.latency_ns */",
    " from place.yaml with --set 'system.pcie.bw_gbs=1' --set 'cube.pe_layout=corners # ?/ int x; ?* ????/' */",
)
ODD_NAMES = ("with space", "quote'\"`", "$HOME", "-dash", "@at", "new\nline", "a=b", "100%s", "semi;colon,comma")


def contents(path):
    """All files below a folder, by relative path."""
    found = {}
    for where, _, names in os.walk(path):
        for name in names:
            file = os.path.join(where, name)
            with open(file, "rb") as opened:
                found[os.path.relpath(file, path)] = opened.read()
    return found


def identity(path):
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns


def clean_code():
    for name, text in MACHINES.items():
        topology = write(os.path.join(folder("clean"), name + ".yaml"), text)
        out = os.path.join(folder("clean"), name + ".c")
        made = run(KBGEN, topology, "--emit", "c", "-o", out)
        if not ok(made.returncode == 0 and not made.stdout + made.stderr, f"{name}: emitted", made.said):
            continue
        for compiler in ("gcc", "clang"):
            sources = [os.path.join(out, file) for file in sorted(os.listdir(out)) if file.endswith(".c")]
            compiled = run(compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I",
                           os.path.join(ROOT, "rt"), *sources)
            ok(compiled.returncode == 0, f"{name}: without a warning by {compiler}", compiled.said)


def says_its_place():
    topology = write(os.path.join(folder("place"), "place.yaml"),
                     "system: {name: place}\ncube:\n  noc:\n    link_bw_gbs: 1.5\n    pitch_mm: 3 mm\n")
    out = os.path.join(folder("place"), "out.c")
    hostile = "cube.pe_layout=corners # */ int x; /* \u00e9??/"
    made = run(KBGEN, topology, "--emit", "c", "-o", out, "--set", "system.pcie.bw_gbs=1", "--set", hostile)
    text = read(os.path.join(out, "numbers.c"))
    for line in PLACES:
        ok(line in text, f"numbers.c has {line.strip().splitlines()[0]}", made.said, text[:2000])
    compiled = run("gcc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", os.path.join(ROOT, "rt"),
                   os.path.join(out, "numbers.c"))
    ok(compiled.returncode == 0, "what --set says stays in its comment", compiled.said)


def same_anywhere():
    """Two folders, two ways of naming things, two umasks: the same bytes."""
    results = []
    for place, prefix in (("a", ""), ("b/with space", "../with space/")):
        where = folder("same", place)
        write(os.path.join(where, "m.yaml"), MACHINES["everything_else"])
        write(os.path.join(where, "mine.c"), KERNEL)
        topology, kernel = (prefix + "m.yaml", prefix + "mine.c") if prefix else \
            (os.path.join(where, "m.yaml"), os.path.join(where, "mine.c"))
        made = run(KBGEN, topology, "-k", kernel, "--keep", cwd=where)
        ok(made.returncode == 0 and not made.stdout + made.stderr, f"made in {place}", made.said)
        shutil.rmtree(os.path.join(where, "build", "kbgen.cache"))
        results.append(contents(os.path.join(where, "build")))
    ok({"y", "y.c/machine.c", "y.c/machine.h"} < set(results[0]), "the simulator, and its sources", *results[0])
    for name, data in results[0].items():
        if SANITIZED and "." not in name:
            continue                                    # a sanitizer's objects name their sources
        ok(data == results[1].get(name), f"{name} is the same bytes in both")
        ok(SCRATCH.encode() not in data and b"with space" not in data, f"no folder's name in {name}")
    listed = run(os.path.join(SCRATCH, "same", "a", "build", "y"), "list")
    ok("idle" in listed.stdout and "mine.c:5" in listed.stdout, "the user's kernel is in it", listed.said)


def built_once():
    """A wrapper around the compiler counts what it is asked to compile or link."""
    where = folder("once")
    log = os.path.join(where, "log")
    compiler = script(os.path.join(where, "cc"), f'case " $* " in *" -o "*) echo x >>"{log}";; esac\nexec {CC} "$@"\n')
    topology = write(os.path.join(where, "m.yaml"), "system: {name: m}\n")
    header = write(os.path.join(where, "mine.h"), "enum { DELAY_NS = 5 };\n")
    kernel = write(os.path.join(where, "mine.c"), '#include "mine.h"\n' + KERNEL.replace("1000", "DELAY_NS"))
    program = os.path.join(where, "m")

    def made(*options):
        if os.path.exists(log):
            os.unlink(log)
        before = identity(program) if os.path.exists(program) else None
        ended = run(KBGEN, topology, "-k", kernel, "-o", program, "--cc", compiler, *options, cwd=where)
        return ended.returncode == 0 and (bool(read(log)), before != identity(program)), ended.said

    def expect(builds, title, *options, compiles=None):
        got, said = made(*options)
        wanted = (builds if compiles is None else compiles, builds)
        ok(got == wanted, title, f"status good and (compiled, replaced): {got}", said)

    expect(True, "the first time it is built")
    expect(False, "an untouched second time it is not")
    os.utime(topology)
    os.utime(kernel)
    expect(False, "nor when a file was only touched")
    write(topology, "# a comment\nsystem: {name: m}\n")
    expect(False, "nor when the topology says the same in other words")
    expect(True, "another number", "--set", "cube.noc.link_bw_gbs=77", compiles=False)
    expect(False, "and again", "--set", "cube.noc.link_bw_gbs=77")
    expect(True, "another level", "-O0")
    expect(True, "and back", compiles=False)
    write(header, "enum { DELAY_NS = 6 };\n")
    expect(True, "a header that the user's file includes")
    write(kernel, read(kernel).replace("idle", "lazy"))
    expect(True, "the user's file")
    os.unlink(program)
    expect(True, "a simulator that is gone", compiles=False)
    write(program, "no program")
    expect(True, "a simulator that is none", compiles=False)
    with open(program, "rb") as file:
        data = file.read()
    for length in (10, 64, 700, len(data) // 2):
        with open(program, "wb") as file:
            file.write(data[:length])
        made()
    ok(run(program, "list").returncode == 0, "a simulator that was cut off is made again")


def made_whole():
    where = folder("whole")
    topology = write(os.path.join(where, "m.yaml"), "system: {name: m}\n")
    program = os.path.join(where, "out", "m")
    run(KBGEN, topology, "-o", program)
    before = contents(where)
    wrong = write(os.path.join(where, "wrong.c"), "int f(void) { return g; }\n")
    before["wrong.c"] = read(wrong).encode()
    failed = run(KBGEN, topology, "-k", wrong, "-o", program)
    ok(failed.returncode == 2 and "wrong.c:1:" in failed.stderr and "does not compile" in failed.stderr,
       "a kernel that does not compile", failed.said)
    ok(contents(where) == before, "leaves what was there", *contents(where))
    unlinked = write(os.path.join(where, "wrong.c"), "int g(void);\nint f(void) { return g(); }\n")
    failed = run(KBGEN, topology, "-k", unlinked, "-o", program)
    ok(failed.returncode == 2 and "does not link" in failed.stderr, "one that does not link", failed.said)
    before["wrong.c"] = read(wrong).encode()
    ok(contents(where) == before, "leaves what was there, too", *contents(where))
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        slow = script(os.path.join(where, "slow"), f'case " $* " in *" -c "*) sleep 1;; esac\nexec {CC} "$@"\n')
        process = subprocess.Popen([KBGEN, topology, "-o", program, "--cc", slow, "--set", "system.sips=2"], cwd=where)
        time.sleep(0.4)
        begun = [name for name in os.listdir(os.path.join(where, "out")) if name != "m"]
        process.send_signal(name)
        ok(process.wait() == -name and begun and os.listdir(os.path.join(where, "out")) == ["m"],
           f"{name.name} in the middle leaves what was there", begun, os.listdir(os.path.join(where, "out")))


def questions_end():
    """A compiler that is asked, not one that compiles, ends with kbgen, too."""
    where = folder("asked")
    topology = write(os.path.join(where, "m.yaml"), MACHINES["least"])
    kernel = write(os.path.join(where, "k.c"), KERNEL)
    for option in ("--version", "-E"):
        begun = write(os.path.join(where, "begun"), "")
        hangs = script(os.path.join(where, "hangs"),
                       f'case " $* " in *" {option} "*) echo $$ > \'{begun}\'; exec sleep 20;; esac\nexec {CC} "$@"\n')
        process = subprocess.Popen([KBGEN, topology, "-k", kernel, "-o", os.path.join(where, "m"), "--cc", hangs])
        for _ in range(200):
            if read(begun).endswith("\n"):
                break
            time.sleep(0.05)
        process.terminate()
        ended, pid = process.wait(), read(begun).strip()
        ok(ended == -signal.SIGTERM and pid and not os.path.exists(f"/proc/{pid}"), f"SIGTERM ends {option}, too", pid)


def odd_paths():
    for name in ODD_NAMES:
        where = folder("odd", name)
        write(os.path.join(where, name + ".yaml"), MACHINES["least"])
        write(os.path.join(where, name + ".c"), KERNEL)
        out = os.path.join(where, name + ".sim")
        made = run(KBGEN, "-k", name + ".c", "-o", out, "--keep", "--", name + ".yaml", cwd=where)
        ran = run(out, "list") if made.returncode == 0 else made
        ok(ran.returncode == 0 and "idle" in ran.stdout, f"paths with {name!r}", made.said, ran.said)
    where = folder("odd", "home=of kbgen")
    for part in ("rt", "templates"):
        shutil.copytree(os.path.join(ROOT, part), os.path.join(where, part), dirs_exist_ok=True)
    for part in ("libkb.a", "libcommon.a"):
        shutil.copy(os.path.join(BUILD, part), where)
    shutil.copytree(os.path.join(BUILD, "kernels"), os.path.join(where, "kernels"), dirs_exist_ok=True)
    topology = write(os.path.join(where, "m.yaml"), MACHINES["least"])
    made = run(KBGEN, topology, "-o", os.path.join(where, "m"), env=os.environ | {"KBGEN_HOME": where})
    ok(made.returncode == 0, "KBGEN_HOME with an odd name", made.said)


shutil.rmtree(SCRATCH)
clean_code()
says_its_place()
same_anywhere()
built_once()
made_whole()
questions_end()
odd_paths()
done()
