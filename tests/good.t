#!/usr/bin/python3
"""good: every topology of tests/good is accepted, and its model has the values beside it.

NAME.expect is what `kbgen --dump model` prints of NAME.yaml, without keys at their defaults. BLESS=1 rewrites it.
"""
import os

from harness import KBGEN, ROOT, bless, done, first_difference, ok, read, run

CASES = os.path.join(ROOT, "tests", "good")


def check(name):
    expected = os.path.join(CASES, name + ".expect")
    got = run(KBGEN, "--dump", "model", name + ".yaml", cwd=CASES)
    given = "".join(line + "\n" for line in got.stdout.splitlines() if not line.endswith(" default"))
    bless(expected, given)
    difference = first_difference(read(expected), given)
    ok(got.returncode == 0 and not got.stderr and not difference,
       f"{name}.yaml is accepted and its model has the expected values", difference, got.stderr)


def defaults():
    """A file without keys gives the default machine."""
    lines = run(KBGEN, "--dump", "model", "empty.yaml", cwd=CASES).stdout.splitlines()
    ok(len(lines) > 120 and all(line.endswith(" default") for line in lines),
       "--dump model shows every key of the default machine", *lines)


for case in sorted(file.removesuffix(".yaml") for file in os.listdir(CASES) if file.endswith(".yaml")):
    check(case)
defaults()
done()
