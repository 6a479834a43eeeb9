#!/usr/bin/python3
"""model: docs/model.md names tests that exist and every conformance case, and its worked examples are what runs give.

In a section `### Example` the table's column `at` has times in ps: a bold one is in the trace or the result of the case
that the section names first; every time is what its equation gives. The rounds of an instant are those of the oracle,
which tests/fuzz.t compares with the simulator. docs/glossary.md is in alphabetical order. plain build only
"""
import json
import math
import os
import re
import sys
from fractions import Fraction

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "oracle")]

from harness import (KBGEN, MMU, ROOT, Replay, ok, read, run, scratch, simulator, small_machine, suite,     # noqa: E402
                     write)
from oracle import Machine                                      # noqa: E402
from simulation import KERNEL                                   # noqa: E402
from stream import Stream                                       # noqa: E402
from topology import Topology                                   # noqa: E402

DOCS = os.path.join(ROOT, "docs")
CASES = os.path.join(HERE, "conformance")
MODEL, GLOSSARY = (read(os.path.join(DOCS, name)) for name in ("model.md", "glossary.md"))
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
DEFINED = re.compile(r"^\[(\S+)\]: (\S+)$", re.M)
EQUATION = re.compile(r"((?:ceil|max|min|[0-9\s+*/(),^-])+)\s=\s(\d+)\b")


def prose(text):
    """A page without blocks, code and the targets of its references."""
    return DEFINED.sub("", re.sub(r"`[^`]*`", "", BLOCK.sub("", text)))


def target(name):
    """Where a test lies that the page names, as seen from docs/."""
    if os.path.exists(os.path.join(CASES, name, "topo.yaml")):
        return f"../tests/conformance/{name}"
    if name.startswith("failures/"):
        return f"../tests/{name}.yaml"
    return f"../tests/{name}" + (".c" if name.startswith("unit/") else ".t")


def names():
    """Every test that the page names exists and is linked, and every case of conformance is named."""
    named = set(re.findall(r"\[([a-z0-9_/]+)\](?!\()", prose(MODEL)))
    defined = dict(DEFINED.findall(MODEL))
    wrong = [name for name in sorted(named) if defined.get(name) != target(name)]
    wrong += [f"{name}: {where}" for name, where in defined.items() if not os.path.exists(os.path.join(DOCS, where))]
    ok(len(named) > 60 and not wrong, "every test that docs/model.md names exists and is linked", *wrong)
    ok(named == set(defined), "every link of docs/model.md to a test is used", *sorted(set(defined) - named))
    cases = [name for name in sorted(os.listdir(CASES)) if os.path.isdir(os.path.join(CASES, name))]
    missing = [name for name in cases if name not in named]
    ok(cases and not missing, "docs/model.md names every conformance case", *missing)


def links():
    """Links between pages and to headings lead somewhere."""
    for page, text in (("model.md", MODEL), ("glossary.md", GLOSSARY)):
        headings = {re.sub(r"[^a-z0-9 -]", "", line.lower()).replace(" ", "-")
                    for line in re.findall(r"^#+ (.*)$", text, re.M)}
        wrong = [where for where in re.findall(r"\]\(([^)]+)\)", text)
                 if where[0] == "#" and where[1:] not in headings or
                 where[0] != "#" and not os.path.exists(os.path.join(DOCS, where.split("#")[0]))]
        ok(not wrong, f"every link of docs/{page} leads to a file or a heading", *wrong)


def value(expression):
    """The exact value of an arithmetic expression of whole numbers."""
    code = re.sub(r"\d+", r"number(\g<0>)", expression.strip(" ,-\n").replace("^", "**"))
    # The expression has digits and operators alone.
    return eval(f"({code})", {"number": Fraction, "ceil": math.ceil, "max": max, "min": min})


def equations():
    found = EQUATION.findall(MODEL)
    wrong = [f"{left.strip()} = {right}" for left, right in found if value(left) != int(right)]
    ok(len(found) > 20 and not wrong, f"the equations of docs/model.md are right, {len(found)} of them", *wrong)


def units():
    """The values of the keys in the table of units."""
    shown = re.findall(r"`([\w.]+): (\S+)` is ([^|]*?) \|", MODEL)
    topology = write(scratch("least.yaml"), "system: { name: least }\n")
    model = run(KBGEN, topology, "--dump", "model",
                *(word for key, given, _ in shown for word in ("--set", f"{key}={given}"))).stdout
    values = dict(re.findall(r"^(\S+) +(.*?)  ", model, re.M))
    wrong = [f"{key}: {values.get(key)}, not {want}" for key, _, want in shown if values.get(key) != want]
    ok(len(shown) == 5 and not wrong, "the table of units of docs/model.md has the values of kbgen", *wrong)


