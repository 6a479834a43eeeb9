#!/usr/bin/python3
"""tidy: the rules of layout that a machine can see: which file includes which, and how a file begins and ends; and that
the mutants of tests/mutants still apply to the code. plain build only
"""
import os
import re

import yaml

from harness import ROOT, done, ok, read

# The rooms of rt in the order in which they know of one another: each includes headers of itself and of those before.
# The machine is before all that observes it, so it includes no observer.
ROOMS = ("common", "base", "sim", "machine", "launch", "fastforward", "store", "oplog", "datapass", "races", "device",
         "host", "reference", "report", "timeline", "probe", "why", "session", "embed", "bringup", "cli")
FOLDERS = (".", ".ci", "docs", "docs/guide", "docs/search", "gen", "gen/build", "gen/packaging", "gen/search", "kernels", "rt/kb", *(f"rt/{room}" for room in ROOMS),
           "rt/report/page", "rt/report/page/search", "rt/report/page/sections",
           "templates", "topologies", "topologies/impl", "tests", "tests/bench", "tests/embed", "tests/fuzz", "tests/impl",
           "tests/methods", "tests/mutants", "tests/oracle", "tests/page", "tests/search",
           "tests/unit")
CODE = (".c", ".h", ".re", ".in", ".def")

# The interface of x.c is x.h, but for programs, for what kernels and benches call, and for what is still to be joined.
PROGRAMS = {"rt/cli/main.c", "gen/main.c"}
INTERFACE = {
    "rt/embed/front.c": "kb/sim.h",
    "rt/device/composite.c": "kb/composite.h",
    "rt/device/compute.c": "kb/math.h",
    "rt/device/move.c": "kb/tl.h",
    "rt/device/shard.c": "kb/tl.h",
    "rt/host/snake.c": "kb/measure.h",
    "rt/reference/attention.c": "kb/ref.h",
    "rt/reference/axis.c": "kb/ref.h",
    "rt/reference/elementwise.c": "kb/ref.h",
    "rt/reference/given.c": "kb/ref.h",
    "gen/elab.c": "plan.h",
    "gen/renumber.c": "../rt/common/renumber.h",
    "gen/route.c": "plan.h",
    "gen/size.c": "plan.h",
    "gen/wire.c": "plan.h",
}

# What a file of a folder may include with quotes, by the path in the tree. gen sees of rt what both share, and lists.
MAY_INCLUDE = {
    "gen": r"gen/[^/]+$|rt/common/[^/]+\.h$|rt/kb/[^/]+\.def$",
    "gen/build": r"gen/[^/]+\.h$|gen/build/[^/]+\.h$|rt/common/[^/]+\.h$|rt/kb/sim\.h$",
    "gen/search": r"gen/[^/]+\.h$|gen/(build|search)/[^/]+\.(h|def)$|rt/common/[^/]+\.h$|rt/kb/[^/]+\.def$|rt/report/metrics\.def$",
    "rt/kb": r"rt/kb/[^/]+$",
    "kernels": r"kernels/[^/]+\.h$",
}
MAY_INCLUDE |= {f"rt/{room}": rf"rt/({'|'.join(('kb',) + ROOMS[:place + 1])})/[^/]+$"
                for place, room in enumerate(ROOMS)}
MAIN = r"gen/(build|search)/[^/]+\.h$"                  # gen/main.c joins the passes, the build and the subcommands


def sources():
    """(path in the tree, its lines) of every text file that people write, conformance cases apart."""
    for folder in FOLDERS:
        path = os.path.join(ROOT, folder)
        for name in sorted(os.listdir(path)):
            if os.path.isfile(os.path.join(path, name)) and name != "LICENSE":
                yield os.path.normpath(os.path.join(folder, name)), read(os.path.join(path, name)).split("\n")


def included(lines):
    """(line number, name, whether in angle brackets) of the includes of a file."""
    for number, line in enumerate(lines, 1):
        if found := re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line):
            yield number, found[2], found[1] == "<"


def resolve(folder, name):
    """The file that a quoted include means: beside its file, or else below rt, which is on the path of all but gen."""
    beside = os.path.normpath(os.path.join(folder, name))
    if os.path.exists(os.path.join(ROOT, beside)) or folder.startswith("gen"):
        return beside
    return os.path.normpath(os.path.join("rt", name))


