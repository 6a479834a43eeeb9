#!/usr/bin/python3
"""tidy: the rules of layout that a machine can see: which file includes which, and how long things are."""
import os
import re

from harness import ROOT, done, ok

WIDTH, FUNCTION_LINES, FILE_LINES = 120, 70, 400
FOLDERS = (".", ".ci", "docs", "docs/guide", "gen", "kernels", "rt", "rt/kb", "rt/text", "templates", "topologies/impl",
           "tests", "tests/bench", "tests/impl", "tests/unit", "topologies")
CODE = (".c", ".h", ".re", ".in", ".def")
GENERATED_TEXT = ("LICENSE",)

# What a file of a folder may include with quotes, by the path in the tree: gen sees of rt its text readers and lists.
MAY_INCLUDE = {
    "gen": r"gen/[^/]+$|rt/text/[^/]+\.h$|rt/kb/[^/]+\.def$",
    "rt": r"rt/[^/]+$|rt/text/[^/]+\.h$|rt/kb/[^/]+$",
    "rt/text": r"rt/text/[^/]+$",
    "rt/kb": r"rt/kb/[^/]+$",
    "kernels": r"kernels/[^/]+\.h$",
}


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
    if os.path.exists(os.path.join(ROOT, beside)) or folder == "gen":
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
            if not re.match(MAY_INCLUDE[folder], target):
                yield number, f'{folder} may not include "{name}"'
            elif not os.path.exists(os.path.join(ROOT, target)):
                yield number, f'"{name}" is no file of the tree'


def wrong_widths(_, lines):
    """Tables of a document are as wide as they are, and so is what a program printed."""
    printed = False
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            printed = line == "```text"
        elif len(line) > WIDTH and not printed and not line.startswith("|"):
            yield number, f"{len(line)} columns, of at most {WIDTH}"


def wrong_spaces(path, lines):
    for number, line in enumerate(lines, 1):
        if line != line.rstrip() or ("\t" in line and path != "Makefile"):
            yield number, "a tab, or white space at the end"
    if lines[-1] or lines[-2:] == ["", ""]:
        yield len(lines), "the file does not end in one newline"


def long_functions(path, lines):
    """A function is what stands between `{` and `}` in the first column."""
    begin = None
    for number, line in enumerate(lines, 1):
        if path.endswith(CODE) and (line == "{" or re.match(r"[a-z].*\)\s*\{$", line)):
            begin = number
        elif path.endswith(CODE) and line.startswith("}") and begin:
            if number - begin > FUNCTION_LINES:
                yield begin, f"a function of {number - begin} lines, of at most {FUNCTION_LINES}"
            begin = None


def long_files(path, lines):
    if path.endswith(CODE + (".t", ".py")) and len(lines) - 1 > FILE_LINES:
        yield FILE_LINES + 1, f"{len(lines) - 1} lines, of at most {FILE_LINES}"


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
    "includes": wrong_includes, "widths": wrong_widths, "white space": wrong_spaces, "functions": long_functions,
    "files": long_files, "heads": missing_heads, "nothing left open": open_ends,
}
files = list(sources())
for title, rule in RULES.items():
    found = [f"{path}:{number}: {why}" for path, lines in files for number, why in rule(path, lines)]
    ok(not found, title, *found)
done()
