#!/usr/bin/python3
"""trace_all: --trace-all tells of every kind of component, agrees with the statistics, and names the request of each row.

limit: 120
"""
import collections
import json
import os

from harness import ROOT, normal, ok, read, run, scratch, simulator, small_machine, suite

CASES = ("random_two_sips_mmu", "random_two_sips_memory", "random_hbm_rings", "across_cubes")
# Every kind of node, but those inside a PE whose work is a tile's stage: these are in every trace.
KINDS = {"host", "switch", "pcie_ep", "io_cpu", "m_cpu", "sram", "noc", "port", "hbm_ctrl", "pe_cpu", "pe_scheduler",
         "pe_dma", "pe_fetch_store", "pe_gemm", "pe_math", "pe_tcm", "pe_mmu", "pe_ipcq"}


def rows_of(text):
    return [json.loads(line) for line in text.splitlines()]


def kind(node):
    """sip0.cube1.noc.r0c1 is of kind noc, sip0.cube0.hbm_ctrl.pe1 of kind hbm_ctrl."""
    return next((part for part in node.split(".") if part in KINDS), node)


def sums(rows, start, node):
    """(services, bytes, busy_ps) by resource."""
    found = collections.Counter()
    for row in rows:
        key = row[node], row.get("to", row.get("channel"))
        found[key, "services"] += 1
        found[key, "bytes"] += row["bytes"]
        found[key, "busy_ps"] += row["end" if start == "start" else "t_end"] - row[start]
        if "asked" in row:
            found[key, "wait_ps"] += row["start"] - row["asked"]
    return +found


def expected_sums(stats, *figures):
    """The same of the statistics."""
    found = collections.Counter()
    for part in ("nodes", "links", "channels"):
        for row in stats[part]:
            key = row.get("id", row.get("from")), row.get("to", row.get("channel"))
            found.update({(key, figure): row[figure] for figure in figures})
    return +found


def engine_sums(rows):
    """Services and busy time of the engines that serve one stage of a tile at a time, from the trace's starts and ends."""
    begun, found = {}, collections.Counter()
    for row in rows:
        key = row["node"], row.get("cmd"), row.get("tile"), row.get("stage"), row.get("request")
        if row["ev"] == "engine_start":
            begun[key] = row["t"]
        elif row["ev"] == "engine_complete":
            found[row["node"], "services"] += 1
            found[row["node"], "busy_ps"] += row["t"] - begun.pop(key)
    return +found


def engine_stats(stats):
    found = collections.Counter()
    for row in stats["engines"]:
        if row["engine"] != "pe_scheduler":
            node = f"{row['pe']}.{row['engine'].split()[0]}"
            found.update({(node, figure): row[figure] for figure in ("services", "busy_ps")})
    return +found


def differences(want, got):
    return [f"{key}: want {want[key]}, got {got[key]}" for key in sorted(want | got, key=str) if want[key] != got[key]]


def without_ids(result):
    for entry in result["launches"] + result.get("memory", []):
        entry.pop("request", None)
        entry.pop("responses", None)
    return json.dumps(result)


def names_requests(case, result, rows):
    """Each row's command is one of the launch whose request it names."""
    launches = {launch["request"]: launch for launch in result["launches"] if "request" in launch}
    commands = {(request, command["pe"], command["n"])
                for request, launch in launches.items() for command in launch["commands"]}
    wrong = [row for row in rows if "request" not in row]
    wrong += [row for row in rows if row["ev"] in ("reserved", "control", "translated", "received") and "cmd" in row
              and (row["request"], row["pe"], row["cmd"]) not in commands]
    wrong += [row for row in rows if row["ev"].startswith(("engine", "command", "kernel"))
              and not any(row["node"].startswith(pe["id"] + ".") for pe in launches[row["request"]]["pes"])]
    spans = {(request, command["pe"], command["n"]): (command["submitted_ps"], command["complete_ps"])
             for request, launch in launches.items() for command in launch["commands"] if command["do"] != "send"}
    spans |= {(entry["request"],): (entry["submitted_ps"], entry["done_ps"]) for entry in result.get("memory", [])}
    for row in rows:
        key = (row["request"], row["pe"], row["cmd"]) if "pe" in row else (row["request"],)
        if row["ev"] in ("reserved", "translated") and key in spans:
            start, end = spans[key]
            wrong += [row] if not start <= row["t"] <= (end or row["t"]) else []
    named = {row["request"] for row in rows}
    entries = [*launches.values(), *result.get("memory", [])]
    wrong += [entry["request"] for entry in entries if entry["request"] not in named]
    wrong += [entry for entry in entries for answer in entry["responses"]
              if answer["correlation_id"] != entry["request"] or answer["src_pe"] != -1]
    ok(not wrong, f"{case}: each row names its request and command, and each request has rows", *wrong[:5])
    cubes = {request: sorted({pe["id"].rsplit(".", 1)[0] for pe in launch["pes"]}) for request, launch in launches.items()}
    answers = {request: sorted(answer["src_cube"] for answer in launch["responses"])
               for request, launch in launches.items()}
    ok(cubes == answers, f"{case}: a launch has an answer of each of its cubes", cubes, answers)
    moved = {(request, command["pe"], command["n"]): [0, 0]
             for request, launch in launches.items() for command in launch["commands"]
             if command["do"] in ("load", "store") and command["complete_ps"]}
    for row in rows:
        key = row.get("request"), row.get("pe"), row.get("cmd")
        if row["ev"] == "reserved" and "channel" in row and key in moved:
            moved[key][row["node"] == row["pe"] + ".pe_tcm"] += row["bytes"]
    wrong = [f"{key}: {far} bytes of a memory, {near} of the own TCM"
             for key, (far, near) in moved.items() if near == 0 or far not in (0, near)]
    ok(not wrong, f"{case}: what a load or store reserves of a memory it reserves of its TCM ({len(moved)})", *wrong[:5])
    hops = collections.Counter()
    for row in rows:
        if row["ev"] == "reserved" and "channel" not in row:
            hops[row["request"], row.get("pe"), row.get("cmd")] += 1 if "to" in row else -1
    ok(not any(hops.values()),
       f"{case}: data arrive at as many nodes as they take links, for each command and request", hops)
    good = [launch for launch in launches.values() if launch["status"] == "ok"]
    ok(all(answer["success"] is True for launch in good for answer in launch["responses"]),
       f"{case}: the answers of a launch that is ok say so", good)


