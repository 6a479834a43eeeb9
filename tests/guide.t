#!/usr/bin/python3
"""guide: the steps of docs/guide.md build, run and print what it shows; BLESS=1 puts what they print there. limit: 200

Its `sh` blocks are run first, in a folder with build/kbgen, topologies/ and docs/; see shown.py for the others. Rows of
its table that begin with a command have that command's figures.
"""
import os
import re
import shutil
import sys

from harness import KBGEN, ROOT, SCRATCH, done, first_difference, ok, read, run
from shown import BLOCK, figures, picked, simulated

GUIDE = os.path.join(ROOT, "docs", "guide.md")
ROW = re.compile(r"(?m)^\| `(build/[^`]*)` \|.*$")


def reader():
    """The folder of somebody who has built kbgen."""
    folder = os.path.join(SCRATCH, "reader")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "build"))
    os.symlink(KBGEN, os.path.join(folder, "build", "kbgen"))
    for name in ("topologies", "docs"):
        os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    return folder


def main():
    text, folder, outputs = read(GUIDE), reader(), {}
    for body in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S):
        ended = run("sh", "-eux", "-c", body, cwd=folder)
        ok(ended.returncode == 0 and "warning" not in ended.stderr, "its machines are built", ended.said)

    def printed(command):
        if command not in outputs:
            ended = run(*command.split(), cwd=folder)
            outputs[command] = ended.stderr + ended.stdout
        return outputs[command]

    made = BLOCK.sub(lambda block: f"$ {block[1]}\n{picked(block[2], printed(block[1]))}", text)
    made = ROW.sub(lambda row: f"| `{row[1]}` | {' | '.join(figures(printed(row[1])) or ['none'] * 3)} |", made)
    if os.environ.get("BLESS"):
        with open(GUIDE, "w", encoding="utf-8") as file:
            file.write(made)
        text = made
    for was, now in zip(BLOCK.finditer(text), BLOCK.finditer(made)):
        ok(not first_difference(simulated(was[2]), simulated(now[2])), was[1], first_difference(was[2], now[2]))
    ok("(nothing that begins as" not in made, "what it shows is printed", *re.findall(r"\(nothing that .*", made))
    wrong = [now for was, now in zip(ROW.finditer(text), ROW.finditer(made)) if was[0] != now[0]]
    ok(not wrong and ROW.search(text), "the table of all steps", *(row[0] for row in wrong))
    files = sorted(os.listdir(os.path.join(ROOT, "docs", "guide")))
    missing = [name for name in files if f"(guide/{name})" not in text]
    ok(not missing, "every file of docs/guide is a step", *missing)


if os.environ.get("SAN"):
    print("1..0 # SKIP the guide is for the plain build")
    sys.exit()
main()
done()
