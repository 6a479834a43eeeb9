#!/usr/bin/python3
"""emit: the emitted C compiles cleanly, is the same in any folder, and every file is written whole. limit: 300

Under the sanitizers kbgen emits the same C, which is not compiled again for its warnings, and gets a third of the odd
paths.
"""
import os
import shutil
import signal
import subprocess

from harness import BUILD, CC, KBGEN, ROOT, SAN, SCRATCH, folder, ok, read, read_bytes, run, script, suite, wait_until
from harness import write

KERNEL = """#include <kb/tl.h>

struct nothing { int unused; };

KB_KERNEL(idle, struct nothing)
{
    (void)arg;
    tl_delay(tl, 1000);
}
"""
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
            found[os.path.relpath(file, path)] = read_bytes(file)
    return found


def identity(path):
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns


def clean_code():
    for name, text in MACHINES.items():
        topology = write(os.path.join(folder("clean"), name + ".yaml"), text)
        out = os.path.join(folder("clean"), name + ".c")
        made = run(KBGEN, topology, "--emit", "c", "-o", out)
        if not ok(made.returncode == 0 and not made.stdout + made.stderr,
                  f"kbgen emits the C of machine {name} without a word", made.said):
            continue
        for compiler in ("gcc", "clang") if not SAN else ():
            sources = [os.path.join(out, file) for file in sorted(os.listdir(out)) if file.endswith(".c")]
            compiled = run(compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I",
                           os.path.join(ROOT, "rt"), *sources)
            ok(compiled.returncode == 0, f"the C of machine {name} compiles without a warning by {compiler}",
               compiled.said)


def says_its_place():
    topology = write(os.path.join(folder("place"), "place.yaml"),
                     "system: {name: place}\ncube:\n  noc:\n    link_bw_gbs: 1.5\n    pitch_mm: 3 mm\n")
    out = os.path.join(folder("place"), "out.c")
    hostile = "cube.pe_layout=corners # */ int x; /* \u00e9??/"
    made = run(KBGEN, topology, "--emit", "c", "-o", out, "--set", "system.pcie.bw_gbs=1", "--set", hostile)
    text = read(os.path.join(out, "numbers.c"))
    for line in PLACES:
        ok(line in text, f"numbers.c says where a number comes from: {line.strip().splitlines()[0]}", made.said,
           text[:2000])
    compiled = run("gcc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", os.path.join(ROOT, "rt"),
                   os.path.join(out, "numbers.c"))
    ok(compiled.returncode == 0, "the text of --set cannot end the comment that quotes it", compiled.said)