def case_of(case):
    folder = os.path.join(ROOT, "tests", "conformance", case)
    program = simulator(os.path.join(folder, "topo.yaml"))
    paths = [scratch(f"{case}.{end}") for end in ("json", "jsonl", "stats")]
    ended = run(program, "replay", os.path.join(folder, "stream.yaml"), "--trace-all", "--json", paths[0], "--trace",
                paths[1], "--stats", paths[2])
    result, rows, stats = json.loads(read(paths[0])), rows_of(read(paths[1])), json.loads(read(paths[2]))
    names_requests(case, result, rows)
    ok(normal(without_ids(result)) == normal(read(os.path.join(folder, "expected.json"))),
       f"{case}: the result has nothing else that is new", ended.said)
    plain = [row for row in rows if "tile" in row]
    for row in plain:
        row.pop("request")
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in plain)
    ok(text == read(os.path.join(folder, "trace.jsonl")), f"{case}: the rows of tiles and commands are those of --trace")
    wrong = differences(expected_sums(stats, "services", "bytes", "busy_ps", "wait_ps"),
                        sums([row for row in rows if row["ev"] == "reserved"], "start", "node"))
    ok(not wrong, f"{case}: reservations add up to the statistics of nodes, links and channels", *wrong[:5])
    wrong = differences(engine_stats(stats), engine_sums(rows))
    ok(not wrong, f"{case}: services add up to the statistics of engines", *wrong[:5])
    ok([row["t"] for row in rows] == sorted(row["t"] for row in rows), f"{case}: rows are in the order of time")
    return {kind(node) for row in rows for node in (row["node"], row.get("to", row["node"]))}


def cases():
    kinds = set().union(*map(case_of, CASES))
    ok(kinds == KINDS, "every kind of component has rows", sorted(KINDS - kinds), sorted(kinds - KINDS))


def op_log():
    program = small_machine("small", [os.path.join(ROOT, "tests", "host", "many.c")])
    log, stats_path, answer = scratch("log"), scratch("log.stats"), scratch("log.json")
    ended = run(program, "run", "many", "rounds=3", "--oplog", log, "--trace-all", "--stats", stats_path, "--json", answer)
    ok(ended.returncode == 0, "a run with --oplog and --trace-all ends well", ended.said)
    rows = rows_of(run(program, "oplog", log).stdout)
    reservations = [row for row in rows if "bytes" in row]
    stats = json.loads(read(stats_path))
    wrong = differences(expected_sums(stats, "services", "bytes", "busy_ps"), sums(reservations, "t_start", "component"))
    ok(not wrong, "the reservations of the op log add up to the statistics", *wrong[:5])
    ops = {row["op"]: row for row in rows if "op" in row}
    launches = {launch["request"] for launch in json.loads(read(answer))["launches"]}
    ok({row["request"] for row in ops.values() if row["pe"] != "host"} == launches,
       "operations of the op log name the requests of their launches", launches)
    ok(all(row["ops"] and all(ops[op]["pe"] != "host" for op in row["ops"]) for row in reservations if "ops" in row)
       and any("request" in row for row in reservations),
       "a reservation of the op log names its operations, or the host's request")
    ended = run(program, "data", log)
    ok(ended.returncode == 0, "the data pass of such an op log is the same", ended.said)
    run(program, "run", "quiet", "keep=2", "--oplog", log, "--trace-all")
    rows = rows_of(run(program, "oplog", log).stdout)
    ok(all(row["ops"] for row in rows if "ops" in row), "what is reserved for commands that are kept out is not in the log")
    ended = run(program, "run", "many", "--trace-all")
    ok(ended.returncode == 2 and "--trace-all says what is in the file of --trace or --oplog" in ended.stderr,
       "--trace-all without a file is refused", ended.said)


suite(cases, op_log)
