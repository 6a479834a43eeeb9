#!/usr/bin/python3
"""seeing: the commands of docs/seeing.md and docs/cli.md print what they show; BLESS=1 puts what they print there.
plain build only, limit: 120

The `sh` blocks of docs/seeing.md run first, in a folder of a reader. Commands of `text` blocks run in a shell, since some have a pipe.
"""
import os
import re

from harness import ROOT, ok, read, run, suite
from shown import figures, hold, reader

SEEING, CLI = (os.path.join(ROOT, "docs", name) for name in ("seeing.md", "cli.md"))
ROW = re.compile(r"(?m)^\| `(build/[^`]*off)` \|(?!.*---).*$")


def main():
    text, folder, outputs = read(SEEING), reader(), {}
    for body in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S):
        ended = run("sh", "-eux", "-c", body, cwd=folder)
        ok(ended.returncode == 0 and "warning" not in ended.stderr, "the machine is built without a warning", ended.said)

    def printed(command):
        if command not in outputs:
            ended = run("sh", "-c", command, cwd=folder)
            outputs[command] = ended.stderr + ended.stdout
        return outputs[command]

    def table_row(row):
        command = row[1]
        return row[0] if "..." in command else f"| `{command}` | {' | '.join(figures(printed(command)) or ['none'] * 5)} |"

    hold(CLI, printed)
    text, made = hold(SEEING, printed, lambda page: ROW.sub(table_row, page))
    rows = [(was[0], now[0]) for was, now in zip(ROW.finditer(text), ROW.finditer(made))]
    ok(len(rows) == 5 and all(was == now for was, now in rows), "the table has the figures of its commands", *(now for was, now in rows if was != now))
    cells = [[float(cell.split()[0]) for cell in row.split("|")[2:4]] for _, row in rows[1:]]
    (first_us, problem_us), (last_us, _) = cells[0], cells[-1]
    for page, said in ((text, f"takes {first_us / problem_us:.0f} times as long"),
                       (text, f"The last one is {first_us / last_us:.0f} times as fast as the first one"),
                       (read(os.path.join(ROOT, "README.md")), f"a slow kernel {first_us / last_us:.0f} times as fast")):
        ok(said in page, f"the text has the figure of the table: {said}")
    lines = read(os.path.join(ROOT, "docs", "seeing", "dense.c")).splitlines()
    for number, call in ((17, "tl_load_async"), (23, "tl_load("), (39, "tl_dot"), (41, "tl_store_async")):
        ok(call in lines[number - 1], f"line {number} of dense.c is what the page says", lines[number - 1])


suite(main)
