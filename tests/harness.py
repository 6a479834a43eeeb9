"""harness: what the test scripts share: TAP lines, simulators of topologies and kernels, replays, comparisons.

A script that is run by itself, without tests/run, works on build/ and leaves its files in build/tests/.
"""
import hashlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("BUILD") or os.path.join(ROOT, "build")
KBGEN = os.environ.get("KBGEN") or os.path.join(BUILD, "kbgen")
SCRATCH = os.environ.get("SCRATCH") or os.path.join(BUILD, "tests", os.path.basename(sys.argv[0]).removesuffix(".t"))
CC = os.environ.get("CC") or "gcc"
SAN, QUICK, BLESS, STOP = (bool(os.environ.get(name)) for name in ("SAN", "QUICK", "BLESS", "STOP"))
SLOW = float(os.environ.get("SLOW") or 1)               # every timeout is this many times longer
os.makedirs(SCRATCH, exist_ok=True)

# The signals that tests send have to arrive, also where the tests run in the background or below nohup.
for _signal in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_signal) == signal.SIG_IGN:
        signal.signal(_signal, signal.SIG_DFL)

SMALL = os.path.join(ROOT, "tests", "small.yaml")
# A GEMM of several tiles for every PE of a small machine; it takes moments even under valgrind.
GEMM = ("m=128", "k=64", "n=96", "tile_m=32", "tile_k=32", "tile_n=32")
# Lanes of pe_math for every dtype.
LANES = "cube.pe_template.components.pe_math.attrs.lanes={ f32: 64, f16: 64, bf16: 64, i32: 8, i16: 8, i8: 8, u8: 8 }"
MMU = "cube.pe_template.components.pe_mmu.attrs.enabled=true"

counted = {"run": 0, "failed": 0}


# ---- results

def ok(passed, name, *diagnostics):
    """Prints one TAP line, and the diagnostics, of one or more lines each, if the test failed."""
    counted["run"] += 1
    counted["failed"] += not passed
    print(f"{'ok' if passed else 'not ok'} {counted['run']} - {name}")
    for line in [] if passed else "\n".join(str(part) for part in diagnostics if part).splitlines():
        print("# " + line)
    sys.stdout.flush()
    if STOP and not passed:
        done()
    return passed


def skip(name, why):
    counted["run"] += 1
    print(f"ok {counted['run']} - {name} # SKIP {why}", flush=True)


class Broken(Exception):
    """A simulator could not be made; says why."""


def suite(*parts):
    """Runs the parts of a suite and ends the script; a simulator that cannot be made is one failure."""
    try:
        for part in parts:
            part()
    except Broken as why:
        ok(False, "kbgen makes the simulators of this suite", why)
    done()


def done():
    if held.count:
        ok(not held.wrong, "what simulators have written has the form of its schema", *sorted(held.wrong)[:20])
    print(f"1..{counted['run']}")
    sys.exit(1 if counted["failed"] else 0)


# ---- schemas
#
# What a simulator writes is held against rt/report/schema.json. A suite writes many equal forms, and a validator in Python
# is slow: of all values of one form, one is validated. A form has the keys, and each word; of other values it has the type.

SCHEMAS = os.path.join(ROOT, "rt", "report", "schema.json")
WORD = re.compile(r"[a-zA-Z_ ]{1,24}")
HELD_LINES = 2000                                       # of a trace or an op log


class Held:
    """What was held against schemas: how much, the forms that are known, and what is wrong."""

    def __init__(self):
        self.count, self.forms, self.wrong, self.validators = 0, set(), set(), {}

    def validator(self, what):
        if what not in self.validators:
            from jsonschema import Draft7Validator      # pylint: disable=import-outside-toplevel; it takes 0.1 s
            document = json.loads(read(SCHEMAS))
            self.validators[what] = Draft7Validator({"allOf": [{"$ref": f"#/definitions/{what}"}]} | document)
        return self.validators[what]

    def hold(self, what, value):
        """Holds a value against the schema of `what`."""
        self.count += 1
        shape, value = form(value)
        if (what, shape) in self.forms:
            return
        self.forms.add((what, shape))
        self.wrong |= {f"{what}, {'.'.join(map(str, error.absolute_path))}: {error.message[:300]}"
                       for error in self.validator(what).iter_errors(value)}


held = Held()


def form(value):
    """The form of a value, and the value with one element of each form in its arrays."""
    if isinstance(value, dict):
        parts = {key: form(inner) for key, inner in value.items()}
        return tuple((key, shape) for key, (shape, _) in parts.items()), {key: kept for key, (_, kept) in parts.items()}
    if isinstance(value, list):
        if len(value) > 2 and not isinstance(value[0], (dict, list, str)):
            kinds = {(type(inner), inner is not None and inner < 0): inner for inner in value}
            return ("list", frozenset(kinds)), list(kinds.values())
        parts = {}
        for inner in value:
            shape, kept = form(inner)
            parts.setdefault(shape, kept)
        few = len(value) <= 2                           # lists of a fixed length are short
        return ("list", few and len(value), frozenset(parts)), [form(inner)[1] for inner in value] if few else list(parts.values())
    if isinstance(value, str):
        return value if WORD.fullmatch(value) else str, value
    return (type(value), value is not None and value < 0), value


