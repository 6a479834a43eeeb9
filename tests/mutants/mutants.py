#!/usr/bin/python3
"""mutants: one-line changes of the code, each of which some suite has to notice.

    tests/mutants/mutants.py [NAME ...]     runs the mutants of list.yaml, all or those that the names are part of, each
                                            against its suite
    tests/mutants/mutants.py --sample N     runs N of them, picked at random
    tests/mutants/mutants.py --draw N [--seed S] [--below PATH...]    draws N new ones over gen/ and rt/, finds what kills
                                            each, and prints them as rows for list.yaml, with the first test that failed
                                            as a comment; a row without `killed_by` survived
    tests/mutants/mutants.py --find FILE    does the same for the rows of a file; a suite that a row has is tried first

A row of list.yaml has `file`, `old` (a line of it, which occurs once), `new` (what replaces it), and one of `killed_by`
(a suite of tests/run, `build`: the compiler refuses it), `equivalent` (why no test can notice it) and `survives` (why no
test notices it; such a mutant is not run, and counts as one that is not killed). Exit status 0 if at
least 95 % of the mutants that are not equivalent were killed, and every row still applies, which tests/tidy.t checks too.

The work is done in copies of the tree below $BUILD/mutants, one for each of -j jobs, built with -O1. They are kept: what
suites take, which bounds what they may take on a mutant, is measured in them once.
"""
import argparse
import concurrent.futures
import json
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

# The suites that are tried on a drawn mutant after the unit tests, by the folder of its file; first those that are quick
# and find much.
SUITES = {
    "gen": "good errors routes schema templates kbgen list_info streams conformance impl set whatif",
    "gen/build": "kbgen impl conformance numbers",
    "rt/common": "good errors schema run streams kbgen races",
    "rt/base": "run failures list_info views host kernels ops conformance",
    "rt/sim": "failures conformance kernels host streams state fastforward",
    "rt/machine": "failures conformance streams kernels list_info profile collectives state fastforward",
    "rt/launch": "failures ends conformance wrong_kernel host streams kernels profile state fastforward",
    "rt/fastforward": "profile kernels state fastforward",
    "rt/store": "views host kernels races oplog ops composites memory_limit",
    "rt/oplog": "oplog host kernels ops memory_limit",
    "rt/datapass": "kernels ops composites exec oplog collectives",
    "rt/races": "races",
    "rt/device": "device failures wrong_kernel wrong_compute kernels views races ops composites",
    "rt/host": "host npy list_info run refs points",
    "rt/reference": "refs wrong_compute ops exec composites",
    "rt/report": "run profile list_info failures streams conformance ledger results conservation page",
    "rt/timeline": "timeline",
    "rt/why": "why conformance fuzz",
    "rt/probe": "probe",
    "rt/cli": "run streams failures list_info oplog conformance points set probe whatif web",
}
# Headers that unit tests of other rooms include as well.
SHARED = {"machine/command", "machine/emitted", "machine/tiling", "base/dtype", "base/threads", "common/arena",
          "common/fail"}
OPTIONS = "OPT=-O1"