def same_anywhere():
    """The same files are made in two folders, with paths given in two ways."""
    results = []
    for place, prefix in (("a", ""), ("b/with space", "../with space/")):
        where = folder("same", place)
        write(os.path.join(where, "m.yaml"), MACHINES["everything_else"])
        write(os.path.join(where, "mine.c"), KERNEL)
        topology, kernel = (prefix + "m.yaml", prefix + "mine.c") if prefix else \
            (os.path.join(where, "m.yaml"), os.path.join(where, "mine.c"))
        made = run(KBGEN, topology, "-k", kernel, "--keep", cwd=where)
        ok(made.returncode == 0 and not made.stdout + made.stderr, f"kbgen makes a simulator in {place}", made.said)
        shutil.rmtree(os.path.join(where, "build", "kbgen.cache"))
        results.append(contents(os.path.join(where, "build")))
    ok({"y", "y.c/machine.c", "y.c/machine.h"} < set(results[0]),
       "--keep leaves the simulator and its sources", *results[0])
    for name, data in results[0].items():
        if SAN and "." not in name:
            continue                                    # objects with sanitizers name their sources
        ok(data == results[1].get(name), f"{name} has the same bytes in both folders")
        ok(SCRATCH.encode() not in data and b"with space" not in data,
           f"{name} does not name the folder it was made in")
    listed = run(os.path.join(SCRATCH, "same", "a", "build", "y"), "list")
    ok("idle" in listed.stdout and "mine.c:5" in listed.stdout,
       "a simulator lists the kernel of a user, with its place", listed.said)


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

    expect(True, "a simulator that does not exist is compiled and linked")
    expect(False, "an unchanged simulator is left alone")
    os.utime(topology)
    os.utime(kernel)
    expect(False, "a simulator whose inputs were only touched is left alone")
    write(topology, "# a comment\nsystem: {name: m}\n")
    expect(True, "a simulator whose topology says the same in other words gets these words without a compiler",
           compiles=False)
    expect(True, "another number makes another simulator without a compiler", "--set", "cube.noc.link_bw_gbs=77",
           compiles=False)
    expect(False, "the same number again leaves the simulator alone", "--set", "cube.noc.link_bw_gbs=77")
    expect(True, "another level of optimisation compiles again", "-O0")
    expect(True, "the level before is made again without a compiler", compiles=False)
    write(header, "enum { DELAY_NS = 6 };\n")
    expect(True, "a changed header of a user's kernel compiles it again")
    write(kernel, read(kernel).replace("idle", "lazy"))
    expect(True, "a changed kernel is compiled again")
    os.unlink(program)
    expect(True, "a deleted simulator is made again without a compiler", compiles=False)
    write(program, "no program")
    expect(True, "a simulator that was overwritten is made again without a compiler", compiles=False)
    data = read_bytes(program)
    for length in (10, 64, 700, len(data) // 2):
        write(program, data[:length])
        made()
        ok(run(program, "list").returncode == 0, f"a simulator that was cut off after {length} bytes is made again")


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
       "a kernel that does not compile is refused with its line", failed.said)
    ok(contents(where) == before, "a kernel that does not compile leaves every file as it was", *contents(where))
    write(wrong, "#include <kb/tl.h>\nstruct bulk { char data[4097]; };\nKB_KERNEL(bulk, struct bulk) {}\n")
    bulk = run(KBGEN, topology, "-k", wrong, "-o", program)
    ok(bulk.returncode == 2 and "arguments of a kernel are at most 4096 bytes: data are tensors" in bulk.stderr,
       "bulk data in the arguments of a kernel are refused", bulk.said)
    unlinked = write(os.path.join(where, "wrong.c"), "int g(void);\nint f(void) { return g(); }\n")
    failed = run(KBGEN, topology, "-k", unlinked, "-o", program)
    ok(failed.returncode == 2 and "does not link" in failed.stderr,
       "a kernel that does not link is refused", failed.said)
    before["wrong.c"] = read(wrong).encode()
    ok(contents(where) == before, "a kernel that does not link leaves every file as it was", *contents(where))
    out = os.path.join(where, "out")
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        slow = script(os.path.join(where, "slow"), f'case " $* " in *" -c "*) exec sleep 600;; esac\nexec {CC} "$@"\n')
        process = subprocess.Popen([KBGEN, topology, "-o", program, "--cc", slow, "--set", "system.sips=2"], cwd=where)
        begun = wait_until(lambda: [name for name in os.listdir(out) if name != "m"])
        process.send_signal(name)
        ok(process.wait() == -name and begun and os.listdir(out) == ["m"],
           f"{name.name} while kbgen compiles leaves the simulator as it was and nothing else", begun, os.listdir(out))


def questions_end():
    """A compiler that kbgen only asks something ends together with kbgen."""
    where = folder("asked")
    topology = write(os.path.join(where, "m.yaml"), MACHINES["least"])
    kernel = write(os.path.join(where, "k.c"), KERNEL)
    for option in ("--version", "-E"):
        begun = write(os.path.join(where, "begun"), "")
        hangs = script(os.path.join(where, "hangs"),
                       f'case " $* " in *" {option} "*) echo $$ > \'{begun}\'; exec sleep 600;; esac\nexec {CC} "$@"\n')
        process = subprocess.Popen([KBGEN, topology, "-k", kernel, "-o", os.path.join(where, "m"), "--cc", hangs])
        wait_until(lambda: read(begun).endswith("\n"))
        process.terminate()
        ended, pid = process.wait(), read(begun).strip()
        ok(ended == -signal.SIGTERM and pid and not os.path.exists(f"/proc/{pid}"),
           f"SIGTERM ends a compiler that was asked for {option}", pid)


def odd_paths():
    for name in ODD_NAMES[::3 if SAN else 1]:
        where = folder("odd", name)
        write(os.path.join(where, name + ".yaml"), MACHINES["least"])
        write(os.path.join(where, name + ".c"), KERNEL)
        out = os.path.join(where, name + ".sim")
        made = run(KBGEN, "-k", name + ".c", "-o", out, "--keep", "--", name + ".yaml", cwd=where)
        ran = run(out, "list") if made.returncode == 0 else made
        ok(ran.returncode == 0 and "idle" in ran.stdout, f"kbgen takes paths with {name!r}", made.said, ran.said)
    where = folder("odd", "home=of kbgen")
    for part in ("rt", "templates"):
        shutil.copytree(os.path.join(ROOT, part), os.path.join(where, part), dirs_exist_ok=True)
    shutil.copy(os.path.join(BUILD, "runtime.o"), where)
    shutil.copytree(os.path.join(ROOT, "kernels"), os.path.join(where, "kernels"), dirs_exist_ok=True)
    topology = write(os.path.join(where, "m.yaml"), MACHINES["least"])
    made = run(KBGEN, topology, "-o", os.path.join(where, "m"), env=os.environ | {"KBGEN_HOME": where})
    ok(made.returncode == 0, "kbgen works with an odd path in KBGEN_HOME", made.said)


shutil.rmtree(SCRATCH)
suite(clean_code, says_its_place, same_anywhere, built_once, made_whole, questions_end, odd_paths)
