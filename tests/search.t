#!/usr/bin/python3
"""search: kbgen search stores every point of a space once, whatever ends it. plain build only, limit: 300

tests/search.t [KILLS [SEED]]: that many searches are killed at random moments (6, drawn from 1).
"""
import contextlib
import json
import os
import pty
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

from harness import KBGEN, ROOT, SLOW, SMALL, folder, ok, read, remove, run, simulator, skip, suite, wait_until, write
from stores import GEMM_ROWS, LINK, content, downgrade, rows

KILLS, SEED = (sys.argv[1:] + [None] * 2)[:2]
KILLS, SEED = int(KILLS or 6), SEED or "1"
PERILS = os.path.join(ROOT, "tests", "search", "perils.c")
HEAD = f"topology: {SMALL}\n"
GEMM = HEAD + """bench: gemm
params: { m: 128, k: 64, n: 96 }
space:
  cube.noc.link_bw_gbs: [128, 256, 512]
  params.tile_m: [32, 64]
  cube.pe_template.components.pe_gemm.attrs.rows: { from: 16, to: 64, scale: log2 }
derive: { area: "pes * gemm.rows * 0.5" }
where: [ "area <= 64", "end_ps < 2100000" ]
objectives: { end_ps: min }
method: grid
"""
ENDS = HEAD + f"""kernels: [{PERILS}]
bench: perils
space:
  params.how: [good, fault, deadlock, kill, refused, loop, heap, stop]
  cube.pe_template.components.pe_tcm.attrs.size_mb: [16, 1]
  cube.pe_template.components.pe_tcm.attrs.reserved_mb: [0.5, 2]
where: [ "params.how NOT IN ('loop', 'heap', 'stop') OR tcm.size_mb = 16 AND tcm.reserved_mb = 2" ]
objectives: {{ end_ps: min }}
method: grid
"""
HALVING = HEAD + """bench: gemm
params: { n: 64 }
space:
  params.k: [32, 128]
  params.m: [16, 32, 64]
objectives: { end_ps: min }
method: { name: halving, fidelity: params.k }
budget: { points: 4 }
"""
SLOW_POINTS = HEAD + f"""kernels: [{PERILS}]
bench: perils
params: {{ how: good, us: 4000 }}
space: {{ params.ns: {{ from: 1, to: 80, step: 1 }} }}
objectives: {{ end_ps: max }}
method: grid
"""
CASE = os.path.join(ROOT, "tests", "conformance", "mmu_tlb_misses")
PAGE = "cube.pe_template.components.pe_mmu.attrs.page_kb"
STREAM = f"""topology: {CASE}/topo.yaml
replay: {CASE}/stream.yaml
space: {{ sip.cubes.cols: [1, 2], cube.noc.link_bw_gbs: [64, 128], {PAGE}: [4, 8, 64] }}
objectives: {{ end_ps: min }}
method: grid
"""
MIXED = f"""topology: {CASE}/topo.yaml
workloads:
  - {{ name: trace, replay: {CASE}/stream.yaml, weight: 3 }}
  - {{ bench: gemm, params: {{ m: 64, k: 64, n: 64 }} }}
space: {{ cube.noc.link_bw_gbs: [64, 128], params.tile_m: [16, 32] }}
objectives: {{ end_ps: min }}
method: grid
"""
WHERE = folder("stores")


def space(name, text):
    return write(os.path.join(WHERE, name + ".yaml"), text)


def store(name, text=None, keep=False):
    """The path of a store; without `keep` there is none yet."""
    path = os.path.join(WHERE, name + ".db")
    if not keep:
        remove(path, path + "-wal", path + "-shm")
    if text:
        space(name, text)
    return path


def command(name, path, *options):
    # All stores share the simulators that the first one builds.
    link = path + ".simulators"
    if not os.path.lexists(link):
        os.symlink(folder("simulators"), link)
    return [KBGEN, "search", os.path.join(WHERE, name + ".yaml"), "-o", path, *options]


