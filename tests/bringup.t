#!/usr/bin/python3
"""bringup: the commands of docs/bringup.md print what it shows; BLESS=1 puts what they print there. plain build only"""
import os
import re

from harness import ROOT, ok, read, run, suite
from shown import hold, reader

PAGE = os.path.join(ROOT, "docs", "bringup.md")


def main():
    folder = reader()
    made = run("build/kbgen", "docs/examples/firmware_log/pilot.yaml", cwd=folder)
    ok(made.returncode == 0, "the machine of the example is built", made.said)

    def printed(command):
        ended = run("sh", "-c", command, cwd=folder)
        return ended.stderr + ended.stdout

    hold(PAGE, printed)
    log = re.search(r"^```csv\n(.*?)^```", read(PAGE), re.M | re.S)[1]
    ended = run(os.path.join(folder, "build", "pilot"), "import", "-", input=log, stdin=None)
    ok(ended.returncode == 0 and "3 commands" in ended.stderr, "the log at the top of the page is one", ended.said)


suite(main)