def replayed(case):
    """Every number in the result and the trace of a case."""
    folder = os.path.join(CASES, case)
    got = Replay(simulator(os.path.join(folder, "topo.yaml")), os.path.join(folder, "stream.yaml"),
                 scratch(case))
    return set(map(int, re.findall(r"(?<=:)\s*(\d+)\b", got.result + got.trace)))


def steps(title, case, table):
    """A table of times: each is what its equation gives; a bold one is in the result or trace."""
    times, wrong = replayed(case), []
    for at, what, why in table:
        bold, at = "**" in at, int(at.strip("*"))
        results = [int(right) for _, right in EQUATION.findall(why)]
        if bold and at not in times:
            wrong.append(f"{at} ps, {what}: the case has no such time")
        if results != [at] and (at or why):
            wrong.append(f"{at} ps, {what}: {why}")
    ok(len(table) > 8 and not wrong, f"the times of the example '{title}' are those of {case}", *wrong)


def account(case, at_ps):
    """What the rounds of an instant do, as rows of the page's table."""
    folder = os.path.join(CASES, case)
    machine = Machine(Topology(os.path.join(folder, "topo.yaml")), Stream(os.path.join(folder, "stream.yaml")))
    sim, rows, rounds = machine.sim, [], []
    node = {one.rank: name for name, one in machine.fabric.nodes.items()}
    plain = sim.round

    def told(issue):
        def issue_told():
            before = len(sim.trace)
            issue()
            rows.extend([str(len(rounds)), "issue", name, str(key)]
                        for (_, _, key, *_), event, name in sim.trace[before:]
                        if event == "engine_start" and sim.now == at_ps)
        if sim.now == at_ps:
            rounds.append(at_ps)
            rows.extend([str(len(rounds)), "retire", node[rank], f"{kind}, {key}" if kind != KERNEL else str(kind)]
                        for time, rank, kind, key, *_ in sorted(sim.events) if time == at_ps)
        plain(issue_told)
    sim.round = told
    machine.run()
    return rows


def examples():
    for section in re.findall(r"^### Example: (.*?)(?=^##)", MODEL, re.M | re.S):
        title, case = section.splitlines()[0], re.search(r"\[(\w+)\]", section)[1]
        rows = [[cell.strip() for cell in line.strip("|").split("|")]
                for line in re.findall(r"^\|.*\|$", section, re.M)]
        if rows[0][0] == "at":
            steps(title, case, rows[2:])
            continue
        at_ps = int(re.search(r"(\d+) ps", section)[1])
        want = account(case, at_ps)
        ok(want and [row[:4] for row in rows[2:]] == want,
           f"the rounds of the example '{title}' are those of {case}", *(" | ".join(row) for row in want))
        missing = [time for time in re.findall(r"(\d+) ps", section) if int(time) and int(time) not in replayed(case)]
        ok(not missing, f"{case} has every time of the example '{title}'", *missing)


def files():
    """The blocks that are a case's files, a sentence about a case, the forms of a stream."""
    shown = [(head.split()[1], body) for head, body in BLOCK.findall(MODEL) if "/" in head]
    wrong = [name for name, body in shown if read(os.path.join(CASES, name)) != body]
    ok(shown and not wrong, "the files of cases in docs/model.md are those of the cases", *wrong)
    starts = re.findall(r"\[(\w+)\], [^.]*, at (\d+) ps", MODEL)
    ok(starts and all(int(at) in replayed(case) for case, at in starts),
       "the times in the text of docs/model.md are those of the cases",
       *starts)
    forms = [body for _, body in BLOCK.findall(MODEL) if body.startswith("name: forms")]
    path = write(scratch("forms.yaml"), forms[0])
    ended = run(small_machine("forms", (), MMU), "replay", path, "--json", "-")
    ok(ended.returncode == 0 and [one["status"] for one in json.loads(ended.stdout)["launches"]] == ["ok", "ok"],
       "the simulator runs the stream with every form of docs/model.md", ended.said)


def glossary():
    """Two parts, each in alphabetical order."""
    for part in GLOSSARY.split("\n## ")[1:]:
        words = [word.lower() for word in re.findall(r"^\| \*\*(.*?)\*\*", part, re.M)]
        late = [word for before, word in zip(words, words[1:]) if word <= before]
        ok(len(words) > 20 and not late, f"the glossary is in alphabetical order: {part.splitlines()[0]}",
           *late)


suite(names, links, equations, units, examples, files, glossary)
