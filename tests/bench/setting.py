"""setting: what all rows share: the tools, a folder of their own, the core that is measured on, simulators made once.

The environment says what the Makefile knows: BUILD (the build folder), CC; PAIRS (how many pairs of runs) and SHARED
(the folder with the peers, ../shared if absent) are the user's.
"""
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(ROOT, "build"))
KBGEN = os.path.join(BUILD, "kbgen")
CC = os.environ.get("CC") or "gcc"
SHARED = os.path.join(ROOT, os.environ.get("SHARED") or os.path.join("..", "shared"))
PEERS = os.path.join(SHARED, "peers")
HERE = os.path.join(ROOT, "tests", "bench")
CORE = max(os.sched_getaffinity(0))


class NotMeasured(Exception):
    """What a row compares does not exist here; says why."""


class Broken(Exception):
    """A program failed that should not have; says which, and what it said."""


class EndsDiffer(Exception):
    """Two simulators of one machine do not end at the same time."""


def output(*command, **options):
    """Runs a command to its end, which has to be a good one, and returns what it printed."""
    ended = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           stdin=subprocess.DEVNULL, text=True, errors="replace", check=False, **options)
    if ended.returncode:
        raise Broken(f"{' '.join(map(str, command))}: status {ended.returncode}: {ended.stderr.strip()}")
    return ended.stdout


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


class Setting:
    """A run of the bench: `folder` is empty at first and gone afterwards; `pairs` is how often a pair is run."""

    def __init__(self, folder, pairs):
        self.folder, self.pairs = folder, pairs
        self.made = {}

    def path(self, name):
        return os.path.join(self.folder, name)

    def once(self, key, make):
        """What make() returns, which is called for the first who asks."""
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def simulator(self, topology, *words):
        """The simulator of a topology file, with more words for kbgen."""
        name = self.path("-".join(["sim", topology, *words]).replace("/", "_"))
        return self.once(name, lambda: (output(KBGEN, topology, *words, "-o", name, cwd=self.folder), name)[1])

    def program(self, source, *words, compiler=CC):
        """A program, or a shared library, that the bench compiles for itself."""
        path = self.path(os.path.basename(source) + ".out")
        return self.once(path, lambda: (output(compiler, "-O2", "-o", path, source, *words), path)[1])
