#!/usr/bin/python3
"""readme: the examples of README.md work as they stand.

A fenced block whose opening names a language and a file is that file; the `sh` blocks are run one after the other, in a
folder with those files and build/kbgen. `console` and `text` blocks are for the reader. limit: 200
"""
import os
import re
import shutil
import sys

from harness import KBGEN, ROOT, SCRATCH, done, ok, read, run


def blocks(text):
    """(language, file name or empty, body) of each fenced block."""
    return re.findall(r"^```(\w*)[ ]?(\S*)\n(.*?)^```$", text, re.M | re.S)


def links(text):
    """The paths of the tree that the text points to."""
    return sorted(set(re.findall(r"\]\(([^):#]+)\)", text)))


if os.environ.get("SAN"):
    print("1..0 # SKIP the examples are run with the plain build")
    sys.exit()
readme = read(os.path.join(ROOT, "README.md"))
folder = os.path.join(SCRATCH, "reader")
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(os.path.join(folder, "build"))
os.symlink(KBGEN, os.path.join(folder, "build", "kbgen"))
for language, name, body in blocks(readme):
    if name:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(body)
    elif language == "sh":
        ended = run("sh", "-eux", "-c", body, cwd=folder)
        ok(ended.returncode == 0 and "warning" not in ended.stderr, body.splitlines()[-1], ended.said)
missing = [path for path in links(readme) if not os.path.exists(os.path.join(ROOT, path))]
ok(not missing, "every link leads to something", *missing)
done()