def hold_text(what, text, lines=None):
    """Holds a JSON text, or each of its lines; what is no JSON is another check's concern."""
    try:
        values = [json.loads(line) for line in text.splitlines()[:lines]] if lines else [json.loads(text)]
    except ValueError:
        return
    for value in values:
        held.hold(what, value)


def hold_outputs(words, stdout, cwd):
    """Holds what a command of a simulator has written, if it is one."""
    verb = next((word for word in words[1:] if word in ("run", "replay", "probe", "whatif", "compare", "oplog")), None)
    options = {word: path for word, path in zip(words, words[1:])
               if word in ("--json", "--points", "--stats", "--trace", "--dump")}
    if verb == "oplog" and "--summary" not in words:
        hold_text("oplog", stdout, HELD_LINES)
    elif verb in ("run", "replay"):
        if options.get("--dump") == "plan":
            hold_text("plan", "".join(line + "\n" for line in stdout.splitlines() if line.startswith("{")), HELD_LINES)
        hold_output("metrics" if "--metrics" in words else "point" if "--points" in options else "result",
                    options.get("--json", "-" if "--points" in options else None), stdout, cwd)
        hold_output("stats", options.get("--stats"), stdout, cwd)
        hold_output("trace", options.get("--trace"), stdout, cwd)
    elif verb:
        hold_output(verb, options.get("--json"), stdout, cwd)


def hold_output(what, path, stdout, cwd):
    """Holds an output, if there is one: a file, or - for standard output."""
    path = path and os.path.join(cwd or ROOT, path)
    text = stdout if path and path.endswith("/-") else read(path) if path and os.path.isfile(path) else ""
    hold_text(what, text, HELD_LINES if what in ("point", "trace") else None)


# ---- commands and files

def run(*command, timeout=None, **options):
    """Runs a command to its end and returns it with its output; `said` is both streams, for diagnostics.

    The timeout, in seconds, is longer on a slow machine. In the root of the tree kbgen keeps what it links in BUILD.
    """
    if not {"cwd", "env"} & options.keys():
        options["env"] = os.environ | {"KBGEN_CACHE": os.path.join(BUILD, "kbgen.cache")}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, "cwd": ROOT} | options
    ended = subprocess.run([str(word) for word in command], text=True, errors="replace", check=False,
                           timeout=timeout and timeout * SLOW, **options)
    ended.said = f"{' '.join(map(str, command))}: status {ended.returncode}\n{ended.stdout or ''}{ended.stderr or ''}"
    hold_outputs([str(word) for word in command], ended.stdout or "", options.get("cwd"))
    return ended


