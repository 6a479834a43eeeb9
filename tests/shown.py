"""shown: outputs of runs in documents, as `text` blocks and rows of tables, and how they are compared with the runs.

A block whose first line is `$ COMMAND` shows what that prints, standard error first. A line `...` matches any lines; in
a block with one, each other line matches the next line of the output that begins with the same words. What depends on
the host, its seconds and the last bits of an error, is not compared.
"""
import os
import re
import shutil

from harness import KBGEN, ROOT, bless, first_difference, ok, read, scratch

BLOCK = re.compile(r"(?<=^```text\n)\$ ([^\n]*)\n(.*?)(?=^```$)", re.M | re.S)
BOUND = re.compile(r"(?m)^\w+ +(\d\S* \S+ \w+), (\S+ %) of (\d\S* \S+)$")


def simulated(text):
    """An output without what depends on the host."""
    return re.sub(r"(?m)(?<=^verified ).*$|(?<=^host ).*$", "", text)


def words_of(line):
    """The words at the start of a line of a summary or message: up to its figures, a colon or a gap."""
    return re.split(r"\s{2,}|:(?=\s|\d|$)| (?=\d)|,", line.strip())[0]


def picked(pattern, output):
    """The output as a block shows it, with a note in place of each line that is not found."""
    lines, made = iter(output.splitlines()), []
    wanted = pattern.splitlines()
    if "..." not in wanted:
        return output
    for want in wanted:
        found = want if want == "..." else next((line for line in lines if begins(line, want)), None)
        made.append(f"(nothing that begins as: {want})" if found is None else found)
    return "".join(line + "\n" for line in made)


def begins(line, want):
    """Whether a line matches a line of a block: the same indentation and the same first words."""
    indent = len(want) - len(want.lstrip())
    return len(line) - len(line.lstrip()) == indent and words_of(line).startswith(words_of(want))


def hold(path, printed, rows=lambda text: text):
    """Holds the blocks of a page against what their commands print, as `printed` says; `rows` makes its tables anew. Returns
    the page as it is and as it should be; `make bless` writes that."""
    made = rows(BLOCK.sub(lambda block: f"$ {block[1]}\n{picked(block[2], printed(block[1]))}", read(path)))
    bless(path, made)
    text, name = read(path), os.path.relpath(path, ROOT)
    for was, now in zip(BLOCK.finditer(text), BLOCK.finditer(made)):
        ok(now[2].strip() and not first_difference(simulated(was[2]), simulated(now[2])), f"{name} shows what `{was[1]}` prints",
           first_difference(was[2], now[2]))
    ok("(nothing that begins as" not in made, f"every line that {name} shows is printed", *re.findall(r"\(nothing that .*", made))
    return text, made


def figures(output):
    """The time of a summary, and of the problem's bound and the algorithm's: their time with the part of the machine, and
    how much of it was reached. None if the bench states no problem."""
    found = [BOUND.search(output, output.index(name)) for name in ("\nproblem ", "\nalgorithm ") if name in output]
    return [found[0][3], *found[0].groups()[:2], *found[1].groups()[:2]] if len(found) == 2 else None


def reader():
    """Makes the folder of a reader who has built kbgen."""
    folder = scratch("reader")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "build"))
    os.symlink(KBGEN, os.path.join(folder, "build", "kbgen"))
    for name in ("topologies", "docs"):
        os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    return folder
