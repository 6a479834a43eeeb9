#!/usr/bin/python3
"""readme: the examples of README.md and of the pages that go on from it work as printed; links lead to files.

A fenced block whose opening names a language and a file is that file; the `sh` blocks are run one after the other, in a
folder with those files and build/kbgen. `console` and `text` blocks are for the reader. plain build only, limit: 200
"""
import os
import re
import shutil

from harness import KBGEN, ROOT, SCRATCH, done, ok, read, run, write

PAGES = ("README.md", "docs/components.md", "docs/sweeps.md", "docs/search.md")       # in this order: files of one are used by the next


def blocks(text):
    """(language, file name or empty, body) of each fenced block."""
    return re.findall(r"^```(\w*)[ ]?(\S*)\n(.*?)^```$", text, re.M | re.S)


def broken_links(page):
    """The links of a page to files of the tree that do not exist."""
    found = re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", read(os.path.join(ROOT, page)))
    return sorted({f"{page}: {path}" for path in found
                   if not os.path.exists(os.path.join(ROOT, os.path.dirname(page), path))})


folder = os.path.join(SCRATCH, "reader")
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(os.path.join(folder, "build"))
os.symlink(KBGEN, os.path.join(folder, "build", "kbgen"))
for page in PAGES:
    for language, name, body in blocks(read(os.path.join(ROOT, page))):
        if name:
            write(os.path.join(folder, name), body)
        elif language == "sh":
            ended = run("sh", "-eux", "-c", body, cwd=folder)
            ok(ended.returncode == 0 and "warning" not in ended.stderr,
               f"the example of {page} runs that ends with: {body.splitlines()[-1]}", ended.said)
documents = ["README.md"] + sorted("docs/" + name for name in os.listdir(os.path.join(ROOT, "docs"))
                                   if name.endswith(".md"))
broken = [link for page in documents for link in broken_links(page)]
ok(not broken, "every link of README.md and docs/ leads to a file", *broken)
done()
