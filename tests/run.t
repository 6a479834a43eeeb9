#!/usr/bin/python3
"""run: benches on a small machine: every dtype and awkward shapes verify, results and options are as documented."""
import json
import os
import shutil
import signal
import subprocess

from harness import ROOT, SCRATCH, SLOW, SMALL, folder, hold_text, ok, read, run, scratch, simulator, suite, wait_until
from harness import without_host, write

ONE = "system: {name: one}\nsip: {cubes: {rows: 1, cols: 1}}\n" \
      "cube: {memory_map: {hbm_slices_per_cube: 1, hbm_slice_mb: 64}}\n"

SHAPES = (("m=1", "k=1", "n=1"), ("m=3", "k=70", "n=2"), ("m=130", "k=257", "n=65"), ("m=2", "k=300", "n=1100"))
WAYS = ((), ("relu=true", "tile_m=16", "tile_k=48", "tile_n=40"),
        ("bias=true", "relu=true", "tile_k=64"))


def shapes(program, name, dtypes):
    for dtype in dtypes:
        wrong = []
        for shape in SHAPES:
            for way in WAYS if dtype != "i8" else WAYS[:1]:
                # The only element of the first shape is above 0, also before relu.
                ended = run(program, "run", "gemm", f"dtype={dtype}", *shape, *way, "--seed", "5")
                if ended.returncode or "\nverified     c: " not in ended.stdout:
                    wrong.append(ended.said)
        ok(not wrong, f"gemm of {dtype} on {name} verifies at every shape", *wrong)


def result(program, name, *words):
    """A run's JSON, as text and as value."""
    path = scratch(name + ".json")
    ended = run(program, "run", *words, "--json", path)
    ok(ended.returncode == 0, f"a bench runs: {name}", ended.said)
    text = read(path)
    return text, json.loads(text)


def is_whole(value):
    if isinstance(value, dict):
        return all(is_whole(part) for part in value.values())
    return isinstance(value, int)


def results(program):
    text, made = result(program, "plain", "gemm", "m=64", "k=32", "n=48")
    ok(list(made)[:3] == ["bench", "params", "seed"] and made["bench"] == "gemm" and made["params"]["k"] == 32 and
       made["params"]["dtype"] == "f16" and made["params"]["relu"] is False,
       "the result has the bench and its parameters", text[:600])
    ok(all(key in made for key in ("system", "end_ps", "launches", "verify", "util", "bytes", "host")),
       "the result has all its parts", list(made))
    ok(is_whole(made["util"]) and is_whole(made["bytes"]), "simulated figures of the result are integers", made["util"],
       made["bytes"])
    ok(made["util"]["gemm_flop"] == 2 * 64 * 32 * 48, "the result counts the operations of the gemm",
       made["util"]["gemm_flop"])
    # A: each row once. B: each of 4 PEs reads all of it. C: written once.
    ok(made["bytes"]["hbm"] == {"read": 64 * 32 * 2 + 4 * 32 * 48 * 2, "write": 64 * 48 * 2},
       "the result counts the bytes of the HBM", made["bytes"])
    check = made["verify"][0]
    ok(check["tensor"] == "c" and check["status"] == "ok" and check["first_wrong"] is None and
       check["max_err"] <= 0.02 and check["max_share"] <= 1 and check["power"] < 0.05,
       "the result has the verification of c", check)
    off, made_off = result(program, "off", "gemm", "m=64", "k=32", "n=48", "--data", "off")
    ok(made_off["launches"] == made["launches"] and made_off["bytes"] == made["bytes"],
       "times and bytes are the same with --data off")
    ok(made_off["verify"] == [{"tensor": "c", "status": "skipped", "first_wrong": None}],
       "with --data off the verification is skipped", off[-300:])
    _, made_debug = result(program, "debug", "gemm", "m=64", "k=32", "n=48", "bias=true", "--data", "debug")
    ok("first_wrong_op" not in made_debug and made_debug["verify"][0]["status"] == "ok",
       "with --data debug every operation is right")
    seeded, made_seeded = result(program, "seeded", "gemm", "m=64", "k=32", "n=48", "--seed", "1")
    ok(made_seeded["launches"] == made["launches"] and made_seeded["verify"] != made["verify"],
       "a seed changes data and no times")
    again, _ = result(program, "again", "gemm", "m=64", "k=32", "n=48", "--seed", "0x1")
    ok(without_host(seeded) == without_host(again), "the same seed gives the same result")


def totals(rows, what):
    return sum(row[what] for row in rows)


