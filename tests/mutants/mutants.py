#!/usr/bin/python3
"""mutants: one-line changes of the code, each of which some suite has to notice.

    tests/mutants/mutants.py [NAME ...]          runs the mutants of list.yaml, all or those named, each against its suite
    tests/mutants/mutants.py --draw N [--seed S] [--below PATH]    draws N new ones over gen/ and rt/, finds what kills each,
                                                 prints them as rows for list.yaml; a row without `killed_by` survived

A row of list.yaml has `file`, `old` (a line of it, which occurs once), `new` (what replaces it), and either `killed_by`
(a suite of tests/run, `build`: the compiler refuses it) or `equivalent` (why no test can notice it). Exit status 0 if at
least 95 % of the mutants that are not equivalent were killed, and every row still applies.

The work is done in copies of the tree below $BUILD/mutants, one for each processor.
"""
import argparse
import concurrent.futures
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import time

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD") or os.path.join(ROOT, "build")
LIST = os.path.join(ROOT, "tests", "mutants", "list.yaml")
KILLED_SHARE = 0.95
BUILD_LIMIT_S, SUITE_LIMIT_S = 600, 300

# The suites that are tried on a drawn mutant after the unit tests, by the folder of its file.
SUITES = {
    "gen/build": ("kbgen", "numbers", "impl", "emit", "reproduce"),
    "gen": ("errors", "good", "schema", "templates", "routes", "kbgen", "impl", "conformance", "list_info"),
    "rt/common": ("errors", "good", "run", "conformance", "races", "kernels"),
    "rt/base": ("run", "conformance", "kernels", "list_info", "points"),
    "rt/sim": ("conformance", "failures", "kernels", "steady", "profile"),
    "rt/machine": ("conformance", "failures", "kernels", "steady", "collectives", "list_info", "fuzz"),
    "rt/launch": ("conformance", "failures", "wrong_kernel", "host", "kernels", "points"),
    "rt/fastforward": ("state", "steady", "profile"),
    "rt/store": ("kernels", "views", "host", "races", "oplog", "composites"),
    "rt/oplog": ("oplog", "kernels", "points", "memory_limit"),
    "rt/datapass": ("ops", "composites", "exec", "kernels", "oplog", "collectives"),
    "rt/races": ("races",),
    "rt/device": ("device", "wrong_kernel", "wrong_compute", "kernels", "views", "composites", "races"),
    "rt/host": ("host", "list_info", "npy", "bounds", "refs", "points"),
    "rt/reference": ("refs", "exec", "ops", "wrong_compute", "library"),
    "rt/report": ("run", "profile", "list_info", "conformance", "points"),
    "rt/cli": ("run", "points", "failures", "list_info", "oplog", "conformance"),
}

# What is drawn: a pattern of a line, and what takes its place.
CHANGES = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
    (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "), (r" \+= ", " -= "), (r" -= ", " += "),
    (r"\+\+", "--"), (r"\b0\b", "1"), (r"\b1\b", "2"), (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"\(!", "("),
    (r"\bif \((.*)\)$", r"if (!(\1))"), (r" \* ", " + "), (r" / ", " * "), (r" << ", " >> "), (r" & ", " | "),
    (r"^(\s+)(?!return|break|else|case|default|goto|if|for|while|do\b)[a-z_][^={]*\([^{]*\);$", r"\1;"),
    (r"^(\s+)(?!return|const|struct|uint|bool|char|int|size_t|static|enum|double|float)[a-z_][\w.\[\]>*-]* [-+|]?= [^{]*;$",
     r"\1;"),
    (r"^(\s+)break;$", r"\1;"), (r"^(\s+)continue;$", r"\1;"),
]


class Tree:
    """A copy of the tree that is built, in which one mutant at a time is put."""

    def __init__(self, number):
        self.root = os.path.join(BUILD, "mutants", f"tree{number}")
        self.build = os.path.join(self.root, "build")
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        known = {name for name in tracked.decode().split("\0") if name and os.path.isfile(os.path.join(ROOT, name))}
        for folder, _, names in os.walk(self.root):
            for name in names:                          # what was deleted in the tree
                path = os.path.relpath(os.path.join(folder, name), self.root)
                if not path.startswith("build/") and path not in known:
                    os.unlink(os.path.join(self.root, path))
        for name in known:
            source, copy = os.path.join(ROOT, name), os.path.join(self.root, name)
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            if not os.path.exists(copy) or text_of(source) != text_of(copy):
                shutil.copy(source, copy)
        if not self.make():
            sys.exit("mutants: the tree itself does not build: run make")

    def make(self):
        return ended_well(["make", "-j1", "WERROR=", "all", "units"], self.root, BUILD_LIMIT_S)

    def suite(self, *names):
        """Whether suites pass."""
        environment = os.environ | {"BUILD": self.build, "KBGEN_CACHE": os.path.join(self.build, "cache")}
        passed = ended_well(["tests/run", *names], self.root, SUITE_LIMIT_S, environment)
        shutil.rmtree(os.path.join(self.build, "tests"), ignore_errors=True)
        return passed

    def put(self, row):
        """Puts a mutant in; returns the text that it replaces, or None when it no longer applies."""
        path = os.path.join(self.root, row["file"])
        text = text_of(path) if os.path.exists(path) else ""
        if text.split("\n").count(row["old"]) != 1:
            return None
        lines = [row["new"] if line == row["old"] else line for line in text.split("\n")]
        write(path, "\n".join(lines))
        return text

    def take_out(self, row, text):
        write(os.path.join(self.root, row["file"]), text)


