#!/usr/bin/python3
"""results: the JSON Schemas that a simulator prints, the lists of words that they repeat, and the keys of docs/results.md.
plain build only

What the simulators of all suites write is held against the schemas by harness.py. Here is what shows that this works.
"""
import copy
import json
import os
import re

from jsonschema import Draft7Validator

from harness import GEMM, ROOT, SCHEMAS, SMALL, Held, held, ok, read, run, scratch, simulator, suite

DEFINITIONS = json.loads(read(SCHEMAS))["definitions"]
WHAT = ("result", "point", "stats", "trace", "oplog", "plan", "probe", "whatif")
# The definitions of words, and what has them: a list of rt, and its words there.
LISTS = (("fault", "kb/faults.def", r"^FAULT\((\w+)"), ("command", "kb/commands.def", r'^(?:COMMAND|COMPOSITE)\(\w+, "(\w+)"'),
         ("engine", "kb/engines.def", r'^ENGINE\(\w+, "([\w ]+)"'), ("stage", "kb/stages.def", r"^STAGE\((\w+)"),
         ("link", "kb/links.def", r"^LINK\((\w+)"), ("dtype", "kb/dtypes.def", r"^DTYPE\((\w+)"),
         ("reason", "why/reasons.def", r"^REASON\((\w+)"), ("edge", "why/reasons.def", r"^EDGE\((\w+)"),
         ("work", "why/reasons.def", r"^WORK\((\w+)"), ("simplification", "report/ledger.def", r"^LEDGER\((\w+)"),
         ("event", "kb/trace.def", r"^TRACE\((\w+)"))


def objects(part, path=""):
    """Every object of a schema that has keys, with its path."""
    if isinstance(part, dict):
        if isinstance(part.get("properties"), dict) and "type" in part:
            yield path, part
        for name, inner in part.items():
            yield from objects(inner, f"{path}.{name}")
    elif isinstance(part, list):
        for inner in part:
            yield from objects(inner, path)


def printed():
    program = simulator(SMALL, "small")
    for what in WHAT:
        ended = run(program, "schema", what)
        schema = json.loads(ended.stdout or "{}")
        Draft7Validator.check_schema(schema)
        ok(schema.get("allOf") == [{"$ref": f"#/definitions/{what}"}] and schema["definitions"] == DEFINITIONS,
           f"schema {what} prints a schema of draft-07, that of the tests", ended.said[:500])
    listed = re.findall(r"^  (\w+)  +", run(program, "schema", "--help").stdout, re.M)
    ok(tuple(listed) == WHAT, "schema --help lists them", *listed)
    for words, why in ((("resul",), "no schema 'resul'; did you mean 'result'?"), (("xyzzy",), "no schema 'xyzzy'; see schema --help"),
                       ((), "schema takes one kind of JSON"), (("result", "probe"), "schema takes one kind of JSON")):
        ended = run(program, "schema", *words)
        ok(ended.returncode == 2 and why in ended.stderr and not ended.stdout, f"schema {' '.join(words)} is refused", ended.said)


def closed():
    opened = [path for path, part in objects(DEFINITIONS) if part.get("additionalProperties") is not False]
    ok(not opened, "no object with keys of its own takes others", *opened)
    used = set(re.findall(r'"#/definitions/(\w+)"', read(SCHEMAS)))
    ok(used | set(WHAT) == set(DEFINITIONS), "every definition exists and is used", *(used | set(WHAT)) ^ set(DEFINITIONS))


def words():
    for name, path, row in LISTS:
        want = dict.fromkeys(re.findall(row, read(os.path.join(ROOT, "rt", path)), re.M))
        ok(DEFINITIONS[name]["enum"] == list(want), f"the words of {name} are those of rt/{path}", *want)


def documented():
    """Keys and docs agree: what a table names in a column of keys is a key, and each key is named somewhere.

    The keys of an op log are those of docs/data.md.
    """
    page = read(os.path.join(ROOT, "docs", "results.md"))
    log = read(os.path.join(ROOT, "docs", "data.md"))
    keys = {key for _, part in objects(DEFINITIONS) for key in part["properties"]}
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", page + log))))
    ok(not keys - named, "docs/results.md or docs/data.md has every key of the schemas", *sorted(keys - named))
    first = [row for table in re.findall(r"^\| key[^\n]*\n\|[-|]+\n((?:\|[^\n]*\n)+)", page, re.M)
             for row in re.findall(r"^\| ([^|]*) \|", table, re.M)]
    in_tables = {word for cell in first for text in re.findall(r"`([^`]+)`", cell) for word in text.split(".")}
    ok(len(in_tables) > 80 and not in_tables - keys, "every key of a table of docs/results.md is in a schema", *sorted(in_tables - keys))


def complaints(what, value):
    judge = Held()
    judge.hold(what, value)
    return judge.wrong


def held_here():
    """A run with all that a result can have is held, and each change of it is noticed."""
    program, paths = simulator(SMALL, "small"), {name: scratch(name) for name in ("result.json", "stats.json", "trace.jsonl")}
    before = held.count
    ended = run(program, "run", "gemm", *GEMM, "--json", paths["result.json"], "--stats", paths["stats.json"], "--trace",
                paths["trace.jsonl"], "--trace-all", "--why", "--report", scratch("page.html"), "--probe-matrix", "pe:hbm", "--profile")
    rows = read(paths["trace.jsonl"]).splitlines()
    ok(ended.returncode == 0 and held.count > before + 100 and not held.wrong,
       "a run with every option is held against the schemas", ended.said, *held.wrong)
    result, stats = json.loads(read(paths["result.json"])), json.loads(read(paths["stats.json"]))
    missing = {"activity", "machine", "why", "probe_matrix", "ledger", "util"} - set(result)
    ok(not missing, "its result has what the options add", *missing)
    changes = (("a new key", lambda value: value.update(xyzzy=1)), ("a new key of a command", lambda value: value["launches"][0]["commands"][-1].update(xyzzy=1)),
               ("an unknown status", lambda value: value["launches"][0]["pes"][-1].update(status="xyzzy")),
               ("a time below 0", lambda value: value["launches"][0]["commands"][1].update(submitted_ps=-1)),
               ("a fraction of a ps", lambda value: value["launches"][0]["commands"][1].update(submitted_ps=0.5)),
               ("no end", lambda value: value.pop("end_ps")), ("no status", lambda value: value.pop("status")),
               ("an unknown reason", lambda value: value["why"]["path"]["segments"][-1].update(reason="xyzzy")),
               ("an unknown engine", lambda value: value["activity"]["engines"].update(xyzzy={})))
    for name, change in changes:
        other = copy.deepcopy(result)
        change(other)
        ok(complaints("result", other), f"a result with {name} is noticed")
    stats["channels"][-1]["channel"] = "xyzzy"
    ok(complaints("stats", stats), "statistics with an unknown channel are noticed")
    row = json.loads(next(row for row in rows if '"reserved"' in row))
    ok(not complaints("trace", row) and complaints("trace", row | {"asked": None}), "a row of a trace without a time is noticed")


suite(printed, closed, words, documented, held_here)
