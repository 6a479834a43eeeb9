#!/usr/bin/python3
"""numbers: topologies that differ in numbers share one linked simulator; many are made in one call. limit: 300"""
import os
import re
import shutil
import signal
import subprocess
import time

from harness import KBGEN, ROOT, SCRATCH, done, folder, ok, read, run, script, write

CC, SANITIZED = os.environ.get("CC") or "gcc", os.environ.get("SAN")
SAYS = "no compiler, no linker"
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
    """A folder with a topology and a compiler that logs what it is called for; returns both and the log."""
    where = folder(name)
    log = os.path.join(where, "log")
    compiler = script(os.path.join(where, "cc"), f'echo "$*" >>"{log}"\nexec {CC} "$@"\n')
    return where, write(os.path.join(where, "base.yaml"), BASE), compiler, log


def called(log):
    """The calls of the compiler since the last time."""
    calls = read(log).splitlines() if os.path.exists(log) else []
    write(log, "")
    return calls


def same(left, right):
    if SANITIZED:
        return True                                     # a sanitizer's objects name their sources
    compared = run("cmp", left, right)
    return ok(compared.returncode == 0, f"{os.path.basename(left)} is byte for byte what a full build gives",
              compared.said)


def full(where, topology, *options):
    """A simulator made without a cache."""
    path = os.path.join(where, "full")
    run("rm", "-f", path)
    ended = run(KBGEN, topology, "-o", path, *options, cwd=where, env=os.environ | {"KBGEN_CACHE": ""})
    ok(ended.returncode == 0, "a full build", ended.said)
    return path


def made(title, compiles, log, where, *words):
    """Runs kbgen; the compiler has to be called, or must not be, for anything at all."""
    called(log)
    ended = run(KBGEN, *words, "-v", cwd=where)
    calls = called(log)
    ok(ended.returncode == 0 and bool(calls) == compiles and (SAYS in ended.stderr) != compiles,
       f"{title}: {'compiled' if compiles else SAYS}", ended.said, *calls)
    return ended


def numbers_only():
    where, topology, compiler, log = set_up("numbers")
    made("the first", True, log, where, topology, "-o", "first", "--cc", compiler)
    for title, change in NUMBERS:
        made(title, False, log, where, topology, "-o", "n", "--cc", compiler, "--set", change)
        same(os.path.join(where, "n"), full(where, topology, "--cc", CC, "--set", change))
    everything = [word for _, change in NUMBERS for word in ("--set", change)]
    made("all of them", False, log, where, topology, "-o", "n", "--cc", compiler, "--keep", *everything)
    same(os.path.join(where, "n"), full(where, topology, "--cc", CC, *everything))
    info = run(os.path.join(where, "n"), "info")
    ok("something_else" in info.stdout and "pe_gemm" not in info.stderr, "it runs", info.said)
    ok("77 * GB_PER_S" in read(os.path.join(where, "n.c/numbers.c")), "--keep leaves its sources")
    moved = write(os.path.join(where, "moved.yaml"), "# other lines\n\n" + BASE)
    made("other lines", False, log, where, moved, "-o", "m", "--cc", compiler)
    same(os.path.join(where, "m"), os.path.join(where, "first"))
    for title, change in STRUCTURES:
        made(title, True, log, where, topology, "-o", "s", "--cc", compiler, "--set", change)
        made(title + ", again", False, log, where, topology, "-o", "t", "--cc", compiler, "--set", change)
    made("another level", True, log, where, topology, "-o", "s", "--cc", compiler, "-O1")
    script(compiler, f'echo "$*" >>"{log}"\nexec {CC} -O3 "$@"\n')
    ended = run(KBGEN, topology, "-o", "changed", "--cc", compiler, cwd=where)
    ok(ended.returncode == 0 and called(log), "a compiler that is replaced is asked again", ended.said)


