#!/usr/bin/python3
"""errors: every wrong topology of tests/errors is refused with exactly the messages beside it, and nothing is written.

NAME.yaml begins with a comment that says the idea, and whether the JSON Schema can see the fault (schema.t holds it to
that); lines `# set: KEY=VALUE` are --set options. NAME.expect is standard error. BLESS=1 rewrites it.
"""
import os
import shutil

from harness import KBGEN, ROOT, SCRATCH, done, first_difference, ok, read, run

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
    """Checks a case, and makes it as well: the messages are the same, and the folder stays as it is."""
    sets = list(options(read(os.path.join(CASES, name + ".yaml"))))
    expected = os.path.join(CASES, name + ".expect")
    before = files(place)
    checked = run(KBGEN, "--check", name + ".yaml", *sets, cwd=place)
    made = run(KBGEN, name + ".yaml", *sets, cwd=place)
    if os.environ.get("BLESS"):
        with open(expected, "w", encoding="utf-8") as file:
            file.write(checked.stderr)
    wrong = []
    if checked.returncode != 2 or checked.stdout:
        wrong += ["want status 2 and nothing on standard output", checked.said]
    if made.returncode != 2 or made.stderr != checked.stderr:
        wrong += ["not the same without --check", made.said]
    if files(place) != before:
        wrong += ["something was written"]
    wrong += [first_difference(read(expected), checked.stderr)]
    ok(not any(wrong), name, *wrong)


def main():
    place = os.path.join(SCRATCH, "place")
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(CASES, place, ignore=shutil.ignore_patterns("*.expect"))
    names = sorted(name.removesuffix(".yaml") for name in os.listdir(CASES) if name.endswith(".yaml"))
    for name in names:
        check(name, place)
    left = {name for name in os.listdir(CASES) if name.endswith(".expect")} - {name + ".expect" for name in names}
    ok(not left, "no expectation without its case", *left)
    done()


main()