def text_of(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def ended_well(command, folder, limit_s, environment=None):
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.wait(timeout=limit_s) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        try:
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            pass


def killer(tree, row, suites):
    """The first of the suites that notices a mutant, `build`, or None; "gone" when the mutant no longer applies."""
    text = tree.put(row)
    if text is None:
        return "gone"
    try:
        if not tree.make():
            return "build"
        units = [name for name in suites if name.startswith("unit/")]
        if len(units) > 1 and tree.suite(*units):       # mostly none of them notices: one call instead of many
            suites = [name for name in suites if name not in units]
        return next((name for name in suites if not tree.suite(name)), None)
    finally:
        tree.take_out(row, text)


def suites_for(file):
    """The suites that are tried on a mutant of a file, in order."""
    room = next(room for room in sorted(SUITES, key=len, reverse=True) if file.startswith(room + "/"))
    units = ["unit/" + name[:-2] for name in sorted(os.listdir(os.path.join(ROOT, "tests", "unit"))) if name.endswith(".c")]
    there = {name[:-2] for name in os.listdir(os.path.join(ROOT, "tests")) if name.endswith(".t")}
    return units + [name for name in SUITES[room] if name in there]


def draw(count, seed, below):
    """Random one-line changes: a kind of change first, then a line that it fits and that occurs once in its file."""
    generator = random.Random(seed)
    tracked = subprocess.run(["git", "ls-files", "gen", "rt"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    known = {(row["file"], row["old"]) for row in rows()}
    places = [[] for _ in CHANGES]
    for file in tracked.stdout.split():
        if file.endswith((".c", ".h", ".re")) and file.startswith(below) and not file.startswith("rt/kb/"):
            lines = text_of(os.path.join(ROOT, file)).split("\n")
            for old in lines:
                if is_code(old) and lines.count(old) == 1 and (file, old) not in known:
                    code = re.sub(r"\s*/\*.*$", "", old)
                    for (pattern, _), fitting in zip(CHANGES, places):
                        if re.search(pattern, code):
                            fitting.append((file, old, code))
    drawn = {}
    while len(drawn) < count and any(places):
        kind = generator.randrange(len(CHANGES))
        if places[kind]:
            file, old, code = places[kind].pop(generator.randrange(len(places[kind])))
            drawn.setdefault((file, old), {"file": file, "old": old, "new": re.sub(*CHANGES[kind], code, count=1)})
    return list(drawn.values())


def is_code(line):
    return not re.match(r"\s*(/\*|\*|#|//|\}?$)", line) and '"' not in line and not re.match(r"[A-Za-z_].*[;)]$", line)


def rows():
    with open(LIST, encoding="utf-8") as file:
        return yaml.safe_load(file) or []


def name_of(row):
    return f"{row['file']}: {row['old'].strip()}  ->  {row['new'].strip() or '(nothing)'}"


def each(work, found, jobs):
    """Does `work(tree, row)` for every row, in as many trees as there are jobs; yields (row, result) as they end."""
    trees = queue.Queue()
    for number in range(jobs):
        trees.put(Tree(number))

    def one(row):
        tree = trees.get()
        try:
            return row, work(tree, row)
        finally:
            trees.put(tree)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(one, row) for row in found]):
            yield done.result()


def main():
    parser = argparse.ArgumentParser(description="Mutants: one-line changes that some suite has to notice.")
    parser.add_argument("names", nargs="*", help="parts of file names or lines; default: all of list.yaml")
    parser.add_argument("--draw", type=int, metavar="N", help="draw N new ones and find what kills each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--below", default="", help="draw from files whose path begins so")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    options = parser.parse_args()
    begin = time.monotonic()
    if options.draw:
        drawn = draw(options.draw, options.seed, options.below)
        for row, by in each(lambda tree, row: killer(tree, row, suites_for(row["file"])), drawn, options.jobs):
            print(yaml.safe_dump([row | ({"killed_by": by} if by else {})], sort_keys=False, width=1000), end="", flush=True)
        return 0
    chosen = [row for row in rows() if not options.names or any(name in name_of(row) for name in options.names)]
    tried = [row for row in chosen if "equivalent" not in row]
    killed, gone = 0, 0
    for row, by in each(lambda tree, row: killer(tree, row, [row["killed_by"]] if row.get("killed_by", "build") != "build" else []),
                        tried, options.jobs):
        killed, gone = killed + bool(by and by != "gone"), gone + (by == "gone")
        if not by or by == "gone":
            print(f"{'survived' if not by else 'no longer applies'}  {name_of(row)}", flush=True)
    share = killed / len(tried) if tried else 1
    print(f"{killed} of {len(tried)} mutants killed ({share:.1%}), {len(chosen) - len(tried)} equivalent, "
          f"{time.monotonic() - begin:.0f} s")
    return 0 if share >= KILLED_SHARE and not gone else 1


if __name__ == "__main__":
    sys.exit(main())