def wrong_includes(path, lines):
    """Every include leads to a file of the tree that its folder may see; so nothing includes an emitted file."""
    folder = os.path.dirname(path)
    for number, name, angled in included(lines):
        if angled and folder == "kernels" and not name.startswith("kb/"):
            yield number, f"a kernel includes <kb/...> and headers beside it, not <{name}>"
        if angled and name.split("/")[0] in ROOMS:
            yield number, f'a header of the tree is included with quotes: "{name}", not <{name}>'
        if not angled and folder in MAY_INCLUDE:
            target = resolve(folder, name)
            seen = re.match(MAY_INCLUDE[folder], target) or path == "gen/main.c" and re.match(MAIN, target)
            if not seen:
                yield number, f'{folder} may not include "{name}"'
            elif not os.path.exists(os.path.join(ROOT, target)):
                yield number, f'"{name}" is no file of the tree'


def wrong_interfaces(path, lines):
    """The interface of x.c is x.h, which x.c includes; INTERFACE has the exceptions, and the header of each."""
    stem, extension = os.path.splitext(path)
    if not path.startswith(("rt/", "gen/")) or extension not in (".c", ".re") or path in PROGRAMS:
        return
    beside = os.path.exists(os.path.join(ROOT, stem + ".h"))
    header = os.path.basename(stem) + ".h" if beside else INTERFACE.get(path)
    if not header:
        yield 1, "there is no header of the same name"
    elif beside and header not in [name for _, name, _ in included(lines)]:
        yield 1, f'"{header}" is not included'


def left_over(files):
    """Entries of INTERFACE that are not needed any more: the list only shrinks."""
    paths = dict(files)
    for path, header in sorted(INTERFACE.items()):
        where = "rt" if header.startswith("kb/") else os.path.dirname(path)
        if path not in paths or os.path.exists(os.path.join(ROOT, os.path.splitext(path)[0] + ".h")):
            yield f"{path} is no exception"
        elif not os.path.exists(os.path.join(ROOT, where, header)):
            yield f"there is no {header} for {path}"


def wrong_spaces(path, lines):
    for number, line in enumerate(lines, 1):
        if line != line.rstrip() or ("\t" in line and path != "Makefile"):
            yield number, "a tab, or white space at the end"
    if lines[-1] or lines[-2:] == ["", ""]:
        yield len(lines), "the file does not end in one newline"


def missing_heads(path, lines):
    name = os.path.basename(path).removesuffix(".in")
    if path.endswith(CODE) and not re.match(rf"/\* {re.escape(name)}(\.in)?: \S", lines[0]):
        yield 1, f"the file does not begin with /* {name}: what it is"


def open_ends(path, lines):
    for number, line in enumerate(lines, 1):
        if path != "tests/tidy.t" and re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
            yield number, "something is left open: " + line.strip()


def stale_mutants(files):
    """Rows of the list whose line is not in its file exactly once: such a row needs the line as it is now, or goes."""
    lines_of = dict(files)
    for row in yaml.safe_load(read(os.path.join(ROOT, "tests", "mutants", "list.yaml"))):
        count = lines_of.get(row["file"], []).count(row["old"])
        if count != 1:
            yield f"{row['file']} has {count} lines like that of a row of tests/mutants/list.yaml: {row['old'].strip()}"
        elif row["new"] == row["old"] or len(row.keys() & {"killed_by", "equivalent", "survives"}) != 1:
            yield f"a row of tests/mutants/list.yaml is incomplete: {row['file']}: {row['old'].strip()}"
        elif row.get("killed_by", "build") != "build" and not any(
                os.path.exists(os.path.join(ROOT, "tests", row["killed_by"] + end)) for end in (".t", ".c")):
            yield f"tests/mutants/list.yaml: there is no suite {row['killed_by']}"


RULES = {
    "every include is of a room that the file may see": wrong_includes,
    "the interface of every .c file is in the header of its own name": wrong_interfaces,
    "no file has tabs or trailing white space, and each ends in one newline": wrong_spaces,
    "every source begins with its name and what it is": missing_heads,
    "nothing is left open": open_ends,
}
files = list(sources())
for title, rule in RULES.items():
    found = [f"{path}:{number}: {why}" for path, lines in files for number, why in rule(path, lines)]
    ok(len(files) > 300 and not found, title, *found)
found = list(left_over(files))
ok(not found, "every exception that tests/tidy.t lists is still there", *found)
found = list(stale_mutants(files))
ok(not found, "every mutant of tests/mutants/list.yaml still applies to the line that it changes", *found)
done()