def users_files():
    where, topology, compiler, log = set_up("users")
    header = write(os.path.join(where, "mine.h"), "enum { DELAY_NS = 5 };\n")
    write(os.path.join(where, "mine.c"), KERNEL)
    impl = os.path.join(ROOT, "topologies/impl/vector.c")
    own = ("-k", "mine.c", "--impl", impl, "--cc", compiler, "--set", PE + "pe_math.impl=vector")
    own += ("--set", PE + "pe_math.attrs.params={special_units: 32, throttle: 0.9}")
    made("a kernel and a model", True, log, where, topology, "-o", "own", *own)
    change = ("--set", "cube.noc.link_bw_gbs=5")
    made("another number", False, log, where, topology, "-o", "own", *own, *change)
    same(os.path.join(where, "own"), full(where, topology, *own, *change))
    called(log)
    ended = run(KBGEN, topology, "-o", "more", *own, "--set", "system.sips=2", cwd=where)
    calls = [call for call in called(log) if " -c " in call and "mine.c" in call]
    ok(ended.returncode == 0 and not calls, "another count: the kernel is not compiled again", ended.said, *calls)
    same(os.path.join(where, "more"), full(where, topology, *own, "--set", "system.sips=2"))
    write(header, "enum { DELAY_NS = 6 };\n")
    made("a header that changed", True, log, where, topology, "-o", "own", *own, *change)
    same(os.path.join(where, "own"), full(where, topology, *own, *change))


def search_paths():
    where, topology, compiler, log = set_up("paths")
    write(os.path.join(where, "mine.c"), KERNEL)
    words = (topology, "-k", "mine.c", "--cc", compiler)
    for delay in (5, 6):
        os.environ["CPATH"] = folder("paths", f"delay{delay}")
        write(os.path.join(os.environ["CPATH"], "mine.h"), f"enum {{ DELAY_NS = {delay} }};\n")
        made(f"a header that CPATH finds, {delay}", True, log, where, *words, "-o", "own")
        same(os.path.join(where, "own"), full(where, *words))
    del os.environ["CPATH"]


def other_compilers():
    """Folded numbers, debug information with checksums of sources: nothing may depend on a number."""
    where, topology, _, _ = set_up("compilers")
    change = ("--set", "cube.noc.link_bw_gbs=5", "--set", "system.name=other")
    for compiler in ("clang", "clang -g", "gcc -g3", "gcc -flto=auto", "gcc -fdata-sections"):
        run(KBGEN, topology, "-o", "first", "--cc", compiler, cwd=where)
        ended = run(KBGEN, topology, "-o", "n", "-v", "--cc", compiler, *change, cwd=where)
        ok(SAYS in ended.stderr, f"{compiler}: {SAYS}", ended.said)
        same(os.path.join(where, "n"), full(where, topology, "--cc", compiler, *change))
    stripped = run(KBGEN, topology, "-o", "s", "--cc", CC + " -s", cwd=where)
    again = run(KBGEN, topology, "-o", "s", "-v", "--cc", CC + " -s", *change, cwd=where)
    ok(stripped.returncode + again.returncode == 0 and SAYS not in again.stderr, "without symbols it is built again",
       again.said)
    same(os.path.join(where, "s"), full(where, topology, "--cc", CC + " -s", *change))


def cache():
    where, topology, compiler, log = set_up("cache")
    words = (topology, "-o", "c", "--cc", compiler, "--set")
    made("the first", True, log, where, *words, "system.name=x")
    kept = os.path.join(where, "build/kbgen.cache")
    entry = next(os.path.join(kept, name) for name in os.listdir(kept) if name.startswith("simulator"))
    with open(entry, "rb") as file:
        whole = file.read()
    for title, damaged in (("a byte", whole[:5000] + b"\x55\xaa" + whole[5002:]), ("an end", whole[:9000]),
                           ("all of it", b""), ("its length", whole + b"x")):
        with open(entry, "wb") as file:
            file.write(damaged)
        made(f"{title} damaged", True, log, where, *words, "system.name=y")
        same(os.path.join(where, "c"), full(where, topology, "--set", "system.name=y"))
        made("and after that", False, log, where, *words, "system.name=z")
    shutil.rmtree(kept)
    made("a cache that is gone", True, log, where, *words, "system.name=a")
    large = write(os.path.join(kept, "large"), "")
    os.truncate(large, 1 << 29)
    os.utime(large, (1, 1))
    made("one that is too large", True, log, where, *words, "system.sips=2")
    ok(not os.path.exists(large) and any(name.startswith("simulator") for name in os.listdir(kept)),
       "loses what was used longest ago", *os.listdir(kept))
    ok(not [name for name in os.listdir(kept) if ".tmp" in name or ".lock" in name], "and holds nothing else")
    for place in ("/proc/none", os.path.join(topology, "no/folder")):
        ended = run(KBGEN, topology, "-o", "p", cwd=where, env=os.environ | {"KBGEN_CACHE": place})
        ok(ended.returncode == 0 and not ended.said.splitlines()[1:], "a cache that cannot be is no error", ended.said)
        os.unlink(os.path.join(where, "p"))