# What is drawn: a pattern of a line, and what takes its place.
CHANGES = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
    (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "), (r" \+= ", " -= "), (r" -= ", " += "),
    (r"^((?!\s*for \().*?)\+\+", r"\1--"), (r"\b0\b", "1"), (r"\b1\b", "2"), (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"), (r"\(!", "("), (r"\bif \((.*)\)$", r"if (!(\1))"), (r" \* ", " + "), (r" / ", " * "),
    (r" << ", " >> "), (r" & ", " | "),
    (r"^(\s+)(?!return|break|else|case|default|goto|if|for|while|do\b)[a-z_][^={]*\([^{]*\);$", r"\1;"),
    (r"^(\s+)(?!return|const|struct|uint|bool|char|int|size_t|static|enum|double|float)"
     r"[a-z_][\w.\[\]>*-]* [-+|]?= [^{]*;$", r"\1;"),
    (r"^(\s+)break;$", r"\1;"), (r"^(\s+)continue;$", r"\1;"),
]


class Tree:
    """A copy of the tree that is built, in which one mutant at a time is put."""

    def __init__(self, number):
        self.root = os.path.join(BUILD, "mutants", f"tree{number}")
        self.build = os.path.join(self.root, "build")
        self.put_out()

    def put_out(self):
        """Makes the copy equal to the tree."""
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

    def make(self, suites):
        """Whether all that suites need builds."""
        units = [os.path.join("build", name) for name in suites if name.startswith("unit/")]
        return call(["make", "-j1", "WERROR=", "B=build", OPTIONS, "all", *units], self.root)[0] == 0

    def failure(self, suites, *options):
        """(suite, what failed in it) of the first of the suites that fails; (None, "") if all pass."""
        environment = os.environ | {"BUILD": self.build}
        status, said = call(["tests/run", *options, *suites], self.root, environment)
        found = re.search(r"^not ok (\S+)\s*(.*)", said, re.M)
        if status and not found:
            sys.exit("mutants: tests/run ended with no failure of a suite:\n" + said)
        if not found:
            return None, ""
        shutil.rmtree(os.path.join(self.build, "tests", found[1]), ignore_errors=True)
        return found.groups()

    def measure(self, suites):
        """Makes sure that suites pass without a mutant, and that tests/run knows how long they take."""
        try:
            with open(os.path.join(self.build, "tests", "seconds.json"), encoding="utf-8") as file:
                known = json.load(file)
        except (OSError, ValueError):
            known = {}
        new = [name for name in suites if name not in known]
        if not self.make(suites):
            sys.exit("mutants: the tree itself does not build: run make")
        suite, test = self.failure(new) if new else (None, "")
        if suite:
            sys.exit(f"mutants: {suite} fails without a mutant: {test}")

    def put(self, row):
        """Puts a mutant in; returns the text that it replaces, or None when it no longer applies."""
        if not applies(row, self.root):
            return None
        path = os.path.join(self.root, row["file"])
        text = text_of(path)
        write(path, "\n".join(row["new"] if line == row["old"] else line for line in text.split("\n")))
        return text

    def take_out(self, row, text):
        write(os.path.join(self.root, row["file"]), text)


def text_of(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def call(command, folder, environment=None):
    """The exit status of a command and what it printed; tests/run bounds what suites take."""
    ended = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    return ended.returncode, ended.stdout


def applies(row, root=ROOT):
    path = os.path.join(root, row["file"])
    return os.path.exists(path) and text_of(path).split("\n").count(row["old"]) == 1


def killer(tree, row, suites):
    """The first of the suites that notices a mutant and what failed: `build`, `gone` when it no longer applies, None."""
    text = tree.put(row)
    if text is None:
        return "gone", ""
    try:
        return tree.failure(suites, "--stop") if tree.make(suites) else ("build", "")
    finally:
        tree.take_out(row, text)


def suites_for(row, most=None):
    """The suites that are tried on a mutant, in order: the one guessed, unit tests of the file, of its room, suites."""
    file = row["file"]
    room = next(room for room in sorted(SUITES, key=len, reverse=True) if file.startswith(room + "/"))
    stem = os.path.splitext(file)[0].removeprefix("rt/")
    own, near = [], []
    folder = os.path.join(ROOT, "tests", "unit")
    for name in sorted(os.listdir(folder)):
        text = text_of(os.path.join(folder, name)) if name.endswith(".c") else ""
        used = set(re.findall(r'#include "(.*)\.h"', text))
        if stem in used:
            own.append("unit/" + name[:-2])
        elif any(one.startswith(os.path.dirname(stem) + "/") for one in used - SHARED):
            near.append("unit/" + name[:-2])
    return list(dict.fromkeys([row["killed_by"]] * ("killed_by" in row) + own + near + SUITES[room].split()[:most]))


def draw(count, seed, below):
    """Random one-line changes: first a room, as its lines weigh, then a kind of change, then a line that occurs once."""
    generator = random.Random(seed)
    tracked = subprocess.run(["git", "ls-files", "gen", "rt"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    known = {(row["file"], row["old"]) for row in rows()}
    weights, places = {}, {}
    for file in tracked.stdout.split():
        if file.endswith((".c", ".h", ".re")) and file.startswith(tuple(below)) and not file.startswith("rt/kb/"):
            lines = text_of(os.path.join(ROOT, file)).split("\n")
            room = os.path.dirname(file)
            weights[room] = weights.get(room, 0) + len(lines)
            for old in lines:
                if is_code(old) and lines.count(old) == 1 and (file, old) not in known:
                    code = re.sub(r"\s*/\*.*$", "", old)
                    for kind, (pattern, _) in enumerate(CHANGES):
                        if re.search(pattern, code):
                            places.setdefault(room, {}).setdefault(kind, []).append((file, old, code))
    drawn = {}
    while len(drawn) < count:
        room = generator.choices(list(weights), list(weights.values()))[0]
        kind = generator.choice(sorted(places[room]))
        file, old, code = generator.choice(places[room][kind])
        drawn.setdefault((file, old), {"file": file, "old": old, "new": re.sub(*CHANGES[kind], code, count=1)})
    return list(drawn.values())


def is_code(line):
    return not (re.match(r"\s*(/\*|\*|#|//|\}?$)", line) or re.match(r"[A-Za-z_].*[;)]$", line) or '"' in line or
                "assert(" in line)


def rows(path=LIST):
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file) or []


def name_of(row):
    return f"{row['file']}: {row['old'].strip()}  ->  {row['new'].strip() or '(nothing)'}"


def each(found, jobs, suites_of):
    """Runs every row against its suites, in as many trees as there are jobs; yields (row, suite, test) as they end."""
    trees = queue.Queue()
    needed = list(dict.fromkeys(name for row in found for name in suites_of(row)))
    for number in range(max(1, min(jobs, len(found)))):
        tree = Tree(number)
        tree.measure(needed)
        trees.put(tree)

    def one(row):
        tree = trees.get()
        try:
            return (row, *killer(tree, row, suites_of(row)))
        finally:
            trees.put(tree)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(one, row) for row in found]):
            yield done.result()


def find(found, jobs, most):
    """Prints the rows with what kills each."""
    for row, suite, test in each(found, jobs, lambda row: suites_for(row, most)):
        row = {key: row[key] for key in ("file", "old", "new")} | ({"killed_by": suite} if suite else {})
        comment = f"# {test}\n" if test else "" if suite else "# SURVIVED\n"
        print(comment + yaml.safe_dump([row], sort_keys=False, width=1000), end="", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Mutants: one-line changes that some suite has to notice.")
    parser.add_argument("names", nargs="*", help="parts of file names or lines; default: all of list.yaml")
    parser.add_argument("--sample", type=int, metavar="N", help="run N of list.yaml, picked at random")
    parser.add_argument("--draw", type=int, metavar="N", help="draw N new ones and find what kills each")
    parser.add_argument("--seed", type=int, help="of --draw and --sample")
    parser.add_argument("--below", nargs="+", default=[""], metavar="PATH", help="draw from files whose path begins so")
    parser.add_argument("--dry", action="store_true", help="print what is drawn, run nothing")
    parser.add_argument("--find", metavar="FILE", help="find what kills the rows of a file")
    parser.add_argument("--suites", type=int, metavar="N", help="of those listed for a room, try the first N")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    options = parser.parse_args()
    begin = time.monotonic()
    seed = random.randrange(1 << 16) if options.seed is None else options.seed
    if options.draw or options.find:
        found = rows(options.find) if options.find else draw(options.draw, seed, options.below)
        if options.dry:
            print(yaml.safe_dump(found, sort_keys=False, width=1000), end="")
        else:
            find(found, options.jobs, options.suites)
        return 0
    chosen = [row for row in rows() if not options.names or any(name in name_of(row) for name in options.names)]
    if options.sample:
        print(f"seed {seed}", flush=True)
        chosen = random.Random(seed).sample(chosen, min(options.sample, len(chosen)))
    tried = [row for row in chosen if "killed_by" in row]
    equivalent = sum("equivalent" in row for row in chosen)
    killed, gone = 0, sum(not applies(row) for row in chosen if "killed_by" not in row)
    for row, suite, _ in each(tried, options.jobs, lambda row: [row["killed_by"]][row["killed_by"] == "build":]):
        killed, gone = killed + bool(suite and suite != "gone"), gone + (suite == "gone")
        if not suite or suite == "gone":
            print(f"{'survived' if not suite else 'no longer applies'}  {name_of(row)}", flush=True)
    meant = len(chosen) - equivalent
    share = killed / meant if meant else 1
    print(f"{killed} of {meant} mutants killed ({share:.1%}), {equivalent} equivalent, {time.monotonic() - begin:.0f} s")
    return 0 if share >= KILLED_SHARE and not gone else 1


if __name__ == "__main__":
    sys.exit(main())
