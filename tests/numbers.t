#!/usr/bin/python3
"""numbers: topologies that differ only in numbers share one linked simulator; one call makes many. limit: 300

Under the sanitizers kbgen does the same with fewer structures, and what it makes is not compared with a full build.
"""
import os
import re
import shutil
import signal
import subprocess

from harness import BUILD, CC, KBGEN, ROOT, SAN, SCRATCH, folder, ok, read, read_bytes, run, same_bytes, script, suite
from harness import wait_until, write

SAYS = "no compiler, no linker"
ROOM = 8192                                             # bytes that a simulator has for its topology
PE = "cube.pe_template.components."
BASE = "system: {name: base}\nsip: {cubes: {rows: 1, cols: 2}}\ncube: {noc: {rows: 2, cols: 2}}\n"
# Numbers of every kind, and names.
NUMBERS = (
    ("a bandwidth", "cube.noc.link_bw_gbs=77"),
    ("no limit of one", "sip.ucie.bw_gbs=~"),
    ("a latency", "system.pcie.latency_ns=1.5 us"),
    ("the speed of wires", "system.wire.ns_per_mm=0.3"),
    ("a clock", PE + "pe_gemm.attrs.clock_ghz=940 MHz"),
    ("an overhead", "cube.noc.router.overhead_ns=3"),
    ("rows of an engine", PE + "pe_gemm.attrs.rows=8"),
    ("lanes", PE + "pe_math.attrs.lanes={f32: 3}"),
    ("costs of ops", PE + "pe_math.attrs.cost={exp: 9, div: 2}"),
    ("a memory's size", PE + "pe_tcm.attrs.size_mb=3"),
    ("a slice's size", "cube.memory_map.hbm_slice_mb=256 MiB"),
    ("an MMU", PE + "pe_mmu.attrs.enabled=true"),
    ("a queue's depth", PE + "pe_dma.attrs.queue_depth=3"),
    ("where rings are", PE + "pe_ipcq.attrs.buffer=sram"),
    ("a name", "system.name=something_else"),
)
STRUCTURES = (
    ("PEs", "cube.memory_map.hbm_slices_per_cube=2"),
    ("cubes", "sip.cubes.rows=2"),
    ("routers", "cube.noc.rows=3"),
    ("SIPs", "system.sips=2"),
    ("a placement", "cube.sram.at=[0, 1]"),
    ("read engines", PE + "pe_dma.attrs.rd_engines=2"),
    ("ports", PE + "pe_fetch_store.attrs.ports=2"),
    ("pseudo channels", "cube.hbm_ctrl.attrs.pcs=5"),
    ("an op", PE + "pe_math.attrs.cost.own_op=3"),
    ("a name beyond its room", "system.name=" + 70 * "n"),
)
KERNEL = '#include <kb/tl.h>\n#include "mine.h"\nstruct nothing { int unused; };\n' \
         "KB_KERNEL(idle, struct nothing)\n{\n    (void)arg;\n    tl_delay(tl, DELAY_NS);\n}\n"


def set_up(name):
    """Makes a folder with a topology and a compiler that logs its calls; returns all three and the log."""
    where = folder(name)
    log = os.path.join(where, "log")
    compiler = script(os.path.join(where, "cc"), f'echo "$*" >>"{log}"\nexec {CC} "$@"\n')
    return where, write(os.path.join(where, "base.yaml"), BASE), compiler, log


def called(log):
    """The calls of the compiler since the last time."""
    calls = read(log).splitlines() if os.path.exists(log) else []
    write(log, "")
    return calls


def same_as_full(title, made, where, topology, *options):
    """Compares a simulator with one made without a cache; objects with sanitizers name their sources."""
    path = os.path.join(where, "full")
    if SAN:
        return
    run("rm", "-f", path)
    ended = run(KBGEN, topology, "-o", path, *options, cwd=where, env=os.environ | {"KBGEN_CACHE": ""})
    if ok(ended.returncode == 0, f"a full build of {title} succeeds", ended.said):
        same_bytes(os.path.join(where, made), path, f"{title} is byte for byte what a full build gives")


