#!/usr/bin/python3
"""errors: every wrong topology of tests/errors is refused with exactly the messages beside it, and nothing is written.

NAME.yaml begins with a comment that says the idea, and whether the JSON Schema can see the fault (schema.t checks
that); lines `# set: KEY=VALUE` are --set options. NAME.expect is standard error. BLESS=1 rewrites it.
"""
import os
import shutil

from harness import KBGEN, ROOT, bless, first_difference, ok, read, run, scratch, suite

CASES = os.path.join(ROOT, "tests", "errors")


def options(text):
    """The --set options of a case."""
    for line in text.splitlines()[1:]:
        if not line.startswith("# set: "):
            return
        yield from ("--set", line.removeprefix("# set: "))


def files(folder):
    return sorted(os.path.join(path, name) for path, _, names in os.walk(folder) for name in names)


def check(name, place):
    """Without --check the messages are the same, and nothing is written either."""
    sets = list(options(read(os.path.join(CASES, name + ".yaml"))))
    expected = os.path.join(CASES, name + ".expect")
    before = files(place)
    checked = run(KBGEN, "--check", name + ".yaml", *sets, cwd=place)
    made = run(KBGEN, name + ".yaml", *sets, cwd=place)
    bless(expected, checked.stderr)
    wrong = []
    if checked.returncode != 2 or checked.stdout:
        wrong += ["want status 2 and nothing on standard output", checked.said]
    if made.returncode != 2 or made.stderr != checked.stderr:
        wrong += ["not the same without --check", made.said]
    if files(place) != before:
        wrong += ["something was written"]
    wrong += [first_difference(read(expected), checked.stderr)]
    ok(not any(wrong), f"{name}.yaml is refused with exactly its messages", *wrong)


def main():
    place = scratch("place")
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(CASES, place, ignore=shutil.ignore_patterns("*.expect"))
    names = sorted(name.removesuffix(".yaml") for name in os.listdir(CASES) if name.endswith(".yaml"))
    for name in names:
        check(name, place)
    left = {name for name in os.listdir(CASES) if name.endswith(".expect")} - {name + ".expect" for name in names}
    ok(not left, "every expectation of tests/errors has its topology", *left)


suite(main)
