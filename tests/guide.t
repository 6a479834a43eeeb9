#!/usr/bin/python3
"""guide: the steps of docs/guide.md build, run and print what it shows; BLESS=1 puts what they print there.
plain build only, limit: 400

Its `sh` blocks run first, in a folder with build/kbgen, topologies/ and docs/; shown.py says what the others show. A
row of its table that begins with a command has the figures of that command.
"""
import json
import os
import re

from harness import ROOT, ok, read, run, suite, write
from shown import figures, hold, reader

GUIDE = os.path.join(ROOT, "docs", "guide.md")
ROW = re.compile(r"(?m)^\| `(build/[^`]*)` \|.*$")


def uneven(folder, machine):
    """The last step has to be right for any size: with w kept and streamed, with PEs that have no row."""
    sizes = [(1, 1, 1), (131, 77, 93), (700, 512, 500)]
    if machine == "small":                              # copies of a large w take long on 128 PEs
        sizes += [(5, 1700, 1900), (7, 11, 20000), (300, 1025, 1023)]
    points = "".join(f'{{"m": {m}, "k": {k}, "n": {n}}}\n' for m, k, n in sizes)
    ended = run(f"build/{machine}", "run", "gemm_rmsnorm", "--points", write(f"{folder}/sizes", points),
                cwd=folder)
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    ok(ended.returncode == 0 and len(answers) == len(sizes) and
       all(check["status"] == "ok" for answer in answers for check in answer["verify"]) and "RACE" not in ended.said,
       f"gemm_rmsnorm verifies for any size on {machine}", ended.said)


def too_long(folder):
    ended = run("build/small", "run", "gemm_rmsnorm", "m=8", "k=8", "n=400000", "--data", "off", cwd=folder)
    ok(ended.returncode == 1 and "do not fit into the TCM" in ended.stderr,
       "gemm_rmsnorm says that a row does not fit into the TCM", ended.said)


def main():
    text, folder, outputs = read(GUIDE), reader(), {}
    for body in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S):
        ended = run("sh", "-eux", "-c", body, cwd=folder)
        ok(ended.returncode == 0 and "warning" not in ended.stderr,
           "the machines of the guide are built without a warning", ended.said)

    def printed(command):
        if command not in outputs:
            ended = run(*command.split(), cwd=folder)
            outputs[command] = ended.stderr + ended.stdout
        return outputs[command]

    def table_row(row):
        return f"| `{row[1]}` | {' | '.join(figures(printed(row[1])) or ['none'] * 5)} |"

    text, made = hold(GUIDE, printed, lambda page: ROW.sub(table_row, page))
    for machine in ("small", "ref_sip"):
        uneven(folder, machine)
    too_long(folder)
    wrong = [now for was, now in zip(ROW.finditer(text), ROW.finditer(made)) if was[0] != now[0]]
    ok(not wrong and ROW.search(text), "the table of the guide has the figures of its commands",
       *(row[0] for row in wrong))
    files = sorted(os.listdir(os.path.join(ROOT, "docs", "guide")))
    missing = [name for name in files if f"(guide/{name})" not in text]
    ok(not missing, "the guide names every file of docs/guide", *missing)


suite(main)