def without_topology(path):
    """The bytes of a simulator without the text of its topology, and without its build ID, a hash over all of it."""
    program = read_bytes(path)
    text = program.index(b"fbase.yaml\0" if b"fbase.yaml\0" in program else b"fmoved.yaml\0")
    ident = re.search("Build ID: ([0-9a-f]+)", run("readelf", "-n", path).stdout)
    return (program[:text] + program[text + ROOM:]).replace(bytes.fromhex(ident[1]), b"")


def made(title, compiles, log, where, *words):
    """Runs kbgen; checks whether it calls the compiler at all."""
    called(log)
    ended = run(KBGEN, *words, "-v", cwd=where)
    calls = called(log)
    ok(ended.returncode == 0 and bool(calls) == compiles and (SAYS in ended.stderr) != compiles,
       f"{title} is made {'by the compiler' if compiles else 'without compiler and linker'}", ended.said, *calls)
    return ended


def numbers_only():
    where, topology, compiler, log = set_up("numbers")
    made("the first machine", True, log, where, topology, "-o", "first", "--cc", compiler)
    for number, (title, change) in enumerate(NUMBERS):  # every fourth is compared by itself, all of them together below
        title = f"a machine with another number, {title},"
        if number % 4 == 0 or not SAN:
            made(title, False, log, where, topology, "-o", "n", "--cc", compiler, "--set", change)
        if number % 4 == 0:
            same_as_full(title, "n", where, topology, "--cc", CC, "--set", change)
    everything = [word for _, change in NUMBERS for word in ("--set", change)]
    title = "a machine with all these numbers"
    made(title, False, log, where, topology, "-o", "n", "--cc", compiler, "--keep", *everything)
    same_as_full(title, "n", where, topology, "--cc", CC, *everything)
    info = run(os.path.join(where, "n"), "info")
    ok("something_else" in info.stdout and "pe_gemm" not in info.stderr, "a machine with other numbers runs",
       info.said)
    ok("77 * GB_PER_S" in read(os.path.join(where, "n.c/numbers.c")),
       "--keep leaves sources with the other numbers")
    moved = write(os.path.join(where, "moved.yaml"), "# other lines\n\n" + BASE)
    made("a topology with other lines", False, log, where, moved, "-o", "m", "--cc", compiler)
    same_as_full("a topology with other lines", "m", where, moved, "--cc", CC)
    if not SAN:
        first, other = (without_topology(os.path.join(where, name)) for name in ("first", "m"))
        ok(first == other, "a topology with other lines gives the same bytes; only the topology itself differs")
    for what, change in STRUCTURES[::8 if SAN else 1]:
        title = f"a machine with another structure, {what},"
        made(title, True, log, where, topology, "-o", "s", "--cc", compiler, "--set", change)
        if what in ("read engines", "ports"):           # what changes is in no file that machine.c includes itself
            same_as_full(title, "s", where, topology, "--cc", CC, "--set", change)
        made(f"{title} again", False, log, where, topology, "-o", "t", "--cc", compiler, "--set", change)
    made("a machine at another level of optimisation", True, log, where, topology, "-o", "s", "--cc", compiler, "-O1")
    script(compiler, f'echo "$*" >>"{log}"\nexec {CC} -O3 "$@"\n')
    ended = run(KBGEN, topology, "-o", "changed", "--cc", compiler, cwd=where)
    ok(ended.returncode == 0 and called(log), "a compiler that was replaced compiles again", ended.said)


