#!/usr/bin/python3
"""ask: another program names the points of a search: every line is answered, whatever it holds and whoever ends first."""
import json
import os
import signal
import sqlite3
import subprocess
import sys

from harness import KBGEN, ROOT, SLOW, SMALL, folder, ok, skip, suite, wait_until, write

WHERE = folder("stores")
ROWS = "cube.pe_template.components.pe_gemm.attrs.rows"
SPACE = write(os.path.join(WHERE, "space.yaml"), f"""topology: {SMALL}
bench: gemm
params: {{ m: 64, k: 64, n: 64, tile_m: 32, tile_k: 32 }}
space:
  cube.noc.link_bw_gbs: [128, 256, 512]
  {ROWS}: {{ from: 8, to: 64, scale: log2 }}
  cube.pe_template.components.pe_tcm.attrs.size_mb: [16, 0.5]
  params.tile_n: [16, 32]
derive: {{ area: "gemm.rows * 2 + noc.link_bw_gbs" }}
where: [ "area < 620" ]
objectives: {{ end_ps: min, area: min }}
method: grid
""")


def point(bandwidth=512, rows=8, tcm=16, tile=32):
    return {"cube.noc.link_bw_gbs": bandwidth, ROWS: rows, "cube.pe_template.components.pe_tcm.attrs.size_mb": tcm,
            "params.tile_n": tile}


def line(name, **levels):
    return json.dumps({"id": name, "point": point(**levels)}) + "\n"


