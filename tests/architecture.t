#!/usr/bin/python3
"""architecture: what docs/architecture.md names is in the code, and every observer is in the list that it shows.
plain build only
"""
import os
import re

from harness import ROOT, done, ok, read

PAGE = read(os.path.join(ROOT, "docs", "architecture.md"))
WALKS, RECIPES = PAGE.split("\n## Recipes\n")
# Names that the examples of recipes make up.
SUITES = {name.removesuffix(".t") for name in os.listdir(os.path.join(ROOT, "tests"))}
EXAMPLES = re.compile(r"refresh|pack|PACK|fill|crypt|softplus|NAME|FIELD|KIND")


def sources():
    for folder in ("gen", "kernels", "rt", "templates", "tests"):
        for where, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                yield os.path.relpath(os.path.join(where, name), ROOT)


FILES = sorted(sources())
WORDS = {word for path in FILES if path.endswith((".c", ".h", ".re", ".in", ".def"))
         for word in re.findall(r"\w+", read(os.path.join(ROOT, path)))}


def code(text):
    """The blocks of a text and what stands between back quotes."""
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```$", text, re.M | re.S)
    return blocks + re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


def files(text):
    """The names of files outside links: "machine/fabric.c", "memory.c"."""
    for found in re.findall(r"[\w/]+\.(?:def|[ch]|re)(?:\.in)?\b", re.sub(r"\]\([^)]*\)", "]", text)):
        yield found


def functions(text):
    """Words with an underscore in code, and the first words of the lines of walks."""
    for piece in code(text):
        yield from (word for word in re.findall(r"\b[a-z]+_\w*[a-z]\b(?![*/]|\.[ch]\b)", piece))


missing = [name for name in files(PAGE) if not EXAMPLES.search(name)
           and not any(path == name or path.endswith("/" + name) for path in FILES)]
ok(len(list(files(PAGE))) > 40 and not missing, "every file that docs/architecture.md names exists", *missing)

named = {word for word in functions(WALKS)}
missing = sorted(named - WORDS)
ok(len(named) > 20 and not missing, "every function that docs/architecture.md names is in the code", *missing)

named = {word for word in functions(RECIPES) if not EXAMPLES.search(word)}
missing = sorted(named - WORDS - SUITES)
ok(len(named) > 8 and not missing, "every function that a recipe of docs/architecture.md names is in the code", *missing)

# "  launch_submit       launch/launch   makes ...": the function is in that file.
steps = re.findall(r"^ *(\w+)  +(\w+/\w+) ", WALKS, re.M)
wrong = [f"{function}: not in rt/{file}.c" for function, file in steps
         if f" {function}(" not in read(os.path.join(ROOT, "rt", file + ".c"))
         and f"*{function}(" not in read(os.path.join(ROOT, "rt", file + ".c"))]
ok(len(steps) > 6 and not wrong, "every step of a way in docs/architecture.md is in the file beside it", *wrong)

rooms = re.findall(r"^\| \[(\w+)\]\(\.\./rt/\1\)", PAGE, re.M)
known = re.search(r"^ROOMS = \((.*?)\)$", read(os.path.join(ROOT, "tests", "tidy.t")), re.M | re.S)[1]
ok(rooms == re.findall(r'"(\w+)"', known), "docs/architecture.md has the rooms of rt in their order", *rooms)

passes = [name for row in re.findall(r"^\| \w+ \| (\[.*?) \|", PAGE, re.M) for name in re.findall(r"\[(\w+)\.(?:c|re)\]", row)]
head = read(os.path.join(ROOT, "gen", "main.c")).split("*/")[0]
calls = {"check": "check_topology", "elab": "elaborate", "wire": "wire", "size": "measure", "route": "route", "emit": "emit"}
order = [calls[name] for name in passes if name in calls]
ok(order == re.findall(rf"\b({'|'.join(calls.values())})\b(?=[:,])", head),
   "docs/architecture.md has the passes in the order of gen/main.c", *order)
# Rows of files of gen/search, each of which knows the rows above it.
place = {name: row for row, line in enumerate(PAGE.splitlines()) if line.startswith("| [")
         for name in re.findall(r"\(\.\./gen/search/(\w+)\.[ch]\)", line)}
SEARCH = [path for path in FILES if re.match(r"gen/search/\w+\.[ch]$", path)]
missing = sorted({path for path in SEARCH if os.path.basename(path)[:-2] not in place})
ok(not missing, "every file of gen/search is in the table of docs/architecture.md", *missing)
wrong = [f"{path} includes {of}.h" for path in SEARCH
         for name in [os.path.basename(path)[:-2]] for of in re.findall(r'^#include "(\w+)\.h"', read(os.path.join(ROOT, path)), re.M)
         if place.get(of, 0) > place.get(name, 0)]
ok(len(place) > 25 and wrong == ["gen/search/axis.c includes facts.h"],
   "files of gen/search include headers of their row of docs/architecture.md and of rows above it, axis.c those of facts as well", *wrong)

rt = {path: read(os.path.join(ROOT, path)) for path in FILES if path.startswith("rt/") and path.endswith(".c")}
observers = [name for text in rt.values() for name in re.findall(r"^struct observer (\w+) = ", text, re.M)]
wrong = [f"{name} is not in rt/session/observers.c" for name in observers if f"&{name}," not in rt["rt/session/observers.c"]]
wrong += [f"{name} never watches" for name in observers
          if not any(f"observer_watch(&{name}, " in text for text in rt.values())]
ok(len(observers) > 9 and not wrong, "every observer of rt is in the list of observers, and can be switched on", *wrong)
done()