def prebuilt():
    """The generated code of most structures is compiled when kbgen is built: the tables alone are left."""
    if SAN:
        return
    where, topology, compiler, log = set_up("prebuilt")
    home = folder("prebuilt", "home")
    for part in (os.path.join(ROOT, "rt"), os.path.join(ROOT, "templates"), os.path.join(BUILD, "runtime.o")):
        os.symlink(part, os.path.join(home, os.path.basename(part)))
    for title, change, compiled in (("a machine of other counts", "system.sips=2", ["tables.c"]),
                                    ("a machine of other servers", PE + "pe_dma.attrs.rd_engines=3",
                                     ["code.c", "tables.c"])):
        words = (topology, "--cc", compiler, "--set", change)
        ended = run(KBGEN, *words, "-o", "with", cwd=where, env=os.environ | {"KBGEN_CACHE": ""})
        calls = sorted(re.findall(r"(\w+\.c) .*-c ", "\n".join(called(log))))
        ok(ended.returncode == 0 and calls == compiled, f"of {title}, {' and '.join(compiled)} need be compiled",
           ended.said, *calls)
        ended = run(KBGEN, *words, "-o", "without", cwd=where,
                    env=os.environ | {"KBGEN_CACHE": "", "KBGEN_HOME": home})
        ok(ended.returncode == 0 and " ".join(called(log)).count("code.c") == 1,
           f"without what was compiled ahead, all of {title} is compiled", ended.said)
        same_bytes(os.path.join(where, "with"), os.path.join(where, "without"),
                   f"{title} is the same bytes if its code was compiled ahead")


def users_files():
    where, topology, compiler, log = set_up("users")
    header = write(os.path.join(where, "mine.h"), "enum { DELAY_NS = 5 };\n")
    write(os.path.join(where, "mine.c"), KERNEL)
    impl = os.path.join(ROOT, "topologies/impl/vector.c")
    own = ("-k", "mine.c", "--impl", impl, "--cc", compiler, "--set", PE + "pe_math.impl=vector")
    own += ("--set", PE + "pe_math.attrs.params={special_units: 32, throttle: 0.9}")
    made("a machine with a user's kernel and model", True, log, where, topology, "-o", "own", *own)
    change = ("--set", "cube.noc.link_bw_gbs=5")
    made("the same with another number", False, log, where, topology, "-o", "own", *own, *change)
    same_as_full("a machine with a user's files", "own", where, topology, *own, *change)
    called(log)
    ended = run(KBGEN, topology, "-o", "more", *own, "--set", "system.sips=2", cwd=where)
    calls = [call for call in called(log) if " -c " in call and "mine.c" in call]
    ok(ended.returncode == 0 and not calls, "a kernel is not compiled again for a machine of another count",
       ended.said, *calls)
    same_as_full("a machine of another count with a user's files", "more", where, topology, *own, "--set",
                 "system.sips=2")
    write(header, "enum { DELAY_NS = 6 };\n")
    made("a machine whose kernel has a changed header", True, log, where, topology, "-o", "own", *own, *change)
    same_as_full("a machine whose kernel has a changed header", "own", where, topology, *own, *change)


def search_paths():
    where, topology, compiler, log = set_up("paths")
    write(os.path.join(where, "mine.c"), KERNEL)
    words = (topology, "-k", "mine.c", "--cc", compiler)
    for delay in (5, 6):
        os.environ["CPATH"] = folder("paths", f"delay{delay}")
        write(os.path.join(os.environ["CPATH"], "mine.h"), f"enum {{ DELAY_NS = {delay} }};\n")
        title = f"a machine whose kernel has a header of CPATH, {delay},"
        made(title, True, log, where, *words, "-o", "own")
        same_as_full(title, "own", where, *words)
    del os.environ["CPATH"]


def other_compilers():
    """Constants, debug information and checksums of sources: compiled code must not depend on a number."""
    if SAN:
        return
    where, topology, _, _ = set_up("compilers")
    change = ("--set", "cube.noc.link_bw_gbs=5", "--set", "system.name=other")
    for compiler in ("clang", "clang -g", "gcc -g3", "gcc -flto=auto", "gcc -fdata-sections"):
        run(KBGEN, topology, "-o", "first", "--cc", compiler, cwd=where)
        ended = run(KBGEN, topology, "-o", "n", "-v", "--cc", compiler, *change, cwd=where)
        ok(SAYS in ended.stderr, f"a machine by {compiler} with other numbers is made without a compiler", ended.said)
        same_as_full(f"a machine by {compiler} with other numbers", "n", where, topology, "--cc", compiler, *change)
    stripped = run(KBGEN, topology, "-o", "s", "--cc", CC + " -s", cwd=where)
    again = run(KBGEN, topology, "-o", "s", "-v", "--cc", CC + " -s", *change, cwd=where)
    ok(stripped.returncode + again.returncode == 0 and SAYS not in again.stderr,
       "a simulator without symbols is built again",
       again.said)
    same_as_full("a simulator without symbols", "s", where, topology, "--cc", CC + " -s", *change)