def begin(name, **more):
    return subprocess.Popen([KBGEN, "search", SPACE, "--method", "ask", "-o", os.path.join(WHERE, name + ".db")],
                            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def played(name, lines):
    """The answers to lines that are all there from the start, the exit status, and what is on standard error."""
    out, err = (process := begin(name)).communicate("".join(lines), timeout=60 * SLOW)
    return [json.loads(answer) for answer in out.splitlines()], process.returncode, err


def rows(name, what):
    with sqlite3.connect(os.path.join(WHERE, name + ".db")) as store:
        return store.execute(what).fetchall()


def protocol():
    bad = ["garbage\n", "{\"id\": 5\n", "[1, 2]\n", "\n", "{\"point\": {}}\n", '{"id": 6}\n',
           json.dumps({"id": 7, "point": point(bandwidth=300)}) + "\n",
           json.dumps({"id": "é", "point": {**point(), "params.tile_m": 1}}) + "\n",
           "\0\n", "x" * 3_000_000 + "\n"]
    good = [line(1), line("two", rows=64), line(3, tcm=0.5), line(4)]
    answers, status, err = played("protocol", bad + good)
    ok(status == 0 and not err, "at the end of its input kbgen ends well, and standard error stays empty", status, err)
    hello = answers[0]
    ok((hello["hello"], hello["protocol"], hello["objectives"]) == ("kbgen", 1, {"end_ps": "min", "area": "min"})
       and hello["space"] == {"cube.noc.link_bw_gbs": [128, 256, 512], ROWS: [8, 16, 32, 64], "params.tile_n": [16, 32],
                              "cube.pe_template.components.pe_tcm.attrs.size_mb": [16, 0.5]},
       "the first line says what there is to choose, and what is to be made small or large", hello)
    errors = [answer for answer in answers if answer.get("status") == "error"]
    ok([(e["id"], e["line"]) for e in errors] == [(None, 1), (None, 2), (None, 3), (None, 5), (6, 6), (7, 7), ("é", 8), (None, 9), (None, 10)],
       "each wrong line is answered with its number and, if it has one, its id", *errors)
    ok("has no such level; it has 128, 256, 512" in errors[5]["why"] and "did you mean 'params.tile_n'" in errors[6]["why"]
       and "1 MiB" in errors[8]["why"], "and with what is wrong", *errors)
    by_id = {answer["id"]: answer for answer in answers[1:] if answer["status"] != "error"}
    ok(by_id["two"] == {"id": "two", "status": "infeasible", "why": "where: area < 620", "violated": 1},
       "a point that conditions refuse is told so, and was not run", by_id["two"])
    ok(by_id[3]["status"] == "refused" and "metrics" not in by_id[3] and by_id[3]["why"],
       "a machine that is refused is told with the reason", by_id[3])
    first, again = by_id[1], by_id[4]
    ok(first["status"] == "ok" and first["metrics"]["area"] == 528 and first["metrics"]["end_ps"] > 0 and not first["cached"]
       and again == {**first, "id": 4, "cached": True}, "a point that was asked before is run once", first, again)
    stored = rows("protocol", "SELECT number, hash FROM trial WHERE hash IS NOT NULL ORDER BY number")
    ok([hash for _, hash in stored] == [first["hash"], by_id[3]["hash"], first["hash"]], "the store has what was answered", stored)
    answers, status, err = played("protocol", [line("again").rstrip("\n")])
    ok(status == 0 and answers[1]["cached"] and answers[1]["metrics"] == first["metrics"]
       and rows("protocol", "SELECT max(number) FROM trial") == [(4,)],
       "the next process knows the points of the store, goes on with its numbers, and needs no newline at the end", answers, err)


def flow():
    with begin("flow") as process:
        process.stdout.readline()
        alone = []
        for name in range(3):
            process.stdin.write(line(name, rows=8 << name))
            process.stdin.flush()
            alone.append(json.loads(process.stdout.readline())["id"])
        ok(alone == [0, 1, 2], "a point is answered before the next one is asked for", alone)
        many = [line(100 + i, rows=8 << i % 4, bandwidth=(128, 256, 512)[i % 3], tile=16) for i in range(3000)]
        process.stdin.write("".join(many))              # more than pipes hold, while nobody reads
        process.stdin.close()
        names = [json.loads(answer)["id"] for answer in process.stdout]
        ok(sorted(names) == list(range(100, 3100)), "thousands of points may be under way before an answer is read", len(names))
        ok(process.wait() == 0, "and the end of the input ends kbgen")


def partners():
    process = begin("gone")
    process.stdout.readline()
    process.stdout.close()
    process.stdin.write("".join(line(i, rows=8 << i % 4) for i in range(8)))
    process.stdin.flush()
    status = process.wait(timeout=60 * SLOW)
    stored = rows("gone", "SELECT count(*), count(hash) FROM trial")
    ok(status == 1 and "nobody reads" in process.stderr.read() and stored == [(8, 6)],
       "if nobody reads the answers, kbgen finishes and stores what is under way", status, stored)
    process = begin("signal")
    process.stdout.readline()
    process.stdin.write(line(1))
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    ok(process.wait(timeout=60 * SLOW) == 128 + signal.SIGTERM, "a signal ends it in order", process.returncode)
    ok(wait_until(lambda: rows("signal", "SELECT count(*) FROM trial") == [(1,)]), "with its results stored")


def lists():
    """The method list reads points as they are asked for here, and as tables."""
    def searched(text):
        file = write(os.path.join(WHERE, "points"), text)
        done = subprocess.run([KBGEN, "search", SPACE, "-o", os.path.join(WHERE, "list.db"), "--method",
                               json.dumps({"name": "list", "file": file})], text=True, capture_output=True, check=False)
        return done.returncode, done.stdout + done.stderr
    status, said = searched("".join(json.dumps(point(rows=r)) + "\n" for r in (8, 16, 32)))
    ok(status == 0 and "3 of 3 points: 3 ok" in said, "the method list takes points from JSON lines", said)
    names = list(point())
    status, said = searched(",".join(["hash", *names[::-1]]) + "\r\n" + '"a,""b""",16,16,8,128\r\n\r\nc,32,16,64,"256"\r\n')
    stored = rows("list", 'SELECT end_ps > 0, "cube.noc.link_bw_gbs", "params.tile_n" FROM trial JOIN point USING (hash) WHERE search = 2')
    ok(status == 0 and sorted(stored) == [(1, 128, 16), (1, 256, 32)],
       "and from CSV with columns in any order, other columns and quotes", said, stored)
    status, said = searched(",".join(["note", *names]) + '\n"two\nlines, and a ""quote""",128,8,16,16\n"\n\n",256,8,16,"16"\n')
    ok(status == 0 and "2 of 2 points: 2 ok" in said, "a field in quotation marks may have newlines", said)
    status, said = searched(",".join(["note", *names]) + '\n"two\nlines",128,8,16,17\n"a"b,128,8,16,16\n"open,128,8,16,16\n128,8\n')
    ok(status == 2 and "points:3:17: error: params.tile_n has no such level" in said and "points:4:1: error: behind the closing" in said
       and "points:5:1: error: the field has no closing quotation mark" in said and said.count("error:") == 3, "faults behind such a field have their own lines", said)
    status, said = searched(",".join(names) + "\n100,8,16,16\n128,8\n")
    ok(status == 2 and "points:2:1: error: cube.noc.link_bw_gbs has no such level" in said and "the line has 2 fields" in said
       and "points:3:" in said, "all faults of such a file are reported at their places", said)


def optuna():
    driver = os.path.join(ROOT, "docs", "search", "optuna_ask.py")
    path = os.path.dirname(KBGEN) + ":" + os.environ["PATH"]
    if subprocess.run([sys.executable, "-c", "import optuna"], capture_output=True, check=False).returncode:
        skip("Optuna drives a search", "python3-optuna is not installed")
        return
    for sampler in "TPE", "NSGAII":
        done = subprocess.run([sys.executable, "-W", "ignore", driver, SPACE, os.path.join(WHERE, sampler + ".db"), "40", sampler],
                              text=True, capture_output=True, check=False, env={**os.environ, "PATH": path})
        best = {tuple(json.loads(values)) for values in done.stdout.splitlines()}
        tried = set(rows(sampler, "SELECT end_ps, area FROM trial JOIN point USING (hash) WHERE point.status = 'ok' AND trial.status IS NULL"))
        front = {a for a in tried if not any(b != a and b[0] <= a[0] and b[1] <= a[1] for b in tried)}
        ok(done.returncode == 0 and best == front and rows(sampler, "SELECT count(*) FROM trial") == [(40,)],
           f"Optuna's {sampler} drives a search, and its best trials are the front of the store", best, front, done.stderr)


suite(protocol, flow, lists, partners, optuna)