def search(name, path, *options, **more):
    return run(*command(name, path, *options), timeout=100, **more)


def alive(path):
    """Processes whose command line has a path: simulators of a store, or the search itself."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace")
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if path in words and state != "Z":
            found.append((pid, words.replace("\0", " ")))
    return found


# ---- what a search finds

def results():
    path = store("gemm", GEMM)
    ended = search("gemm", path, "-j", "2")
    ok(ended.returncode == 0 and re.match(r".*: 18 of 18 points: \d+ ok, \d+ infeasible, 0 failed; 0 were known", ended.stdout),
       "a search ends with how many points were good", ended.said)
    trials = rows(path, 'SELECT number, t.hash, t.status, t.why, "cube.noc.link_bw_gbs", "params.tile_m",'
                        ' "cube.pe_template.components.pe_gemm.attrs.rows", area, end_ps FROM trial t LEFT JOIN point p USING(hash)'
                        " ORDER BY number")
    ok([row[0] for row in trials] == list(range(18)), "each number of the grid has a trial", trials)
    before = [row for row in trials if row[3] == "where: area <= 64"]
    ok(len(before) == 6 and all(row[1] is None and row[2] == "infeasible" for row in before),
       "a point that misses a condition is not run", trials)
    ran = [row for row in trials if row[1]]
    lines = "".join(json.dumps({"tile_m": row[5], "--set": {"cube.noc.link_bw_gbs": row[4],
                    "cube.pe_template.components.pe_gemm.attrs.rows": row[6]}}) + "\n" for row in ran)
    program = next(os.path.join(folder("simulators"), name) for name in os.listdir(folder("simulators")))
    answers = run(program, "run", "gemm", "m=128", "k=64", "n=96", "--data", "off", "--metrics", "--points",
                  write(os.path.join(WHERE, "lines"), lines))
    want = [json.loads(line)["end_ps"] for line in answers.stdout.splitlines()]
    ok(len(ran) == 12 and [row[8] for row in ran] == want, "metrics are those of runs of the simulator", want, ran)
    ok(all(row[7] == 2 * row[6] * 4 * 0.5 / 2 for row in ran), "a derived value is a column", ran)
    ok(all((row[2] == "infeasible") == (row[8] >= 2100000) for row in ran), "a condition on metrics is decided after the run", ran)
    again = search("gemm", path, "-j", "2")
    ok("18 were known, 0 run" in again.stdout, "the same command again runs nothing", again.said)
    one = store("one", GEMM)
    search("one", one, "-j", "1")
    ok(content(one) == content(path), "one process at a time stores the same as two", content(one), content(path))
    name = "the store opens in SQLite's shell"
    if shutil.which("sqlite3"):
        shell = run("sqlite3", "-header", "-column", path, "SELECT status, end_ps, area FROM point LIMIT 2")
        ok(re.match(r"status +end_ps +area\n-+ +-+ +-+\nok +\d+ +[\d.]+\n", shell.stdout), name, shell.said)
    else:
        skip(name, "there is no sqlite3")
    verified = search("gemm", path, "--verify-best", "3")
    ok(verified.returncode == 0 and "3 points: 3 right, 0 not" in verified.stdout
       and rows(path, "SELECT count(*), min(max_err) > 0, max(max_err) < 0.1 FROM verified WHERE status = 'ok'") == [(3, 1, 1)],
       "the best points are verified with data", verified.said, rows(path, "SELECT * FROM verified"))


def shards():
    whole, parts = content(store("one", keep=True))[1], []
    remove(*(store("shard", keep=True).replace(".db", f".{part}-of-3.db") for part in range(3)))
    for part in range(3):
        path = store("shard", GEMM if part == 0 else None, keep=part > 0)
        search("shard", path, "--shard", f"{part}/3")
        path = path.replace(".db", f".{part}-of-3.db")
        mode = rows(path, "PRAGMA journal_mode")
        ok(mode == [("delete",)], f"shard {part} of 3 has a store without a write-ahead log", mode)
        parts += content(path)[1]
    ok(sorted(parts) == whole, "three shards have all trials, each once", parts)


def refused():
    path = store("other", GEMM)
    for what, data, said in (("a text", b"hello, this is no database at all\n" * 40, "is no SQLite file"),):
        write(path, data)
        ended = run(KBGEN, "search", os.path.join(WHERE, "other.yaml"), "-o", path)
        ok(ended.returncode == 2 and said in ended.stderr and not os.path.exists(path + ".simulators"),
           f"{what} is refused as a store, before anything is built", ended.said)
    for pragma, said in (("application_id = 7", "is an SQLite file, but no store of kbgen search"),
                         ("user_version = 3", r"has version 3; this kbgen reads and writes versions up to 2")):
        path = store("other", GEMM)
        search("other", path)
        with sqlite3.connect(path) as file:
            file.execute(f"PRAGMA {pragma}")
        ended = search("other", path)
        ok(ended.returncode == 2 and said in ended.stderr, f"a store with {pragma} is refused", ended.said)
    path = store("other", GEMM)
    search("other", path)
    space("other", GEMM.replace("0.5", "0.25"))
    ended = search("other", path)
    ok(ended.returncode == 2 and "has area as another expression: pes * gemm.rows * 0.5" in ended.stderr,
       "a derived value has one expression in a store", ended.said)


def clipped():
    """A tile that is larger than a bank is another one: expressions have the one that was used, also when the store has the point."""
    text = GEMM.replace("[32, 64]", "[512]").replace("128, 256, 512", "128").replace('"pes * gemm.rows * 0.5"', '"params.tile_m"')
    path = store("clipped", text.replace("area <= 64", "area > 64"))
    used = "SELECT area, \"params.tile_m\", trial.status FROM trial JOIN point USING(hash)"
    search("clipped", path)
    first = rows(path, used)
    ok(first == [(32, 32, "infeasible")] * 3, "a condition and a derived value see the parameter that the bench has used", first)
    point = {LINK: 128, "params.tile_m": 512, GEMM_ROWS: 16}
    lines = write(os.path.join(WHERE, "asked"), json.dumps({"id": 1, "point": point}) + "\n")
    for cached in (False, True):
        with open(lines, encoding="utf-8") as given:
            answer = json.loads(search("clipped", store("asked", keep=cached), "--method", "ask", stdin=given).stdout.splitlines()[1])
        ok(answer["metrics"]["area"] == 32 and answer["cached"] == cached and answer["status"] == "infeasible",
           f"so does the answer to whom asks{', when the store knows the point' if cached else ''}", answer)


def older():
    path = downgrade(store("gemm", keep=True))
    want = content(path)
    front = run(KBGEN, "front", path)
    ok(front.returncode == 0 and rows(path, "PRAGMA user_version") == [(1,)], "a front reads a store of version 1", front.said)
    merged = store("merged")
    ended = run(KBGEN, "merge", merged, path)
    ok(ended.returncode == 0 and content(merged) == want, "merge takes a store of version 1", ended.said)
    ended = search("gemm", path, "--verify-best", "1")
    ok("0 run" in ended.stdout and rows(path, "PRAGMA user_version") == [(2,)] and content(path) == want
       and rows(path, "SELECT count(max_err) FROM verified") == [(1,)], "a search makes it one of version 2, and goes on", ended.said)


def odd_stores():
    path = store("foreign", GEMM)
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE theirs(x)")
    before = read(path)
    ended = search("foreign", path)
    ok(ended.returncode == 2 and "no store of kbgen search" in ended.stderr and read(path) == before,
       "a database of another program is refused and left as it is", ended.said)
    for name in (":memory:", "file:x?mode=memory"):
        store(name)
        words = command("foreign", os.path.join(WHERE, name))
        ended = run(*words[:-1], name, "--points", "1", cwd=WHERE)
        ok(ended.returncode == 0 and os.path.exists(os.path.join(WHERE, name)), f"{name} is a file like any other", ended.said)
    ended = run(KBGEN, "search", os.path.join(WHERE, "foreign.yaml"), "-o", "", cwd=WHERE)
    ok(ended.returncode == 2 and "needs a name" in ended.stderr, "a store has a name", ended.said)
    path = store("limits", GEMM)
    for words in (("--mem-limit", "much"), ("--mem-limit", "0"), ("--mem-limit", "1 s"), ("--point-timeout", "-1 s"),
                  ("--point-timeout", "0.1 ps")):
        ended = search("limits", path, *words)
        ok(ended.returncode == 2 and " ".join(words) in ended.stderr and not os.path.exists(path),
           f"{' '.join(words)} is refused before a point has it", ended.said)


# ---- the best points once more, with data

def verified():
    path = store("halving", HALVING)
    ended = search("halving", path, "--verify-best", "9")
    found = rows(path, 'SELECT "params.k" FROM verified JOIN point USING(hash)')
    ok(ended.returncode == 0 and found and set(found) == {(128,)}, "only results of the last fidelity are verified", found, ended.said)
    path = store("wrong", ENDS.replace("good, fault", "good, wrong, fault").replace("[16, 1]", "[16]").replace("[0.5, 2]", "[2]")
                 .replace("NOT IN ('loop', 'heap', 'stop')", "IN ('good', 'wrong')").replace(" OR tcm.size_mb = 16 AND tcm.reserved_mb = 2", ""))
    ended = search("wrong", path, "--verify-best", "2")
    found = rows(path, 'SELECT "params.how", v.status FROM verified v JOIN point USING(hash) ORDER BY 1')
    ok(ended.returncode == 1 and found == [("good", "ok"), ("wrong", "wrong data")], "wrong data are found, and are status 1",
       found, ended.said)
    path = store("long", SLOW_POINTS.replace("us: 4000", "us: 500000").replace("to: 80", "to: 3"))
    running = subprocess.Popen(command("long", path, "-j", "3", "--verify-best", "3"), stdout=subprocess.PIPE, text=True)
    stored = wait_until(lambda: os.path.exists(path) and rows(path, "SELECT 1 FROM sqlite_schema WHERE name = 'trial'")
                        and len(rows(path, "SELECT * FROM trial")) == 3, 30)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)
    ok(stored and running.returncode == -signal.SIGINT, "Ctrl-C ends the verification at once", running.returncode)
    ok(wait_until(lambda: not alive(path), 5), "and no process is left", alive(path))


# ---- command streams

def replayed(program, stream, *settings):
    sets = [word for setting in settings for word in ("--set", setting)]
    ended = run(program, "replay", stream, *sets, "--json", "-")
    return json.loads(ended.stdout)["end_ps"] if ended.returncode == 0 else None


def streams():
    # The number of pages of a map depends on a number of the machine; a page of 64 KiB does not fit to its address.
    columns = f'"sip.cubes.cols", "cube.noc.link_bw_gbs", "{PAGE}"'
    path, stream = store("stream", STREAM), os.path.join(CASE, "stream.yaml")
    ended = search("stream", path, "-j", "2")
    got = rows(path, f"SELECT {columns}, status, end_ps, why FROM point ORDER BY 1, 2, 3")
    programs = {cols: simulator(os.path.join(CASE, "topo.yaml"), f"cols{cols}", settings=(f"sip.cubes.cols={cols}",))
                for cols in (1, 2)}
    want = [(cols, gbs, page, replayed(programs[cols], stream, f"cube.noc.link_bw_gbs={gbs}", f"{PAGE}={page}"))
            for cols in (1, 2) for gbs in (64, 128) for page in (4, 8, 64)]
    ok(ended.returncode == 0 and [row[:3] + row[4:5] for row in got] == want and len({row[3] for row in want}) == 5,
       "points of a stream end when its replay with --set does", ended.said, got, want)
    ok(all((row[3] == "refused" and "is no multiple of the page" in row[5]) == (row[2] == 64) for row in got),
       "a machine for which the stream is wrong is refused, with the reason", got)
    own = os.path.join(WHERE, "own.yaml")
    for name, extra, said in (("the same content", "", "12 were known, 0 run"), ("another content", "# another\n", "0 were known, 12 run")):
        write(own, read(stream) + extra)
        space("stream", STREAM.replace(stream, own))
        again = search("stream", path)
        ok(said in again.stdout, f"a stream in another file with {name} is {'another' if extra else 'the same'} workload", again.said)
    ended = search("stream", path, "--verify-best", "2")
    ok(ended.returncode == 0 and "2 points: 2 right, 0 not" in ended.stdout
       and rows(path, "SELECT status, max_err FROM verified") == [("ok", None)] * 2, "points of a stream are run once more, event by event", ended.said)
    rows(path, "UPDATE point SET end_ps = end_ps - 1 WHERE hash IN (SELECT hash FROM verified)")
    ended = search("stream", path, "--verify-best", "2")
    ok(ended.returncode == 1 and "2 points: 0 right, 2 not" in ended.stdout
       and rows(path, "SELECT DISTINCT status FROM verified") == [("different",)], "a result that is not that of the run before is told", ended.said)
    path = store("mixed", MIXED)
    ended = search("mixed", path)
    got = rows(path, 'SELECT "cube.noc.link_bw_gbs", "trace.end_ps", end_ps - 3 * "trace.end_ps" - "gemm.end_ps", "gemm.end_ps" > 0 FROM point')
    want = [(gbs, replayed(programs[1], stream, f"cube.noc.link_bw_gbs={gbs}"), 0, 1) for gbs in (64, 64, 128, 128)]
    ok(ended.returncode == 0 and sorted(got) == want, "a stream and a bench are workloads of one search", ended.said, got, want)
    for case, ending in (("deadlock", "waits for ever"), ("timeout", "timed out"), ("host_memory_bad", "a write of memory failed with BAD_ADDRESS")):
        of_case = os.path.join(ROOT, "tests", "conformance", case, "stream.yaml")
        lines = write(os.path.join(WHERE, "lines"), '{}\n{"--set": {"cube.noc.link_bw_gbs": 64}}\n')
        ended = run(programs[2], "replay", of_case, "--metrics", "--points", lines)
        answers = [json.loads(line) for line in ended.stdout.splitlines()]
        ok(ended.returncode == 1 and len(answers) == 2 and all(ending in answer["why"] for answer in answers),
           f"each point of the stream {case} says how it failed", ended.said)


def edited_kernel():
    own = write(os.path.join(WHERE, "own.c"), read(PERILS))
    path = store("edited", HEAD + f"kernels: [{own}]\nbench: perils\nparams: {{ how: good }}\nspace: {{ params.ns: [1, 2] }}\n"
                                  "objectives: { end_ps: min }\nmethod: grid\n")
    search("edited", path)
    write(own, read(PERILS) + "/* another */\n")
    again = search("edited", path)
    ok("0 were known, 2 run" in again.stdout, "after a kernel was edited, all points run again", again.said)


# ---- points that fail

def failures():
    path = store("ends", ENDS)
    ended = search("ends", path, "-j", "2", "--point-timeout", "0.3 s", "--mem-limit", "100 MiB")
    size, reserved = (f'"cube.pe_template.components.pe_tcm.attrs.{name}_mb"' for name in ("size", "reserved"))
    got = dict(rows(path, f'SELECT "params.how", status FROM point WHERE {size} = 16 AND {reserved} = 2'))
    got["heap"] = "memory" if got.get("heap") == "time limit" else got.get("heap")      # whichever comes first
    want = {"good": "ok", "fault": "fault", "deadlock": "deadlock", "loop": "time limit", "heap": "memory", "kill": "crashed",
            "stop": "hung", "refused": "refused"}
    ok(ended.returncode == 0 and got == want, "each way to fail is a row with its word", ended.said, got)
    why = dict(rows(path, f'SELECT "params.how", why FROM point WHERE {size} = 16 AND {reserved} = 2'))
    ok("KERNEL_ERROR" in why["fault"] and "waits for ever" in why["deadlock"] and why["kill"] == "signal 9"
       and "sip9" in why["refused"] and why["good"] is None, "a failure has its reason", why)
    bad = rows(path, f"SELECT DISTINCT status, why, exit, structure FROM point WHERE {size} = 1 AND {reserved} = 2")
    ok(len(bad) == 1 and bad[0][0] == "refused" and "reserved_mb" in bad[0][1] and bad[0][2:] == (None, None)
       and "error" not in ended.stderr, "a machine that kbgen refuses is a row with the message", bad, ended.said)
    again = search("ends", path)
    ok("0 run" in again.stdout, "points that have failed are not run again", again.said)
    ok(not alive(path), "no process is left", alive(path))


# ---- interruptions

def undisturbed():
    path = store("slow", SLOW_POINTS)
    ended = search("slow", path, "-j", "2")
    ok(ended.returncode == 0 and "80 ok" in ended.stdout, "a search with slow points ends", ended.said)
    return content(path)


def trials_of(path):
    """How many trials a store has that a search is writing, or was killed over."""
    try:
        return rows(path, "SELECT count(*) FROM trial")[0][0]
    except sqlite3.OperationalError:                    # there is no store, or no table yet
        return 0


def kill_at_random(draw, path, victim):
    """Starts a search, kills it, or one of its simulators, at a random moment; returns its status or None."""
    process = subprocess.Popen(command("slow", path, "-j", "2"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if draw.random() < 0.8:                             # else before it has begun
        wait_until(lambda: trials_of(path) or process.poll() is not None)
    time.sleep(draw.uniform(0, 0.15))
    if victim == "simulator":
        for pid, words in alive(path + ".simulators"):
            if "--metrics" in words:
                with contextlib.suppress(ProcessLookupError):        # it has ended by itself
                    os.kill(int(pid), signal.SIGKILL)
                break
        return process.wait(timeout=100 * SLOW)
    process.kill()
    process.wait()
    return None


def kills():
    want, draw, wrong, left, partial = undisturbed(), random.Random(SEED), [], [], 0
    for number in range(KILLS):
        path, victim = store("killed"), ("search", "simulator")[number % 2]
        status = kill_at_random(draw, path, victim)
        if victim == "search":
            wait_until(lambda path=path: not alive(path), 5)
            left += alive(path)
            partial += 0 < trials_of(path) < 80
        again = search("slow", path, "-j", "2")
        if content(path) != want or again.returncode or status not in (None, 0):
            wrong.append(f"{number}: {victim}: {again.said}")
    ok(not wrong, f"{KILLS} searches that were killed, or had a simulator killed, have the same content once they went on", *wrong)
    ok(not left, "a search that is killed leaves no process", *left)
    ok(partial, f"{partial} of {(KILLS + 1) // 2} searches were killed while they had some of their points")


def full_disk():
    points = SLOW_POINTS.replace("to: 80", "to: 600").replace("us: 4000", "us: 0")
    path, free = store("full", points), store("free", points)
    limit = 50000

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    search("full", path, "--points", "1")
    ended = search("full", path, "-j", "2", preexec_fn=small_files)
    ok(ended.returncode == 3 and "store" in ended.stderr, "a full disk ends a search with status 3", ended.said)
    check = rows(path, "PRAGMA integrity_check")
    ok(check == [("ok",)], "its store is whole", check)
    again = search("full", path, "-j", "2")
    search("free", free, "-j", "2")
    ok(again.returncode == 0 and content(path) == content(free), "the search goes on when there is room again", again.said)
    ok(not alive(path), "no process is left after a full disk", alive(path))


# In a mount namespace, which ends with its shell: a disk of 1 MiB that is nearly full, and has room again later.
SMALL_DISK = """
mount -t tmpfs -o size=1m none "$1" || exit 77
cd "$1" && ln -s "$2" full.db.simulators && "$3" search "$4" -o full.db --points 100 && head -c 850k /dev/zero > filler
"$3" search "$4" -o full.db -j 2
echo "first status $?"
cp full.db full.db-* "$5" && rm filler && "$3" search "$4" -o full.db -j 2 && cp full.db "$6"
"""


def small_disk():
    name = "a real disk of 1 MiB that is full ends a search with status 3, with a good store, which goes on"
    early, late, free = folder("early"), store("late"), store("free", keep=True)
    space("full", SLOW_POINTS.replace("to: 80", "to: 600").replace("us: 4000", "us: 0"))
    if not shutil.which("unshare"):
        skip(name, "there is no unshare")
        return
    ended = run("unshare", "--mount", "sh", "-c", SMALL_DISK, "sh", folder("disk"), folder("simulators"), KBGEN,
                os.path.join(WHERE, "full.yaml"), early, late, timeout=100)
    if ended.returncode == 77 or ended.stderr.startswith("unshare: "):
        skip(name, "this user cannot mount a disk")
        return
    first = os.path.join(early, "full.db")
    ok(ended.returncode == 0 and "first status 3" in ended.stdout and "disk is full" in ended.stderr and 100 <= trials_of(first) < 600
       and rows(first, "PRAGMA integrity_check") == [("ok",)] and content(late) == content(free), name, ended.said, trials_of(first))


def on_terminal(path, keys, *options):
    """Runs a search on a terminal and types keys: (text to wait for, key); returns what it shows, its status and seconds
    from the last key to the end."""
    pid, terminal = pty.fork()
    if not pid:
        os.environ["COLUMNS"] = "100"
        words = command("slow", path, *options)
        os.execv(words[0], words)
    shown, since, status = "", 0, None
    end = time.monotonic() + 60 * SLOW
    while time.monotonic() < end:
        try:
            shown += os.read(terminal, 4096).decode(errors="replace")
        except OSError:
            break
        while keys and re.search(keys[0][0], shown):
            os.write(terminal, keys.pop(0)[1].encode())
            since = time.monotonic()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    return shown, status, time.monotonic() - since


def ctrl_c():
    want = content(store("slow", keep=True))
    path = store("typed")
    shown, status, _ = on_terminal(path, [(r"\d+ / 80 points, [\d.]+/s, 0 failed, best end_ps \d+", "\x03")], "-j", "1")
    done = len(rows(path, "SELECT * FROM trial"))
    ok(status == 130 and 0 < done < 80 and "the same command goes on" in shown, "Ctrl-C ends a search in order", shown, status, done)
    again = search("slow", path)
    ok(again.returncode == 0 and content(path) == want, "and the same command goes on", again.said)
    write(os.path.join(WHERE, "slow.yaml"), SLOW_POINTS.replace("us: 4000", "us: 9000000"))
    path = store("twice")
    shown, status, seconds = on_terminal(path, [("/ 80 points", "\x03"), ("ending", "\x03")], "-j", "2")
    ok(status == 130 and seconds < 3 * SLOW, "a second Ctrl-C ends it at once", shown, status, seconds)
    ok(wait_until(lambda: not alive(path), 5), "no process is left after it", alive(path))
    space("slow", SLOW_POINTS)


def shared():
    path = store("shared")
    space("half", SLOW_POINTS.replace("to: 80", "to: 50"))
    space("rest", SLOW_POINTS.replace("from: 1,", "from: 31,"))
    both = [subprocess.Popen(command(name, path, "-j", "1"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for name in ("half", "rest")]
    said = [process.communicate(timeout=100 * SLOW)[0] for process in both]
    ok([process.returncode for process in both] == [0, 0], "two searches share a store", *said)
    points, trials = content(path)
    ok(points == content(store("slow", keep=True))[0] and len(trials) == 100, "each point is in it once, each trial in its search",
       len(points), len(trials))


suite(results, shards, refused, clipped, older, odd_stores, verified, streams, edited_kernel, failures, kills, full_disk, small_disk, ctrl_c, shared)
