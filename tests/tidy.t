#!/usr/bin/python3
"""tidy: the rules of layout that a machine can see: which file includes which, and how a file begins and ends.
plain build only
"""
import os
import re

from harness import ROOT, done, ok

# The rooms of rt in the order in which they know of one another: each includes headers of itself and of those before.
ROOMS = ("common", "base", "sim", "machine", "launch", "fastforward", "store", "oplog", "datapass", "races", "device",
         "host", "reference", "report", "cli")
FOLDERS = (".", ".ci", "docs", "docs/guide", "gen", "gen/build", "kernels", "rt/kb", *(f"rt/{room}" for room in ROOMS),
           "templates",
           "topologies/impl", "tests", "tests/bench", "tests/impl", "tests/unit", "topologies")
# Includes against that order which are still there: "FILE INCLUDED". This list only shrinks.
UPWARD = set("""
""".split("\n")) - {""}
CODE = (".c", ".h", ".re", ".in", ".def")
GENERATED_TEXT = ("LICENSE",)

# What a file of a folder may include with quotes, by the path in the tree: gen sees of rt its text readers and lists.
MAY_INCLUDE = {
    "gen": r"gen/[^/]+$|rt/common/[^/]+\.h$|rt/kb/[^/]+\.def$",
    "gen/build": r"gen/[^/]+\.h$|gen/build/[^/]+\.h$|rt/common/[^/]+\.h$",
    "rt/kb": r"rt/kb/[^/]+$",
    "kernels": r"kernels/[^/]+\.h$",
}
MAY_INCLUDE |= {f"rt/{room}": rf"rt/({'|'.join(('kb',) + ROOMS[:place + 1])})/[^/]+$"
                for place, room in enumerate(ROOMS)}


def sources():
    """(path in the tree, its lines) of every text file that people write, conformance cases apart."""
    for folder in FOLDERS:
        path = os.path.join(ROOT, folder)
        for name in sorted(os.listdir(path)) if os.path.isdir(path) else []:
            file = os.path.join(path, name)
            if os.path.isfile(file) and name not in GENERATED_TEXT:
                with open(file, encoding="utf-8") as text:
                    yield os.path.normpath(os.path.join(folder, name)), text.read().split("\n")


def included(lines):
    """(line number, name, whether in angle brackets) of the includes of a file."""
    for number, line in enumerate(lines, 1):
        if found := re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line):
            yield number, found[2], found[1] == "<"


def resolve(folder, name):
    """Where a quoted include leads: beside its file, or else below rt, which is on the path of all but gen."""
    beside = os.path.normpath(os.path.join(folder, name))
    if os.path.exists(os.path.join(ROOT, beside)) or folder.startswith("gen"):
        return beside
    return os.path.normpath(os.path.join("rt", name))


def wrong_includes(path, lines):
    """Every include has to lead to a file of the tree that its folder may see; so nothing includes an emitted file."""
    folder = os.path.dirname(path)
    for number, name, angled in included(lines):
        if angled and folder == "kernels" and not name.startswith("kb/"):
            yield number, f"a kernel includes <kb/...> and headers beside it, not <{name}>"
        if not angled and folder in MAY_INCLUDE:
            target = resolve(folder, name)
            if path == "gen/main.c" and target.startswith("gen/build/"):
                continue                                # the passes know nothing of builds; main joins them
            if not re.match(MAY_INCLUDE[folder], target) and f"{path} {name}" not in UPWARD:
                yield number, f'{folder} may not include "{name}"'
            elif not os.path.exists(os.path.join(ROOT, target)):
                yield number, f'"{name}" is no file of the tree'


def wrong_spaces(path, lines):
    for number, line in enumerate(lines, 1):
        if line != line.rstrip() or ("\t" in line and path != "Makefile"):
            yield number, "a tab, or white space at the end"
    if lines[-1] or lines[-2:] == ["", ""]:
        yield len(lines), "the file does not end in one newline"


def missing_heads(path, lines):
    """A source begins with its name and what it is."""
    name = os.path.basename(path).removesuffix(".in")
    if path.endswith(CODE) and not re.match(rf"/\* {re.escape(name)}(\.in)?: \S", lines[0]):
        yield 1, f"the file does not begin with /* {name}: what it is"


def open_ends(path, lines):
    for number, line in enumerate(lines, 1):
        if path != "tests/tidy.t" and re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
            yield number, "something is left open: " + line.strip()


RULES = {
    "includes": wrong_includes, "white space": wrong_spaces, "heads": missing_heads, "nothing left open": open_ends,
}
files = list(sources())
for title, rule in RULES.items():
    found = [f"{path}:{number}: {why}" for path, lines in files for number, why in rule(path, lines)]
    ok(not found, title, *found)
done()