def cache():
    where, topology, compiler, log = set_up("cache")
    words = (topology, "-o", "c", "--cc", compiler, "--set")
    made("a machine without a cache", True, log, where, *words, "system.name=x")
    kept = os.path.join(where, "build/kbgen.cache")
    entry = next(os.path.join(kept, name) for name in os.listdir(kept) if name.startswith("simulator"))
    whole = read_bytes(entry)
    for title, damaged in (("with two other bytes", whole[:5000] + b"\x55\xaa" + whole[5002:]),
                           ("that was cut off", whole[:9000]), ("that is empty", b""),
                           ("that is longer", whole + b"x")):
        write(entry, damaged)
        title = f"a machine whose simulator in the cache is one {title},"
        made(title, True, log, where, *words, "system.name=y")
        same_as_full(title, "c", where, topology, "--set", "system.name=y")
        made(title + " the next time,", False, log, where, *words, "system.name=z")
    shutil.rmtree(kept)
    made("a machine whose cache was deleted", True, log, where, *words, "system.name=a")
    large = write(os.path.join(kept, f"object-{32 * '0'}-{32 * '1'}"), "")
    os.truncate(large, 1 << 29)
    os.utime(large, (1, 1))
    made("a machine with a cache that is too large", True, log, where, *words, "system.sips=2")
    ok(not os.path.exists(large) and any(name.startswith("simulator") for name in os.listdir(kept)),
       "a cache that is too large loses what was used longest ago", *os.listdir(kept))
    ok(not [name for name in os.listdir(kept) if ".tmp" in name or ".lock" in name],
       "the cache holds no temporary file and no lock")
    for place in ("/proc/none", "base.yaml/no/folder"):
        ended = run(KBGEN, topology, "-o", "p", cwd=where, env=os.environ | {"KBGEN_CACHE": place})
        ok(ended.returncode == 0 and not ended.said.splitlines()[1:],
           f"kbgen works without its cache if {place} cannot be made",
           ended.said)
        os.unlink(os.path.join(where, "p"))


def at_once():
    """Several kbgens at the same time, with an empty cache."""
    where, topology, compiler, log = set_up("at_once")
    words = [KBGEN, topology, "--cc", compiler]
    running = [subprocess.Popen(words + ["-o", f"p{i}", "--set", f"cube.noc.link_bw_gbs={i}"], cwd=where)
               for i in range(1, 7)]
    ok(not any([process.wait() for process in running]), "six kbgens at the same time succeed")
    linked = [call for call in called(log) if "--build-id" in call]
    ok(len(linked) == 1, "of six kbgens at the same time one links", *linked)
    for i in (1, 6):
        same_as_full(f"machine {i} of six at the same time", f"p{i}", where, topology, "--set",
                     f"cube.noc.link_bw_gbs={i}")


def variants(where, count):
    """Topologies that differ in a number and their name."""
    for i in range(count):
        write(os.path.join(where, f"v{i}.yaml"),
              f"include: base.yaml\nsystem: {{name: v{i}, pcie: {{bw_gbs: {i + 1}}}}}\n")
    return [f"v{i}.yaml" for i in range(count)]


