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
WHAT = ("result", "point", "metrics", "stats", "trace", "oplog", "plan", "probe", "whatif", "compare")
# The definitions of words, and what has them: a list of rt, and its words there.
LISTS = (("fault", "kb/faults.def", r"^FAULT\((\w+)"), ("command", "kb/commands.def", r'^(?:COMMAND|COMPOSITE)\(\w+, "(\w+)"'),
         ("engine", "kb/engines.def", r'^ENGINE\(\w+, "([\w ]+)"'), ("stage", "kb/stages.def", r"^STAGE\((\w+)"),
         ("link", "kb/links.def", r"^(?:OWN_)?LINK\((\w+)"), ("dtype", "kb/dtypes.def", r"^DTYPE\((\w+)"),
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


# Where the keys of each definition are: sections of a page; of their tables the rows whose first cell names a key, or the first
# cells of all rows ("").
RESULT, ACTIVITY, PROBES, PLANS, LOG = "The result: `--json`", "Activity", "Probes", "Plans: `--dump plan`", "The op log"
NUMBERS, TRACE, WHATIF, COMPARE = "Requests and their numbers", "The trace: `--trace`, `--trace-all`", "What if", "Compare"
PLACES = {
    "result": [(RESULT, "")], "result.properties.race_check": [(RESULT, "race_check")], "memory_request": [(RESULT, "memory"), (RESULT, "failure"), NUMBERS], "failure": [(RESULT, "failure")],
    "responses": [NUMBERS], "launch": [(RESULT, "pe_exec_ps"), (RESULT, "pes"), (RESULT, "commands"), (RESULT, "waiting"),
                                       (RESULT, "failure"), (RESULT, "program"), (RESULT, "submitted_ps"), (RESULT, "status"), NUMBERS],
    "pe": [(RESULT, "pes")], "command_row": [(RESULT, "commands")], "verification": [(RESULT, "verify")],
    "wrong_element": [(RESULT, "verify")], "kept_out": [(RESULT, "kept_out")], "wrong_operation": [(RESULT, "first_wrong_op")],
    "race": [(RESULT, "races")], "access": [(RESULT, "races")], "bounds": [(RESULT, "bounds")], "bound": [(RESULT, "bounds")],
    "bottleneck": [(RESULT, "bound_by")], "utilisation": ["Utilisation"], "hbm_slice": ["Utilisation"], "bytes": ["Utilisation"],
    "moved": ["Utilisation"], "injection": [(RESULT, "inject")], "defect": [(RESULT, "inject")], "machine": [ACTIVITY],
    "activity": [ACTIVITY], "columns": [ACTIVITY], "ledger_entry": ["The ledger"], "host": [(RESULT, "host")],
    "why": ["Why: `--why`"], "sums": ["Why: `--why`"], "segment": [("Why: `--why`", "path.segments")],
    "refusal": ["Runs"], "metrics": ["Metrics"], "spread": [("Why: `--why`", "account.spread"), ("Why: `--why`", "account.engines")], "stats": ["Statistics: `--stats`"], "usage": ["Statistics: `--stats`"], "command_event": [TRACE],
    "reservation": [(TRACE, "reserved"), TRACE], "transit": [TRACE], "receipt": [TRACE], "moment": [TRACE], "operation": [LOG],
    "view": [LOG], "copy_params": [LOG], "fill_params": [LOG], "gemm_params": [LOG], "math_params": [LOG], "tile_stage": [LOG],
    "logged_reservation": [LOG], "content": [LOG], "plan_composite": [PLANS], "plan_tile": [PLANS], "probe": [PROBES],
    "probed": [PROBES], "matrix": [PROBES], "probe_message": [PROBES], "hop": [PROBES], "probe_step": [PROBES],
    "probe_spread": [PROBES], "hop_spread": [PROBES],
    "whatif": [WHATIF], "change": [WHATIF], "failed_change": [WHATIF],
    "compare": [COMPARE], "time_errors": [COMPARE], "worst_error": [COMPARE], "divergence": [COMPARE], "fit": [COMPARE], "fitted_constant": [COMPARE],
}


def parts_of(page):
    """The text of each section of a page, without those below it, by its heading."""
    return dict(re.findall(r"^##+ ([^\n]*)\n(.*?)(?=^##|\Z)", page, re.M | re.S))


def words_of(place, sections):
    """What a section, or a row of its tables, names as code."""
    heading, row = place if isinstance(place, tuple) else (place, None)
    text = sections[heading]
    if row == "":
        text = "".join(re.findall(r"^\|[^|\n]*", text, re.M))
    elif row:
        text = "".join(line for line in re.findall(r"^\|[^\n]*", text, re.M) if f"`{row}`" in line.split(" | ")[0])
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", text))))


def documented():
    """Keys and docs agree: what a table names in a column of keys is a key, and each key is named where its object is.

    The keys of an op log are in docs/data.md, and those of a point that is refused in docs/sweeps.md.
    """
    page = read(os.path.join(ROOT, "docs", "results.md"))
    log, sweeps = (read(os.path.join(ROOT, "docs", name)) for name in ("data.md", "sweeps.md"))
    keys = {key for _, part in objects(DEFINITIONS) for key in part["properties"]}
    of_class = re.compile(f"^({'|'.join(DEFINITIONS['link']['enum'])})_")
    sections, missing = parts_of(sweeps) | parts_of(log) | parts_of(page), []
    for path, part in objects(DEFINITIONS):
        places = PLACES.get(path[1:]) or PLACES[path.split(".")[1]]
        named = set().union(*(words_of(place, sections) for place in places))
        missing += [f"{path[1:]}: {key} is not in {places}" for key in part["properties"]
                    if not {key, of_class.sub("LINK_", key)} & named]
    ok(not missing, "the docs have every key of the schemas where they describe its object", *missing)
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