def wait_until(condition, timeout=20):
    """Waits until the condition holds, at most the timeout in seconds, longer on a slow machine; returns it."""
    end = time.monotonic() + timeout * SLOW
    while not (holds := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return holds


def folder(*parts):
    """A folder in the scratch folder, made if it is not there."""
    path = os.path.join(SCRATCH, *parts)
    os.makedirs(path, exist_ok=True)
    return path


def scratch(name):
    """The path of a file in the scratch folder."""
    return os.path.join(SCRATCH, name)


def write(path, data):
    """Writes a text or bytes to a file, and returns its path."""
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def script(path, text):
    write(path, "#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def read(path):
    """The text of a file; empty if there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def remove(*paths):
    for path in paths:
        if os.path.lexists(path):
            os.unlink(path)


def bless(path, text):
    """With BLESS=1, makes the text what a file expects from now on."""
    if BLESS:
        write(path, text)


def make(*words):
    return run("make", *words)


def same_bytes(left, right, name):
    compared = run("cmp", left, right)
    return ok(compared.returncode == 0, name, compared.said)


# ---- simulators

made_here = set()


class MathOp(NamedTuple):
    """A row of rt/kb/ops.def, without its expressions in C."""
    name: str
    operands: int
    reduces: str
    domain: str
    second: str
    result: str
    formula: str
    note: str

    def __call__(self, *operands):
        return eval(self.formula, dict(vars(math)), dict(zip("xyz", operands)))


def math_ops():
    rows = re.findall(r'^OP\((\w+), (\d), (\w+), (\w+), (\w+), (\w+), "([^"]*)", "([^"]*)",$',
                      read(os.path.join(ROOT, "rt", "kb", "ops.def")), re.M)
    return [MathOp(name, int(operands), *rest) for name, operands, *rest in rows]


def topology(name):
    return os.path.join(ROOT, "topologies", name + ".yaml")


def options_of(kernels=(), settings=(), impls=()):
    """Words of kbgen's command line."""
    return [word for option, values in (("-k", kernels), ("--set", settings), ("--impl", impls))
            for value in values for word in (option, value)]


def simulator(file, name=None, kernels=(), settings=(), impls=(), kbgen=KBGEN, where=SCRATCH):
    """The simulator of a topology file with these kernels, settings and models; kbgen must not warn of own kernels.

    Without a name it is named after what is in the file, so that equal topologies of one suite share one.
    """
    path = os.path.join(where, name or "sim-" + hashlib.sha256(read_bytes(file)).hexdigest()[:12])
    if name or path not in made_here:
        made = run(kbgen, file, "-o", path, *options_of(kernels, settings, impls))
        if made.returncode or kernels and "warning" in made.stderr:
            raise Broken(made.said)
        made_here.add(path)
    return path


def small_machine(name, kernels, *settings):
    """The simulator of tests/small.yaml with these kernels and settings."""
    return simulator(SMALL, name, kernels, settings)


def result(program, *words, name="result", **options):
    """A run of a bench, and its JSON, which is {} if the run left none."""
    path = scratch(name + ".json")
    remove(path)
    ended = run(program, "run", *words, "--json", path, **options)
    return ended, json.loads(read(path) or "{}")


def sweep(program, bench, points, *options):
    """Runs points, objects of parameters, in one process; returns how it ended and an answer for each, or None."""
    text = "".join(json.dumps(point) + "\n" for point in points)
    ended = run(program, "run", bench, *options, "--points", write(scratch(f"{bench}.jsonl"), text))
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    return ended, answers + [None] * (len(points) - len(answers))


def in_browser(name, least, *words):
    """Runs tests/page/NAME in Chromium, which leaves screenshots in build/page: it makes more than `least` checks."""
    node, chromium = shutil.which("node"), shutil.which("chromium")
    modules = os.path.join(ROOT, "build", "npm", "node_modules")
    if not node or not chromium or not os.path.isdir(modules):
        missing = "there is no chromium, node or playwright-core"
        if os.environ.get("CI"):
            ok(False, f"{name} in a browser", missing)
        else:
            skip(f"{name} in a browser", missing)
        return
    shots = os.path.join(BUILD, "page")
    os.makedirs(shots, exist_ok=True)
    ended = run(node, os.path.join(ROOT, "tests", "page", name), chromium, shots, *words, timeout=100,
                env=os.environ | {"NODE_PATH": modules})
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    for line in lines:
        ok(line["ok"], line["name"], line.get("why", ""))
    ok(ended.returncode == 0 and len(lines) > least, f"the browser went through all of {name}", ended.stderr)


def verifies(answer):
    """Whether the answer to a point, or the result of a run, has a verification and each is good."""
    return bool(answer and answer["verify"] and "first_wrong_op" not in answer
                and all(check["status"] == "ok" for check in answer["verify"]))


def is_refused(program, bench, place, rows):
    """Each of the rows (what, exit status, message) of a bench with a parameter `what`; a mistake is told with its
    message and its place, both regular expressions."""
    for what, status, said in rows:
        ended = run(program, "run", bench, f"what={what}")
        located = status == 0 or re.search(place, ended.stderr)
        ok(ended.returncode == status and re.search(said, ended.stderr) and located,
           f"{bench} what={what} {'ends with its message and line' if status else 'is no mistake'}", ended.said)


def printed(ended, *names):
    """The tensors of these names that a bench printed, by name."""
    return {words[0]: [float.fromhex(word) for word in words[1:]]
            for words in map(str.split, ended.stdout.splitlines()) if words and words[0] in names}


class Replay:
    """What a simulator makes of a stream: exit status, result, trace and statistics as text, and all it said."""

    def __init__(self, program, stream, stem, around=(), timeout_s=100, more=()):
        result_path, trace_path, stats_path = stem + ".json", stem + ".jsonl", stem + ".stats.json"
        remove(result_path, trace_path, stats_path)
        try:
            ended = run(*around, program, "replay", stream, "--json", result_path, "--trace", trace_path,
                        "--stats", stats_path, *more, timeout=timeout_s)
            self.status, self.said = ended.returncode, ended.said
        except subprocess.TimeoutExpired as late:
            self.status, self.said = None, str(late)
        self.result, self.trace, self.stats = read(result_path), read(trace_path), read(stats_path)


# ---- comparisons

def normal(text):
    """JSON in the one form in which equal values are equal texts; other text as it is."""
    try:
        return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    except ValueError:
        return text


def without_host(text):
    """A run's result without its figures of the host, a value a line; the same in every run of the same input."""
    value = json.loads(text)
    value.pop("host", None)
    return json.dumps(value, sort_keys=True, indent=1) + "\n"


def without_why(text):
    """A result of replay without what --why adds; other text as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    for key in ("why", "ledger"):
        value.pop(key, None)
    return json.dumps(value)


def first_difference(want, got):
    """Where two texts differ first, by line; empty if they are equal."""
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


def stats_difference(want, got):
    """Where two files of --stats differ first; their rows may be in any order."""
    def lines(text):
        value = json.loads(text)
        rows = {key: sorted(json.dumps(row) for row in part) for key, part in value.items() if isinstance(part, list)}
        return "".join(json.dumps(one) + "\n" for key in sorted(value) for one in rows.get(key, [value[key]]))
    try:
        return first_difference(lines(want), lines(got))
    except ValueError:
        return "no JSON: " + (got.splitlines() or ["(empty)"])[0]
