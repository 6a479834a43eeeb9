"""searching: a search against the same points by hand: lines of --points in one simulator, or kbgen in a loop.

CPU time of whole processes on one core, with all that they start. What a search does once (its first simulator, its
store) is measured by a search of one point and taken off."""
import json
import os
import subprocess
import tempfile
import time

from measure import cpu_s, in_turn, median, ratio
from row import Result, Row, duration, times
from setting import KBGEN, ROOT, output, write

REF_SIP = os.path.join(ROOT, "topologies", "ref_sip.yaml")
SIZES = {"m": 4096, "n": 64, "tile_m": 32, "tile_k": 64, "tile_n": 64}
POINTS, NEW, OBJECTIVES = 1000, 3, "objectives: { end_ps: min }\nmethod: grid\n"
STORED = 1000000


def space(setting, name, axes, topology=REF_SIP, params=None):
    fixed = json.dumps(SIZES | (params or {}))
    keys = "".join(f"  {key}: {levels}\n" for key, levels in axes.items())
    return write(setting.path(name + ".yaml"), f"topology: {topology}\nbench: gemm\nparams: {fixed}\nspace:\n{keys}{OBJECTIVES}")


def fresh(setting, path, *words):
    """Searches with a new store; returns the CPU time. Simulators of the space are kept."""
    store = path.replace(".yaml", ".db")
    for end in ("", "-wal", "-shm"):
        if os.path.exists(store + end):
            os.remove(store + end)
    return cpu_s(KBGEN, "search", path, "-o", store, *words, cwd=setting.folder)


def against_lines(setting, name, axes, lines, params, goal):
    """Points of a search over the lines of one simulator that answers with metrics, and with whole results."""
    path, points = space(setting, name, axes, params=params), write(setting.path(name + ".jsonl"), "".join(map("{}\n".format, lines)))
    words = ("run", "gemm", *(f"{key}={value}" for key, value in (SIZES | params).items()), "--data", "off", "--points", points)
    program = setting.simulator(REF_SIP)
    fresh(setting, path, "--points", "1")
    searched, once, whole, short = in_turn(
        setting.pairs, lambda: fresh(setting, path, "-j", "1"), lambda: fresh(setting, path, "-j", "1", "--points", "1"),
        lambda: cpu_s(program, *words), lambda: cpu_s(program, *words, "--metrics"))
    by_search = [a - b for a, b in zip(searched, once)]
    return Result(times(ratio(whole, by_search)), ratio(whole, by_search) >= goal,
                  f"points/s over those of `SIM run --points`, gemm on ref_sip, 128 PEs: {POINTS / median(by_search):,.0f}/s; over its "
                  f"`--metrics`: {times(ratio(short, by_search))}", {"search": searched, "once": once, "lines": whole, "metrics": short})


def parameters(setting):
    return against_lines(setting, "parameters", {"params.k": f"{{ from: 1, to: {POINTS}, step: 1 }}"},
                         [json.dumps({"k": k}) for k in range(1, POINTS + 1)], {}, 0.9)


def numbers(setting):
    key = "cube.noc.link_bw_gbs"
    return against_lines(setting, "numbers", {key: f"{{ from: 101, to: {POINTS + 100}, step: 1 }}"},
                         [json.dumps({"--set": {key: gbs}}) for gbs in range(101, POINTS + 101)], {"k": 64}, 0.6)


STRUCTURE = "cube.pe_template.components.pe_dma.attrs.rd_engines"


def structures_new(setting):
    """Each structure is compiled; a search and a loop of kbgen, each with a cache of its own."""
    counts = range(2, 2 + NEW)
    path = space(setting, "structures", {STRUCTURE: list(counts)}, params={"k": 64})
    words = ("run", "gemm", *(f"{key}={value}" for key, value in (SIZES | {"k": 64}).items()), "--data", "off", "--json", "-")

    def search():
        with tempfile.TemporaryDirectory(dir=setting.folder) as folder:
            return cpu_s(KBGEN, "search", path, "-o", os.path.join(folder, "s.db"), "-j", "1", cwd=folder)

    def loop():
        with tempfile.TemporaryDirectory(dir=setting.folder) as folder:
            return sum(cpu_s(KBGEN, REF_SIP, "--set", f"{STRUCTURE}={count}", "-o", os.path.join(folder, "sim"), cwd=folder)
                       + cpu_s(os.path.join(folder, "sim"), *words) for count in counts)

    searched, looped = in_turn(setting.pairs, search, loop)
    twice = [seconds / (2 * loop_s) for seconds, loop_s in zip(searched, looped)]
    return Result(times(median(twice)), median(twice) <= 0.6, f"CPU time of a search of {NEW} new structures, "
                  f"{duration(median(searched))}, over kbgen and a run in a loop, twice, {duration(2 * median(looped))}",
                  {"search": searched, "loop": looped})