def many():
    where, _, compiler, log = set_up("many")
    topologies = variants(where, 30)
    ended = run(KBGEN, "-j", "4", *topologies, "--cc", compiler, cwd=where)
    calls = called(log)
    ok(ended.returncode == 0 and not ended.stdout + ended.stderr,
       "one call makes 30 machines without a word", ended.said)
    ok(sum("--build-id" in call for call in calls) == 1, "30 machines are compiled and linked once", *calls)
    found = sorted(os.listdir(os.path.join(where, "build")))
    ok(found == sorted(["kbgen.cache"] + [f"v{i}" for i in range(30)]), "each of 30 machines is build/NAME", *found)
    for i in (0, 29):
        same_as_full(f"machine {i} of 30 in one call", f"build/v{i}", where, f"v{i}.yaml")
    spoken = run(KBGEN, "-v", *topologies[:3], "-o", "to/here/", "--keep", "--cc", compiler, cwd=where)
    ok(re.findall(r"^v.*", spoken.stderr, re.M) == topologies[:3] and spoken.stderr.count(SAYS) == 3,
       "-v tells the steps of each machine, in the order of the call", spoken.said)
    ok(os.path.exists(os.path.join(where, "to/here/v2.c/numbers.c")),
       "--keep leaves the sources of each machine in -o FOLDER/")
    emitted = run(KBGEN, *topologies[:3], "--emit", "c", "-o", "c/", cwd=where)
    ok(emitted.returncode == 0 and sorted(os.listdir(os.path.join(where, "c"))) == ["v0.c", "v1.c", "v2.c"],
       "--emit c writes the sources of each machine", emitted.said)


def many_with_errors():
    where, _, _, _ = set_up("errors")
    good = variants(where, 4)
    wrong = write(os.path.join(where, "wrong.yaml"), "system: {nmae: x}\n")
    twice = write(os.path.join(where, "twice.yaml"), "include: base.yaml\nsystem:\n  name: v1\n")
    words = [good[0], wrong, good[1], twice, good[2], "none.yaml", good[3]]
    for jobs in "1", "8":
        shutil.rmtree(os.path.join(where, "build"), ignore_errors=True)
        ended = run(KBGEN, "-j", jobs, *words, cwd=where)
        said = [line for line in ended.stderr.splitlines() if "error:" in line or line.startswith("kbgen")]
        ok(ended.returncode == 2 and len(said) == 3 and "wrong.yaml:1:10: error: unknown key 'nmae'" in said[0]
           and "twice.yaml:3:9: error: 'v1' is the name of v1.yaml and of" in said[1] and "none.yaml" in said[2],
           f"all errors of all files are told, in the order of the call, with -j {jobs}", ended.said)
        found = sorted(os.listdir(os.path.join(where, "build")))
        ok(found == ["kbgen.cache", "v0", "v1", "v2", "v3"],
           f"machines without an error are made beside wrong ones, with -j {jobs}", *found)
    checked = run(KBGEN, "--check", wrong, wrong, *good, cwd=where)
    ok(checked.returncode == 2 and checked.stderr.count("nmae") == 4,
       "--check of several files tells the error of each",
       checked.said)
    missing = run(KBGEN, *good, wrong, "--cc", "no-such-cc", cwd=where)
    ok(missing.returncode == 3, "the exit status is the worst of all files", missing.said)


def living(pids):
    return [pid for pid in read(pids).split() if os.path.exists(f"/proc/{pid}")]


def many_end():
    where, _, _, _ = set_up("end")
    topologies = variants(where, 6)
    pids, out = os.path.join(where, "pids"), os.path.join(where, "out")
    slow = script(os.path.join(where, "slow"),
                  f'case " $* " in *" -c "*) echo $$ >>"{pids}"; exec sleep 600;; esac\nexec {CC} "$@"\n')
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        write(pids, "")
        process = subprocess.Popen([KBGEN, "-j", "3", *topologies, "-o", "out/", "--cc", slow], cwd=where)
        wait_until(lambda: read(pids))
        process.send_signal(name)
        ended = process.wait()
        if name == signal.SIGKILL:                      # other processes notice that it is gone, and clear up
            wait_until(lambda: not living(pids) and not os.listdir(out))
        alive, left = living(pids), os.listdir(out)
        ok(ended == -name and not left and not alive, f"{name.name} ends kbgen and its compilers and leaves no file",
           ended, alive, left)
        kept = os.listdir(os.path.join(where, "build/kbgen.cache"))
        ok(not kept, f"{name.name} leaves nothing in the cache", *kept)


shutil.rmtree(SCRATCH)
suite(numbers_only, prebuilt, users_files, search_paths, other_compilers, cache, at_once, many, many_with_errors, many_end)