def statistics(program):
    """--stats changes no result, and its rows add up to the sums of the result."""
    plain, made = result(program, "without", "layer", "tokens=5")
    path = scratch("stats.json")
    text, _ = result(program, "with", "layer", "tokens=5", "--stats", path)
    stats = json.loads(read(path))
    ok(without_host(plain) == without_host(text), "the result is the same with --stats")
    ok(all(stats[key] == made[key] for key in ("system", "end_ps", "util", "hbm_slices", "bytes")),
       "the file of --stats has the sums of the result", stats["util"], made["util"])
    util, engines, hbm = made["util"], stats["engines"], [row for row in stats["channels"] if "hbm_ctrl" in row["id"]]
    names = ("pe_dma read", "pe_dma write", "pe_dma comm", "pe_fetch_store", "pe_gemm", "pe_math", "pe_scheduler")
    wrong = [name for name in names for what in ("busy_ps", "wait_ps")
             if totals([row for row in engines if row["engine"] == name], what) != util[name][what]]
    ok(not wrong and totals(engines, "wait_ps"), "the rows of engines add up to their sums", *wrong, *engines)
    ok(all(util["pe_gemm+math"][what] == util["pe_gemm"][what] + util["pe_math"][what] for what in ("busy_ps", "wait_ps"))
       and util["pe_gemm"]["busy_ps"] and util["pe_math"]["busy_ps"],
       "the row of the slot that pe_gemm and pe_math share adds up both", util)
    ok(totals(hbm, "bytes") == made["bytes"]["hbm"]["read"] + made["bytes"]["hbm"]["write"] and
       totals(hbm, "busy_ps") == util["hbm"]["busy_ps"] == totals(made["hbm_slices"], "busy_ps") and
       totals(hbm, "wait_ps") == util["hbm"]["wait_ps"] == totals(made["hbm_slices"], "wait_ps") > 0,
       "the rows of pseudo channels add up to their sums", made["hbm_slices"], util["hbm"])
    ok(totals(stats["nodes"], "wait_ps") == util["nodes"]["wait_ps"] > 0 and
       totals(stats["links"], "bytes") == sum(made["bytes"]["links"].values()),
       "the rows of nodes and links add up to their sums", util["nodes"], made["bytes"])
    ended = run(program, "run", "gemm", "m=8", "k=8", "n=8", "--stats", "-")
    ok(ended.returncode == 0 and json.loads(ended.stdout)["system"] == "small" and "verified" in ended.stderr,
       "--stats - prints the statistics on standard output and the summary on standard error", ended.said)


def standard_output(program):
    ended = run(program, "run", "gemm", "m=8", "k=8", "n=8", "--json", "-")
    ok(ended.returncode == 0 and json.loads(ended.stdout)["bench"] == "gemm" and "verified" in ended.stderr,
       "--json - prints the result on standard output and the summary on standard error", ended.said)
    ended = run(program, "run", "gemm", "m=8", "k=8", "n=8")
    words = ("launch       gemm on 4 PEs", "work ", "pe_gemm", "hbm", "attach links", "bound by", "verified", "host ",
             "events")
    ok(all(word in ended.stdout for word in words) and not ended.stderr, "the summary has all its lines", ended.said)


BAD = (
    ((), "run needs a bench"),
    (("gem",), "no bench 'gem'; did you mean 'gemm'?"),
    (("nothing_like_it",), "no bench 'nothing_like_it'; `"),
    (("gemm", "m=0"), "gemm: m=0 is out of bounds: 1 to 16777216"),
    (("gemm", "m=16777217"), "is out of bounds"),
    (("gemm", "m=1e3"), "gemm: m=1e3 is not a whole number"),
    (("gemm", "m=-1"), "m=-1 is not a whole number"),
    (("gemm", "m="), "m= is not a whole number"),
    (("gemm", "m=0x"), "m=0x is not a whole number"),
    (("gemm", "m=010"), "m=010 is not a whole number"),
    (("gemm", "m=18446744073709551616"), "does not fit into 64 bits"),
    (("gemm", "m"), "m needs a value: NAME=VALUE"),
    (("gemm", "m=1", "m=2"), "m=2 is given twice"),
    (("gemm", "tile_o=1"), "gemm has no parameter 'tile_o'; did you mean 'tile_m'?"),
    (("gemm", "=1"), "gemm has no parameter ''"),
    (("gemm", "dtype=f64"), "dtype=f64 is not one of: f16 bf16 f32 i8"),
    (("gemm", "relu=1"), "relu=1 is neither true nor false"),
    (("gemm", "--data", "on"), "--data on: off, verify or debug is needed"),
    (("gemm", "--seed", "x"), "--seed x: a whole number"),
    (("gemm", "--seed", "-1"), "--seed -1: a whole number"),
    (("gemm", "--seed", ""), "--seed : a whole number"),
    (("gemm", "--seed", "18446744073709551616"), "a whole number below 2^64"),
    (("gemm", "--oplog", "-"), "an op log is read again, so it needs a file"),
    (("gemm", "--oplog", "no/such/folder/f"), "cannot write no/such/folder/f"),
    (("gemm", "--oplog", "f", "--points", "f"), "--oplog is for one run"),
    (("gemm", "--oplog", "f", "--json", "f"), "--json and --oplog cannot both go to f"),
    (("gemm", "--stats", "f", "--trace", "f"), "--trace and --stats cannot both go to f"),
    (("gemm", "--stats", "f", "--points", "f"), "--stats is for one run"),
    (("gemm", "--stats", "no/such/folder/f"), "cannot write no/such/folder/f"),
    (("gemm", "--oplog-mem", "1 ns"), "--oplog-mem 1 ns: a size such as 64 MiB is needed"),
    (("gemm", "--oplog-mem", "much"), "--oplog-mem much: a size such as 64 MiB is needed"),
    (("gemm", "--json", "-", "--trace", "-"), "cannot both go to standard output"),
    (("gemm", "m=8", "k=8", "n=8", "--json", "/nowhere/at/all"), "/nowhere/at/all"),
    (("gemm", "m=8", "k=8", "n=8", "--trace", "/nowhere/at/all"), "/nowhere/at/all"),
    (("gemm", "--bogus"), "no option '--bogus'; "),
    (("gemm", "--opl", "f"), "--opl may be --oplog or --oplog-mem: write it out"),
    (("gemm", "--json"), "--json needs a value; "),
    (("gemm", "--profile=on"), "--profile takes no value; "),
    (("gemm", "--json", "f", "--json", "g"), "--json is given twice, as 'f' and 'g'; it takes one value"),
    (("gemm", "--seed=1", "--seed", "1"), "--seed is given twice, as '1' and '1'; it takes one value"),
    (("gemm", "--data", "off", "--data", "verify"), "--data is given twice, as 'off' and 'verify'"),
    (("gemm", "--points", "no/such"), "cannot open no/such: No such file or directory; there is no folder no/"),
    (("gemm", "m=16777216", "k=16777216", "n=1"), "kb_tensor_new: no room for tensor 'a'"),
)


