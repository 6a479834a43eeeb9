"""harness: what the test scripts share: TAP lines, simulators made of topologies, what a replay gives.

A script that is run by itself, without tests/run around it, works on build/ and leaves its files in build/tests/.
"""
import hashlib
import json
import os
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("BUILD") or os.path.join(ROOT, "build")
KBGEN = os.environ.get("KBGEN") or os.path.join(BUILD, "kbgen")
SCRATCH = os.environ.get("SCRATCH") or os.path.join(BUILD, "tests", os.path.basename(sys.argv[0]).removesuffix(".t"))
os.makedirs(SCRATCH, exist_ok=True)

# What tests send has to arrive, also where the tests run in the background or below nohup.
for _signal in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_signal) == signal.SIG_IGN:
        signal.signal(_signal, signal.SIG_DFL)

# A GEMM that takes several tiles of every PE of a small machine, and moments under valgrind.
GEMM = ("m=128", "k=64", "n=96", "tile_m=32", "tile_k=32", "tile_n=32")

counted = {"run": 0, "failed": 0}


def ok(passed, name, *diagnostics):
    """One TAP line; the diagnostics, which may be of several lines, are shown when it failed."""
    counted["run"] += 1
    counted["failed"] += not passed
    print(f"{'ok' if passed else 'not ok'} {counted['run']} - {name}")
    for line in [] if passed else "\n".join(str(part) for part in diagnostics if part).splitlines():
        print("# " + line)
    sys.stdout.flush()
    return passed


def skip(name, why):
    counted["run"] += 1
    print(f"ok {counted['run']} - {name} # SKIP {why}", flush=True)


def done():
    print(f"1..{counted['run']}")
    sys.exit(1 if counted["failed"] else 0)


def run(*command, **options):
    """Runs a command to its end and returns it with its output; `said` is both streams, for diagnostics."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, "cwd": ROOT} | options
    ended = subprocess.run([str(word) for word in command], text=True, errors="replace", check=False, **options)
    ended.said = f"{' '.join(map(str, command))}: status {ended.returncode}\n{ended.stdout or ''}{ended.stderr or ''}"
    return ended


def folder(*parts):
    """A folder in the scratch folder, made if it is not there."""
    path = os.path.join(SCRATCH, *parts)
    os.makedirs(path, exist_ok=True)
    return path


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def script(path, text):
    write(path, "#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def make(*words):
    return run("make", *words)


class Broken(Exception):
    """No simulator could be made; says why."""


made_here = set()


def simulator(topology, kbgen=KBGEN, folder=SCRATCH):
    """The simulator of a topology file; equal files share one."""
    with open(topology, "rb") as file:
        path = os.path.join(folder, "sim-" + hashlib.sha256(file.read()).hexdigest()[:12])
    if path not in made_here:
        made = run(kbgen, topology, "-o", path)
        if made.returncode:
            raise Broken(made.said)
        made_here.add(path)
    return path


def small_machine(name, kernels, *settings):
    """The simulator of tests/small.yaml with these kernels and settings; nothing warns of them."""
    made = os.path.join(SCRATCH, name)
    words = [word for kernel in kernels for word in ("-k", kernel)]
    words += [word for setting in settings for word in ("--set", setting)]
    built = run(KBGEN, os.path.join(ROOT, "tests", "small.yaml"), *words, "-o", made)
    if built.returncode or "warning" in built.stderr:
        raise Broken(built.said)
    return made


class Replay:
    """What a simulator makes of a stream: exit status, result and trace as text, and all it said."""

    def __init__(self, program, stream, stem, around=(), timeout_s=100):
        result, trace = stem + ".json", stem + ".jsonl"
        for path in (result, trace):
            if os.path.exists(path):
                os.unlink(path)
        try:
            ended = run(*around, program, "replay", stream, "--json", result, "--trace", trace, timeout=timeout_s)
            self.status, self.said = ended.returncode, ended.said
        except subprocess.TimeoutExpired as late:
            self.status, self.said = None, str(late)
        self.result, self.trace = read(result), read(trace)


def read(path):
    """The text of a file, or the empty text when there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def normal(text):
    """JSON in the one form in which two equal values are equal texts; what is no JSON stays as it is."""
    try:
        return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    except ValueError:
        return text


def without_host(text):
    """A run's result without what is said about the host, a value a line; it has to be the same from run to run."""
    value = json.loads(text)
    value.pop("host", None)
    return json.dumps(value, sort_keys=True, indent=1) + "\n"


def first_difference(want, got):
    """Where two texts differ first, by line; empty when they are equal."""
    if want == got:
        return ""
    want, got = want.splitlines(), got.splitlines()
    for number, (left, right) in enumerate(zip(want, got), 1):
        if left != right:
            return f"line {number}:\nwant {left}\ngot  {right}"
    shorter, rest = ("got ends", want[len(got):]) if len(got) < len(want) else ("got goes on", got[len(want):])
    return f"line {min(len(want), len(got)) + 1}: {shorter}: {rest[0] if rest else '(the last newline)'}"


def result_difference(want, got):
    """Where two results differ first, laid out a value a line."""
    if normal(want) == normal(got):
        return ""
    try:
        want, got = (json.dumps(json.loads(text), sort_keys=True, indent=1) for text in (want, got))
    except ValueError:
        return "no JSON: " + (got.splitlines() or ["(empty)"])[0]
    return first_difference(want, got)