def structures_known(setting):
    """The simulators of all structures are there: points of several structures against as many of one."""
    each = POINTS // NEW
    link = {"cube.noc.link_bw_gbs": f"{{ from: 101, to: {each + 100}, step: 1 }}"}
    known = space(setting, "known", {STRUCTURE: list(range(2, 2 + NEW))} | link, params={"k": 64})
    one = space(setting, "one", {"cube.noc.link_bw_gbs": f"{{ from: 101, to: {NEW * each + 100}, step: 1 }}"}, params={"k": 64})
    for path in (known, one):
        fresh(setting, path)
    over, numbers_alone = in_turn(setting.pairs, lambda: fresh(setting, known, "-j", "1"), lambda: fresh(setting, one, "-j", "1"))
    return Result(times(ratio(numbers_alone, over)), ratio(numbers_alone, over) >= 0.8,
                  f"points/s of {NEW} structures that were built before, over those of one", {"known": over, "one": numbers_alone})


def two_jobs(setting):
    """Wall time: the machine must be idle otherwise. Each point does nothing for 5 ms, so the work is that of two cores even
    where there is one."""
    path = write(setting.path("jobs.yaml"), f"topology: {os.path.join(ROOT, 'tests', 'small.yaml')}\n"
                 f"kernels: [{os.path.join(ROOT, 'tests', 'search', 'perils.c')}]\nbench: perils\nparams: {{ how: good, us: 5000 }}\n"
                 "space: { params.ns: { from: 1, to: 300, step: 1 } }\n" + OBJECTIVES)
    fresh(setting, path, "--points", "1")

    def seconds(jobs):
        began = time.monotonic()
        for end in ("", "-wal", "-shm"):
            if os.path.exists(setting.path("jobs.db" + end)):
                os.remove(setting.path("jobs.db" + end))
        subprocess.run([KBGEN, "search", path, "-o", setting.path("jobs.db"), "-j", str(jobs)], check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - began

    one, two = in_turn(setting.pairs, lambda: seconds(1), lambda: seconds(2))
    return Result(times(ratio(one, two)), ratio(one, two) >= 1.8, f"wall time of -j 1, {duration(median(one))}, over -j 2, "
                  f"{duration(median(two))}: points that take 5 ms", {"one": one, "two": two})


def stored(setting):
    """A store of a million points: those of a real search, copied with other hashes by SQLite."""
    path = space(setting, "stored", {"params.k": f"{{ from: 1, to: {POINTS}, step: 1 }}"})
    store = setting.path("stored.db")
    fresh(setting, path)
    copies = STORED // POINTS
    output("sqlite3", store, "PRAGMA synchronous = OFF", f"""
        WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < {copies - 1})
        INSERT INTO trial SELECT search, number + n * {POINTS}, printf('%08x', number * 2654435761 + n * 40503 & 0xffffffff) || printf('%08x', n)
               || substr(hash, 17), status, why, levels FROM trial, copy""", f"""
        CREATE TEMP TABLE old AS SELECT point.*, number AS of_number FROM point JOIN trial USING(hash) WHERE number < {POINTS}""", """
        INSERT INTO point SELECT trial.hash, structure, old.status, old.why, exit, host_us, "params.k", """
           f"""end_ps + number / {POINTS}, gemm_flop, peak_ppm, events FROM trial JOIN old ON of_number = number % {POINTS} WHERE number >= {POINTS}
        ORDER BY 1""", "PRAGMA wal_checkpoint(TRUNCATE)")
    size = os.path.getsize(store) / int(output("sqlite3", store, "SELECT count(*) FROM point"))
    seconds, = in_turn(setting.pairs, lambda: cpu_s(KBGEN, "front", store, cwd=setting.folder))
    return Result(duration(median(seconds)), median(seconds) <= 2 and size <= 300, f"kbgen front of a million points; {size:.0f} bytes each, "
                  "with one objective; goal 300", {"seconds": seconds, "bytes_each": size})


ROWS = [Row("search-parameters", ">= 0.9x", parameters), Row("search-keys", ">= 0.6x", numbers),
        Row("search-new", "<= 0.6x", structures_new), Row("search-known", ">= 0.8x", structures_known),
        Row("search-jobs", ">= 1.8x", two_jobs), Row("search-stored", "<= 2 s", stored)]