def mistakes(program):
    for words, said in BAD:
        ended = run(program, "run", *words)
        ok(ended.returncode == 2 and said in ended.stderr and not ended.stdout,
           f"run {' '.join(words)} is refused: {said}", ended.said)
    ended = run(program, "run", "gemm", "m=x", "k=y", "z=1")
    ok(ended.stderr.count("error:") == 3, "run tells every wrong argument at once", ended.said)


def under_way(place):
    """Whether a run has its output files, and has written a part of its trace: it watches for signals by then."""
    files = [os.path.join(place, name) for name in os.listdir(place)]
    return len(files) == 2 and any(os.path.getsize(file) for file in files)


def ended_early(program):
    """A run that SIGINT or SIGTERM ends leaves what it has; one that SIGHUP or a second signal ends leaves no file."""
    place = folder("early")
    for names, want in (("SIGINT",), 130), (("SIGTERM",), 143), (("SIGHUP",), 0), (("SIGINT", "SIGTERM"), 0):
        shutil.rmtree(place)
        os.makedirs(place)
        files = [word for file in ("json", "trace") for word in ("--" + file, os.path.join(place, file))]
        with subprocess.Popen([program, "run", "gemm", "m=8192", "k=1024", "n=4096", *files], cwd=ROOT,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as started:
            wait_until(lambda: under_way(place) or started.poll() is not None)
            begun = sorted(name.split(".")[0] for name in os.listdir(place) if name.endswith(".tmp"))
            for name in names:
                started.send_signal(getattr(signal, name))
            said = started.communicate(timeout=60 * SLOW)[0]
        left = sorted(os.listdir(place))
        if not want:
            ok(begun == ["json", "trace"] and -started.returncode in [getattr(signal, name) for name in names]
               and not left,
               f"a run that {' and '.join(names)} end at once leaves no file", begun, started.returncode, *left)
            continue
        hold_text("result", read(os.path.join(place, "json")))
        made = json.loads(read(os.path.join(place, "json")) or "{}")
        ok(begun == left == ["json", "trace"] and started.returncode == want == made.get("status")
           and made["interrupted"] is True and made["ended_by"] == names[0] and list(made)[-1] == "status",
           f"a run that {names[0]} ends leaves its files, marked as interrupted", begun, started.returncode, *left)
        ok(said.endswith(f"\nend          status {want}\n") and f"\nINTERRUPTED  by {names[0]}: " in said,
           f"a run that {names[0]} ends prints its summary", said)


def no_blas(program):
    """Files that are no library take the place of OpenBLAS."""
    libraries = {"LD_PRELOAD": "", "LD_LIBRARY_PATH": SCRATCH}
    for name in ("libopenblas.so.0", "libopenblas.so"):
        write(scratch(name), "no library\n")
    ended = run(program, "run", "gemm", "m=8", "k=8", "n=8", "--data", "off", env=libraries)
    ok(ended.returncode == 0, "a run with --data off needs no OpenBLAS", ended.said)
    ended = run(program, "run", "gemm", "m=8", "k=8", "n=8", env=libraries)
    ok(ended.returncode == 3 and "install libopenblas0-pthread" in ended.stderr,
       "without OpenBLAS the data pass names the missing package", ended.said)


def main():
    small = simulator(SMALL)
    shapes(small, "four PEs", ("f16", "bf16", "f32", "i8"))
    shapes(simulator(write(scratch("one.yaml"), ONE)), "one PE", ("f16", "i8"))
    for part in (results, statistics, standard_output, mistakes, ended_early, no_blas):
        part(small)


suite(main)