def at_once():
    """Several kbgens side by side, with nothing in the cache."""
    where, topology, compiler, log = set_up("at_once")
    words = [KBGEN, topology, "--cc", compiler]
    running = [subprocess.Popen(words + ["-o", f"p{i}", "--set", f"cube.noc.link_bw_gbs={i}"], cwd=where)
               for i in range(1, 7)]
    ok(not any([process.wait() for process in running]), "several kbgens at once")
    linked = [call for call in called(log) if "--build-id" in call]
    ok(len(linked) == 1, "one of them links", *linked)
    for i in (1, 6):
        same(os.path.join(where, f"p{i}"), full(where, topology, "--set", f"cube.noc.link_bw_gbs={i}"))


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
    ok(ended.returncode == 0 and not ended.stdout + ended.stderr, "30 topologies in one call", ended.said)
    ok(sum("--build-id" in call for call in calls) == 1, "are compiled and linked once", *calls)
    found = sorted(os.listdir(os.path.join(where, "build")))
    ok(found == sorted(["kbgen.cache"] + [f"v{i}" for i in range(30)]), "each is build/NAME", *found)
    for i in (0, 29):
        same(os.path.join(where, "build", f"v{i}"), full(where, os.path.join(where, f"v{i}.yaml")))
    spoken = run(KBGEN, "-v", *topologies[:3], "-o", "to/here/", "--keep", "--cc", compiler, cwd=where)
    ok(re.findall(r"^v.*", spoken.stderr, re.M) == topologies[:3] and spoken.stderr.count(SAYS) == 3,
       "-v says of each what took how long, in order", spoken.said)
    ok(os.path.exists(os.path.join(where, "to/here/v2.c/numbers.c")), "-o FOLDER/, --keep")
    emitted = run(KBGEN, *topologies[:3], "--emit", "c", "-o", "c/", cwd=where)
    ok(emitted.returncode == 0 and sorted(os.listdir(os.path.join(where, "c"))) == ["v0.c", "v1.c", "v2.c"],
       "--emit c", emitted.said)


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
           f"-j {jobs}: all errors of all files, in order", ended.said)
        found = sorted(os.listdir(os.path.join(where, "build")))
        ok(found == ["kbgen.cache", "v0", "v1", "v2", "v3"], "the others are made", *found)
    checked = run(KBGEN, "--check", wrong, wrong, *good, cwd=where)
    ok(checked.returncode == 2 and checked.stderr.count("nmae") == 4, "--check", checked.said)
    missing = run(KBGEN, *good, wrong, "--cc", "no-such-cc", cwd=where)
    ok(missing.returncode == 3, "the worst of the exit statuses", missing.said)


def living(pids):
    return [pid for pid in read(pids).split() if os.path.exists(f"/proc/{pid}")]


def many_end():
    where, _, _, _ = set_up("end")
    topologies = variants(where, 6)
    pids = os.path.join(where, "pids")
    slow = script(os.path.join(where, "slow"),
                  f'case " $* " in *" -c "*) echo $$ >>"{pids}"; sleep 3;; esac\nexec {CC} "$@"\n')
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        write(pids, "")
        process = subprocess.Popen([KBGEN, "-j", "3", *topologies, "-o", "out/", "--cc", slow], cwd=where)
        for _ in range(100):
            if read(pids):
                break
            time.sleep(0.05)
        process.send_signal(name)
        ended = process.wait()
        alive, left = living(pids), os.listdir(os.path.join(where, "out"))
        for _ in range(100):                            # who is killed leaves it to others to follow and to clear up
            if name == signal.SIGKILL and (alive or left):
                time.sleep(0.02)
                alive, left = living(pids), os.listdir(os.path.join(where, "out"))
        ok(ended == -name and not left and not alive, f"{name.name} ends all of them, and leaves nothing", ended, left)
        kept = os.listdir(os.path.join(where, "build/kbgen.cache"))
        ok(not kept, "in the cache neither", *kept)


shutil.rmtree(SCRATCH)
numbers_only()
users_files()
search_paths()
if not SANITIZED:
    other_compilers()
cache()
at_once()
many()
many_with_errors()
many_end()
done()
