#!/usr/bin/python3
"""timeline: --timeline, read by protoc with Perfetto's field numbers, and --waves, read by GTKWave's tools, show what the
trace and the JSON of the same run say.

limit: 120
"""
import collections
import decimal
import gzip
import json
import os
import re
import shutil

from harness import GEMM, ROOT, SAN, SMALL, ok, read, read_bytes, remove, run, scratch, simulator, skip, suite, without_host, write

# The sanitizers see the rings, and the long events of a launch on 128 PEs; the other cases go the same ways.
CASES = ("random_hbm_rings", "launch_barrier", "multicast_cubes_credit", *(("random_two_sips_memory", "random_two_launches") if not SAN else ()))
PROTO = os.path.join(ROOT, "tests", "perfetto.proto")
LINE = re.compile(r'\s*(?:(\w+) \{|(\})|(\w+): (?:"((?:[^"\\]|\\.)*)"|(\S+)))$')
STAGES = dict(re.findall(r"^STAGE\((\w+), (\w+),", read(os.path.join(ROOT, "rt", "kb", "stages.def")), re.M))
ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", '"': b'"', "'": b"'", "\\": b"\\"}


# ---- reading

def text_of(quoted):
    """A string as protoc prints it; it must be UTF-8."""
    parts = re.findall(r"\\([0-7]{3}|.)|([^\\]+)", quoted)
    return b"".join((bytes([int(code, 8)]) if len(code) == 3 else ESCAPES[code]) if code else plain.encode()
                    for code, plain in parts).decode()


def messages(text):
    """protoc's text of a message, as a dict of lists. A field that perfetto.proto lacks has a number for a name."""
    stack = [collections.defaultdict(list)]
    for line in text.splitlines():
        opens, closes, name, quoted, value = LINE.match(line).groups()
        assert not (opens or name or "").isdigit(), line
        if opens:
            stack.append(collections.defaultdict(list))
            stack[-2][opens].append(stack[-1])
        elif closes:
            stack.pop()
        else:
            stack[-1][name].append(value if quoted is None else text_of(quoted))
    return stack[0]


def first(message, name, default=None):
    return message[name][0] if name in message else default


class Slice:
    """A slice or an instant: its track, its name, when it began and ended, its arguments, flows and source."""

    def __init__(self, track, event, t_ps, depth, order):
        self.track, self.begin, self.end, self.depth, self.order = track, t_ps, None, depth, order
        self.uuid = first(event, "track_uuid")
        self.flows = [int(flow, 16) for flow in event["flow_ids"]]
        self.last_flows = [int(flow, 16) for flow in event["terminating_flow_ids"]]


class Timeline:
    """A trace: its tracks by their path, slices, instants, and the values of counters."""

    def __init__(self, path):
        data = read_bytes(path)
        self.data = gzip.decompress(data) if path.endswith(".gz") else data
        plain = write(path + ".plain", self.data)
        with open(plain, "rb") as file:
            decoded = run("protoc", "--decode=perfetto.Trace", f"--proto_path={os.path.dirname(PROTO)}", PROTO, stdin=file)
        assert decoded.returncode == 0, decoded.said
        self.packets = messages(decoded.stdout)["packet"]
        self.strings = collections.defaultdict(dict)
        self.tracks, self.counters, self.slices, self.instants, self.wrong = {}, {}, [], [], []
        self.values = collections.defaultdict(list)
        self.stacks, events = collections.defaultdict(list), []
        for order, packet in enumerate(self.packets):
            self.take(packet, order, events)
        for _, order, t_ps, event in sorted(events, key=lambda entry: entry[:2]):
            self.event(event, t_ps, order)
        self.wrong += [f"{self.tracks[track]}: a slice does not end" for track, stack in self.stacks.items() if stack]

    def take(self, packet, order, events):
        for data in packet["interned_data"]:
            for kind, entries in data.items():
                for entry in entries:
                    value = first(entry, "str", "") if "file_name" not in entry else (
                        first(entry, "file_name"), int(first(entry, "line_number", 0)))
                    self.strings[kind][first(entry, "iid")] = value
        for track in packet["track_descriptor"]:
            above = self.tracks.get(first(track, "parent_uuid"), "")
            uuid = first(track, "uuid")
            self.tracks[uuid] = (above + "/" if above else "") + first(track, "name")
            if "counter" in track:
                self.counters[uuid] = self.tracks[uuid]
        for event in packet["track_event"]:
            t_ps = int(first(packet, "timestamp"))
            self.name(event)
            events.append((t_ps, order, t_ps, event))

    def name(self, event):
        """Puts strings in the place of numbers, which are those of packets before."""
        if "name_iid" in event:
            event["name"] = self.strings["event_names"][first(event, "name_iid")]
        event["source"] = self.strings["source_locations"].get(first(event, "source_location_iid"))
        event["args"] = {
            self.strings["debug_annotation_names"][first(one, "name_iid")]:
            int(first(one, "uint_value")) if "uint_value" in one
            else self.strings["debug_annotation_string_values"][first(one, "string_value_iid")]
            for one in event["debug_annotations"]}

    def event(self, event, t_ps, order):
        uuid, kind = first(event, "track_uuid"), first(event, "type")
        track, stack = self.tracks[uuid], self.stacks[uuid]
        if kind == "TYPE_COUNTER":
            self.values[self.counters[uuid]].append((t_ps, int(first(event, "counter_value"))))
        elif kind == "TYPE_SLICE_END":
            if stack:
                stack.pop().end = t_ps
            else:
                self.wrong.append(f"{track}: {t_ps} ps ends no slice")
        else:
            made = Slice(track, event, t_ps, len(stack), order)
            made.name, made.args, made.source = event["name"], event["args"], event["source"]
            made.above = stack[-1] if stack else None
            if kind == "TYPE_INSTANT":
                made.end = t_ps
                self.instants.append(made)
            else:
                stack.append(made)
                self.slices.append(made)

    def on(self, pattern):
        """Slices on tracks whose path below the root matches a pattern."""
        return [one for one in self.slices if re.fullmatch(pattern, one.track.partition("/")[2])]


def pe_of(track):
    """The PE of a track below it: root/sip0/cube0/pe1/kernel."""
    return ".".join(track.split("/")[1:4])


# ---- what a trace must be

def is_whole(name, timeline, part=False):
    ok(not timeline.wrong, f"{name}: slices nest, and each one ends", *timeline.wrong[:5])
    deep = [one.track for one in timeline.slices if one.depth and not re.search("/kernel$", one.track)]
    ok(not deep, f"{name}: only slices of kernels lie in others", *deep[:5])
    flows = collections.defaultdict(list)
    for one in timeline.slices + timeline.instants:
        for flow in one.flows + one.last_flows:
            flows[flow].append((one.begin, one.order, flow in one.last_flows, one))
    wrong = []
    for flow, ends in flows.items():
        ends.sort(key=lambda end: end[:2])
        if (len(ends) < 2 and not part) or any(last for _, _, last, _ in ends[:-1]):
            wrong.append(f"{flow:x}: " + ", ".join(f"{one.name} at {one.begin}" for *_, one in ends))
    ok(flows and not wrong, f"{name}: {'' if part else 'every arrow has two ends, and '}none goes on after its last one",
       *wrong[:5])
    if not part:
        wrong = [f"{track}: {values[-1]}" for track, values in timeline.values.items() if values[-1][1]]
        wrong += [f"{track}: {value}" for track, values in timeline.values.items() for value in values if value[1] < 0]
        ok(not wrong, f"{name}: counters are never below zero, and end at zero", *wrong[:5])
    return [[one for *_, one in ends] for ends in flows.values()]


def differences(want, got):
    want, got = collections.Counter(want), collections.Counter(got)
    return [f"missing {row}" for row in (want - got)][:3] + [f"unexpected {row}" for row in (got - want)][:3]


def node_of(track):
    """The node and the channel of a memory's track."""
    path = track.split("/")[1:]
    if path[2] == "memories":
        node, _, channel = path[3].partition(" ")
        return ".".join([*path[:2], node]), channel.removeprefix("pc")
    node, _, channel = path[3].partition(" ")
    return ".".join([*path[:3], node]), channel


def link_of(track):
    *path, name = track.split("/")[1:]
    where, (start, _, end) = "".join(part + "." for part in path[:-1]), name.partition(" -> ")
    inside = not re.match(r"sip\d|host$|switch$", end) and where
    return (where if not re.match(r"sip\d", start) else "") + start, where + end if inside else end


def who(row):
    return (row["pe"], row["cmd"]) if "pe" in row else ("host", row["request"])


def by(one):
    return one.name, one.args.get("command", one.args.get("request"))


def says_the_same(name, timeline, result, rows, end_ps=None):
    """All times of the trace are those of the JSON and of --trace-all; what does not end does so at end_ps."""
    begun, want = {}, []
    for row in rows:
        key = row["node"], row.get("cmd"), row.get("tile"), row.get("stage"), row.get("request")
        if row["ev"] == "engine_start":
            begun[key] = row["t"]
        elif row["ev"] == "engine_complete":
            want.append((row["node"], row["cmd"], row["tile"], begun.pop(key), row["t"]))
    want += [(key[0], *key[1:3], start, end_ps) for key, start in begun.items()]
    services = [one for one in timeline.slices if one.name in STAGES]
    got = [(f"{pe_of(one.track)}.{STAGES[one.name]}", one.args["command"], one.args.get("tile", 0), one.begin, one.end)
           for one in services]
    wrong = differences(want, got)
    ok(want and not wrong, f"{name}: services are those of the trace, to the ps ({len(want)})", *wrong)
    reserved = [row for row in rows if row["ev"] == "reserved"]
    wrong = differences(
        [(row["node"], row["to"], *who(row), row["bytes"], row["start"], row["end"], row["start"] - row["asked"])
         for row in reserved if "to" in row],
        [(*link_of(one.track), *by(one), one.args["bytes"], one.begin, one.end, one.args.get("waited_ps", 0))
         for one in timeline.on(r".*links/.*")])
    ok(not wrong, f"{name}: messages on links are those of the trace", *wrong)
    wrong = differences(
        [(row["node"], row["channel"], *who(row), row["bytes"], row["start"], row["end"])
         for row in reserved if "channel" in row],
        [(*node_of(one.track), *by(one), one.args["bytes"], one.begin, one.end)
         for one in timeline.on(r".*/(memories/.*|pe_tcm .*)")])
    ok(not wrong, f"{name}: channels of memories serve what the trace says", *wrong)
    launches = [launch for launch in result["launches"] if launch["status"] != "skipped"]
    wrong = differences(
        [(command["pe"], command["n"], command["submitted_ps"], command["complete_ps"] or end_ps)
         for launch in launches for command in launch["commands"]],
        [(pe_of(one.track), one.args["command"], one.begin, one.end) for one in timeline.on(r".*/commands")])
    ok(not wrong, f"{name}: commands begin and end as in the JSON", *wrong)
    wrong = differences([(pe["id"], pe["start_ps"], pe["end_ps"] or end_ps) for launch in launches for pe in launch["pes"]],
                        [(pe_of(one.track), one.begin, one.end) for one in timeline.on(r".*/kernel") if not one.depth])
    ok(not wrong, f"{name}: kernels begin and end as in the JSON", *wrong)
    wrong = differences(
        [(one.get("request"), one["submitted_ps"], one["done_ps"] or end_ps) for one in launches + result.get("memory", [])],
        [(one.args["request"], one.begin, one.end) for one in timeline.on("host")])
    ok(not wrong, f"{name}: requests of the host begin and end as in the JSON", *wrong)


LINK_CLASSES = (("noc", r"noc\.r\d+c\d+ -> noc\.r\d+c\d+"), ("ucie", r"port\.[nsew] -> .*cube\d+\.port\.[nsew]"),
                ("attach", r"(noc\..* -> .*|.* -> noc\..*)"))


def in_flight(name, timeline, part=None):
    """Counters of bytes in flight have the means over columns of time, rounded up, of what is on the links of a class."""
    begin_ps, end_ps = part or (0, None)
    on_links, wrong, seen = collections.defaultdict(list), [], set()
    for one in timeline.on(r".*links/.*"):
        link = one.track.rpartition("/")[2]
        on_links[next((kind for kind, pattern in LINK_CLASSES if re.fullmatch(pattern, link)), None)].append(one)
    for track, values in timeline.values.items():
        named = re.search(r"/bytes in flight: (\w+) \(means of ([\d.]+) ([pnum]?s)\)$", track)
        kind = named and named[1]
        if not named or kind not in on_links:
            wrong += [f"not a class: {track}"] * (" in flight" in track and not named)
            continue
        seen.add(kind)
        width = int(decimal.Decimal(named[2]) .scaleb(3 * ("ps", "ns", "us", "ms", "s").index(named[3])))
        areas, got, changes = collections.Counter(), 0, dict(values)
        for one in on_links[kind]:
            for column in range(max(0, one.begin - begin_ps) // width, max(0, one.end - begin_ps) // width + 1):
                low = begin_ps + column * width
                areas[column] += one.args["bytes"] * max(0, min(one.end, low + width) - max(one.begin, low))
        wrong += [f"{track}: {t_ps} ps" for t_ps in changes if t_ps < begin_ps or (t_ps - begin_ps) % width]
        last = (values[-1][0] - begin_ps) // width + 2 if end_ps is None else (end_ps - begin_ps) // width
        for column in range(last):
            got = changes.get(begin_ps + column * width, got)
            if got != -(-areas[column] // width):
                wrong.append(f"{track}: {got} from {begin_ps + column * width} ps on, not {areas[column] / width}")
    wrong += [f"no counter of {kind}" for kind in on_links.keys() - seen - {None} if any(one.begin < one.end for one in on_links[kind])]
    ok(not wrong, f"{name}: counters of links are the means of their bytes in flight ({', '.join(sorted(seen))})", *wrong[:5])


def traced(program, *words, name):
    """A run with all that the timeline is compared with."""
    paths = {end: scratch(f"{name}.{end}") for end in ("json", "jsonl", "pftrace", "vcd")}
    ended = run(program, *words, "--json", paths["json"], "--trace", paths["jsonl"], "--trace-all", "--timeline",
                paths["pftrace"], "--waves", paths["vcd"])
    ok(ended.returncode == 0, f"{name}: a run with --timeline and --waves ends well", ended.said)
    rows = [json.loads(line) for line in read(paths["jsonl"]).splitlines()]
    return Timeline(paths["pftrace"]), json.loads(read(paths["json"])), rows, paths


# ---- waves

def wave_changes(text):
    """The changes of each signal of a VCD file, by its full name: [(time, value)]."""
    scope, names, t_ps, changes = [], {}, None, collections.defaultdict(list)
    head, _, body = text.partition("$enddefinitions $end")
    for line in head.splitlines():
        words = line.split()
        if words[:1] == ["$scope"]:
            scope.append(words[2])
        elif words[:1] == ["$upscope"]:
            scope.pop()
        elif words[:1] == ["$var"]:
            names[words[3]] = ".".join([*scope[1:], words[4]])
    for line in body.splitlines():
        if line.startswith("#"):
            t_ps = int(line[1:])
        elif line.startswith("b"):
            value, code = line[1:].split()
            changes[names[code]].append((t_ps, int(value, 2)))
        elif line and line[0] in "01":
            changes[names[line[1:]]].append((t_ps, int(line[0])))
    return {name: [change for i, change in enumerate(rows) if i == 0 or rows[i - 1][1] != change[1]]
            for name, rows in changes.items()}


def levels(spans):
    """How many of the spans are there, from each time on."""
    steps = collections.Counter()
    for start, end in spans:
        steps[start] += 1
        steps[end] -= 1
    level, found = 0, [(0, 0)]
    for t_ps in sorted(steps):
        level += steps[t_ps]
        if level != found[-1][1]:
            found = [(t_ps, level)] if t_ps == 0 else [*found, (t_ps, level)]
    return found


def waves_agree(name, timeline, rows, path):
    text = read(path)
    waves = wave_changes(text)
    ok("$timescale 1 ps $end" in text and waves, f"{name}: waves have a unit of 1 ps")
    spans = collections.defaultdict(list)
    for one in timeline.slices:
        if one.name in STAGES:
            track = one.track.rpartition("/")[2]
            track = re.sub(r"\W", "_", STAGES[one.name] if "," in track else track)
            spans[f"{pe_of(one.track)}.{track}_busy"].append((one.begin, one.end))
    for one in timeline.on(r".*links/.*"):
        if one.begin < one.end:
            *where, link = one.track.split("/")[1:]
            spans[".".join([*where, re.sub(r"\W", "_", link.replace(" -> ", "_to_"))])].append((one.begin, one.end))
    wrong = [f"{signal}: want {levels(rows)[:6]}, got {waves.get(signal, [])[:6]}" for signal, rows in spans.items()
             if levels(rows) != waves.get(signal)]
    busy = [signal for signal in waves if re.search("_busy$|links", signal)]
    ok(len(busy) == len(spans) and not wrong, f"{name}: engines and links are busy as on the timeline ({len(spans)})",
       *wrong[:3])
    depths = {track.partition("/")[2]: values for track, values in timeline.values.items() if track.endswith(" queue")}
    wrong = [track for track, values in depths.items()
             if [(0, 0), *values] != waves.get(track.replace("/", ".").replace(" ", "_"))]
    ok(not wrong, f"{name}: queues are as long as on the timeline ({len(depths)})", *wrong[:3])
    credits = [values for signal, values in waves.items() if "credits_to" in signal]
    sends = [one for one in timeline.slices if one.name == "COMM"]
    ok(bool(credits) == bool(sends) and all(values[0][1] == values[-1][1] == max(value for _, value in values)
                                            and min(value for _, value in values) >= 0 for values in credits),
       f"{name}: credits are lent and given back", *credits[:3])
    back = sorted({row["end"] for row in rows if row["ev"] == "control" and "pe" in row
                   and row["node"].endswith("pe_dma") and row["to"] == row["pe"] + ".pe_dma"})
    grows = sorted({t_ps for values in credits for (_, before), (t_ps, value) in zip(values, values[1:]) if value > before})
    ok(set(grows) <= set(back) and bool(grows) == bool(back), f"{name}: a credit is back when its message is ({len(back)})",
       grows[:5], back[:5])
    return waves


def gtkwave(name, path, waves):
    if not shutil.which("vcd2fst"):
        skip(f"{name}: GTKWave's tools read the waves", "gtkwave is not installed")
        return
    there = run("vcd2fst", path, path + ".fst")
    back = run("fst2vcd", path + ".fst")
    ok(there.returncode == 0 and wave_changes(back.stdout) == waves, f"{name}: GTKWave's tools read the waves",
       there.said, back.stderr)


# ---- suites

def streams():
    for case in CASES:
        where = os.path.join(ROOT, "tests", "conformance", case)
        program = simulator(os.path.join(where, "topo.yaml"))
        timeline, result, rows, paths = traced(program, "replay", os.path.join(where, "stream.yaml"), name=case)
        flows = is_whole(case, timeline)
        says_the_same(case, timeline, result, rows)
        in_flight(case, timeline)
        waves = waves_agree(case, timeline, rows, paths["vcd"])
        gtkwave(case, paths["vcd"], waves)
        tracks = collections.defaultdict(set)
        for one in timeline.on(r".*/kernel"):
            tracks[one.track].add(one.uuid)
        ok(all(len(uuids) == 1 for uuids in tracks.values()), f"{case}: the kernels of a PE are on one track", tracks)
        kinds = collections.Counter(flow[0].name.split()[0] for flow in flows)
        ok(kinds["launch"] and kinds["submits"], f"{case}: arrows begin at launches and at commands", kinds)
        wrong = [[one.name for one in flow] for flow in flows if flow[0].name == "submits"
                 and (flow[1].name != "takes command" or flow[-1].name != "complete")]
        wrong += [[one.name for one in flow] for flow in flows if flow[0].name.startswith("launch")
                  and (len(flow) != 3 or flow[2].name != "answer" or "/kernel" not in flow[1].track)]
        wrong += [[one.name for one in flow] for flow in flows if flow[0].name == "COMM"
                  and (len(flow) != 3 or "/rings/" not in flow[1].track or flow[2].name != "complete")]
        ok(not wrong, f"{case}: arrows lead by way of scheduler, kernel or ring to their ends", *wrong[:5])
        received = {(row["from"], row["sent"], row["pe"], row["cmd"]) for row in rows if row["ev"] == "received"}
        got = {(one.name, one.args["command"], pe_of(one.track), one.args["receive"]) for one in timeline.on(r".*/rings/.*")}
        ok(received == got, f"{case}: a ring holds each message that is received ({len(got)})", *(received ^ got))


def ended_runs():
    for case in ("random_failure_then_deadlock", "timeout", "deadlock", "failed_pe_stops"):
        where, path = os.path.join(ROOT, "tests", "conformance", case), scratch(case + ".pftrace")
        ended = run(simulator(os.path.join(where, "topo.yaml")), "replay", os.path.join(where, "stream.yaml"),
                    "--timeline", path, "--waves", scratch(case + ".vcd"))
        timeline = Timeline(path)
        is_whole(case, timeline, part=True)
        status = {one.args["status"] for one in timeline.on("host") if one.name.startswith("launch")}
        ok(ended.returncode == 1 and status & {"failed", "timeout", "deadlock"},
           f"{case}: a run that fails has a whole timeline, which says how launches ended", ended.said, status)


def models():
    """Models of users: those of memories may serve several at a time, those of routers let heads wait for links."""
    where = os.path.join(ROOT, "tests", "conformance", "random_hbm_rings")
    own = [os.path.join(ROOT, "tests", "impl", f"same_{name}.c") for name in ("hbm", "router")]
    program = simulator(os.path.join(where, "topo.yaml"), "modelled", impls=own,
                        settings=("cube.hbm_ctrl.impl=same_hbm", "cube.noc.router.impl=same_router"))
    timeline, result, rows, paths = traced(program, "replay", os.path.join(where, "stream.yaml"), name="models")
    is_whole("models", timeline)
    for row in rows:
        if row.get("channel") == "model":
            row["channel"] = ""
    says_the_same("models", timeline, result, rows)
    waves_agree("models", timeline, rows, paths["vcd"])


def bench():
    program = simulator(SMALL)
    timeline, result, rows, _ = traced(program, "run", "gemm", *GEMM, name="gemm")
    flows = is_whole("gemm", timeline)
    says_the_same("gemm", timeline, result, rows)
    in_flight("gemm", timeline)
    flop = sum(one.args.get("flop", 0) for one in timeline.slices)
    ok(flop == 2 * 128 * 64 * 96, "gemm: FLOP of the services are those of the product", flop)
    tiles = [flow for flow in flows if flow[0].name == "feeds tile"]
    ok(tiles and all(flow[1].name in STAGES and flow[-1].name in (*STAGES, "complete") for flow in tiles),
       "gemm: an arrow leads from each tile's feeding through its stages", *(
           [one.name for one in flow] for flow in tiles[:3]))
    last = [one for one in timeline.instants if one.name == "complete"]
    ok(last and all(len(one.last_flows) == 2 for one in last),
       "gemm: the arrows of the first and of the last tile end at the completion", *(one.last_flows for one in last))
    calls = [one for one in timeline.on(r".*/kernel") if one.depth == 1]
    wrong = [one.name for one in calls
             if one.name not in read(os.path.join(ROOT, one.source[0])).splitlines()[one.source[1] - 1]]
    ok(calls and not wrong, f"gemm: calls name their lines in the kernel ({len(calls)})", *wrong)
    parts = [one for one in timeline.on(r".*/kernel") if one.depth > 1]
    blocked = [one for one in parts if one.name.startswith("waits for ") and one.end > one.begin]
    ok(blocked and all(one.above.begin <= one.begin and one.end <= one.above.end for one in parts)
       and {one.name.split()[0] for one in parts} == {"submits", "waits"},
       "gemm: within a call the kernel submits and waits for commands", *(one.name for one in parts[:5]))
    root = next(iter(timeline.tracks.values()))
    ok(root == "gemm on small (1 ns here is 1 ps of simulated time)", "the trace names its run and its unit of time", root)
    ok(any(value for track, values in timeline.values.items() if track.endswith("/TCM in use") for _, value in values)
       and any("/bytes in flight: attach" in track for track in timeline.values), "counters show TCM and links in use",
       *timeline.values)
    plain, zipped = scratch("gemm.pftrace"), scratch("gemm.pftrace.gz")
    json_path = scratch("zipped.json")
    ended = run(program, "run", "gemm", *GEMM, "--timeline", zipped, "--json", json_path)
    ok(ended.returncode == 0 and gzip.decompress(read_bytes(zipped)) == read_bytes(plain),
       "FILE.gz is the same, compressed, in every run", ended.said)
    run(program, "run", "gemm", *GEMM, "--json", scratch("without.json"))
    ok(without_host(read(json_path)) == without_host(read(scratch("without.json"))), "--timeline does not change results")
    window(program, timeline)


def collective():
    """Kernels of many short commands, which allocate buffers, send and receive."""
    program = simulator(SMALL)
    timeline, result, rows, _ = traced(program, "run", "all_reduce", "size=2048", "chunk=1024", name="all_reduce")
    is_whole("all_reduce", timeline)
    says_the_same("all_reduce", timeline, result, rows)
    in_flight("all_reduce", timeline)
    used = [max(value for _, value in values) for track, values in timeline.values.items() if track.endswith("/TCM in use")]
    ok(len(used) == 4 and min(used) >= 1024, "all_reduce: a counter shows the buffers of each kernel", used)
    timeline, result, rows, _ = traced(program, "run", "all_reduce", "size=8192", "chunk=64", "algorithm=ring", name="messages")
    says_the_same("many messages of equal length on the same ways", timeline, result, rows)


FREES = """
#include <kb/host.h>
#include <kb/tl.h>

struct frees_args {
    uint64_t count;
};

KB_KERNEL(frees, struct frees_args)
{
    for (uint64_t i = 0; i < arg->count; i++) {
        struct tl_shard buffer = tl_alloc(tl, KB_f16, 512);
        tl_delay(tl, 1000);
        tl_free(tl, buffer);
        tl_delay(tl, 1000);
    }
}

KB_BENCH(frees, "each PE allocates a buffer and frees it again", KB_INT(count, 3, 1, 10, "times"))
{
    kb_wait(kb_launch(frees, kb_pes("*"), &(struct frees_args){ kb_int(count) }));
}
"""


def frees():
    program, path = simulator(SMALL, "frees", kernels=(write(scratch("frees.c"), FREES),)), scratch("frees.pftrace")
    run(program, "run", "frees", "--timeline", path)
    used = [[value for _, value in values] for track, values in Timeline(path).values.items() if track.endswith("/TCM in use")]
    ok(len(used) == 4 and all([value for value in values if value] == 3 * [1024] and values.count(0) >= 3 for values in used),
       "a counter shows that a kernel frees its buffer each time", *used)


def critical_path():
    program, path, json_path = simulator(SMALL), scratch("why.pftrace"), scratch("why.json")
    run(program, "run", "gemm", *GEMM, "--why", "--timeline", path, "--json", json_path)
    timeline, why = Timeline(path), json.loads(read(json_path))["why"]["path"]
    slices = sorted(timeline.on("critical path"), key=lambda one: one.begin)
    wrong = [f"{before.end} ps, then {one.begin} ps" for before, one in zip(slices, slices[1:]) if before.end != one.begin]
    ok(len(slices) == why["count"] and slices[0].begin == 0 and slices[-1].end == why["end_ps"] and not wrong,
       "the critical path is a track without a gap", len(slices), why["count"], *wrong[:3])
    sums = collections.Counter()
    for one in slices:
        sums[one.name] += one.end - one.begin
    ok(sums == {row["reason"]: row["ps"] for row in why["by_reason"]}, "its slices are named after their reasons", sums)
    wrong = [one.args for one in slices if not re.match(r"\w+", one.args["at"]) or one.name == "engine" and not re.search(r"\.[ch]:\d+$", one.args.get("source", ""))]
    ok(not wrong, "they say where, and for which line", *wrong[:3])


def small_stacks():
    """Kernels with the smallest stacks cause the events of a trace that is larger than the buffer of its file."""
    program = simulator(SMALL, "small_stacks", settings=("cube.pe_template.components.pe_cpu.attrs.stack_kb=32 KiB",))
    path = scratch("small_stacks.pftrace.gz")
    ended = run(program, "run", "all_reduce", "size=65536", "chunk=512", "algorithm=ring", "--data", "off", "--timeline", path)
    ok(ended.returncode == 0 and len(gzip.decompress(read_bytes(path))) > 2 << 20, "a timeline needs no more of the stack of a kernel than there is",
       ended.said)


def shown(timeline):
    """All slices: (track, name, begin, end)."""
    return collections.Counter((one.track, one.name, one.begin, one.end) for one in timeline.slices)


def cut(program, whole):
    """A run that ends while a message is on a link, a kernel waits, and a service is under way."""
    longest = max(whole.on(r".*links/.*"), key=lambda one: (one.end - one.begin, one.begin))
    limit_ps = (longest.begin + longest.end) // 2
    path, trace, answer = scratch("cut.pftrace"), scratch("cut.jsonl"), scratch("cut.json")
    ended = run(program, "run", "gemm", *GEMM, "--timeline", path, "--sim-limit", f"{limit_ps} ps", "--json", answer,
                "--trace", trace, "--trace-all")
    part, result = Timeline(path), json.loads(read(answer))
    is_whole("cut", part, part=True)
    end_ps = result["end_ps"]
    says_the_same("cut", part, result, [json.loads(line) for line in read(trace).splitlines()], end_ps)
    waits = [one for one in part.on(r".*/kernel") if one.name.startswith("waits") and one.end == end_ps]
    ok(ended.returncode == 1 and waits, "cut: a kernel waits up to the end", ended.said)
    wrong = [track for track, values in part.values.items() if "in flight" in track and values[-1][1]]
    ok(not wrong and any(values[-1][0] > end_ps for values in part.values.values()),
       "cut: messages that are on links then leave them later", *wrong)
    in_flight("cut", part)
    return part


def window(program, whole):
    path = scratch("window.pftrace")
    middle = sorted(one.begin for one in whole.slices)[len(whole.slices) // 2]
    low, high = middle, middle + 50000
    ended = run(program, "run", "gemm", *GEMM, "--timeline", path, "--timeline-from", f"{low} ps", "--timeline-to", f"{high} ps")
    part = Timeline(path)
    is_whole("window", part, part=True)
    want = collections.Counter({key: n for key, n in shown(whole).items() if key[2] <= high and key[3] >= low})
    ok(want and shown(part) == want, "--timeline-from and --timeline-to show what overlaps them, whole",
       *differences(want.elements(), shown(part).elements()))
    left = [one for one in part.instants if one.name == "left out"]
    outside = left[0].args["slices_outside"] if left else 0
    ok(outside and f"left out: {outside} slices before {exact(low)} or after {exact(high)}\n" in ended.stderr,
       "what a window leaves out is said on standard error and in the trace", ended.stderr)
    for option, text, where in (("--timeline-from", "100 s", "before 100 s"), ("--timeline-to", "1 ns", "after 1 ns")):
        ended = run(program, "run", "gemm", *GEMM, "--timeline", path, option, text)
        ok(re.search(rf"left out: \d+ slices {where}\n", ended.stderr), f"{option} {text}: slices {where} are said to be left out", ended.stderr)
    in_flight("window", part, (low, high))
    begun = {track: [value for t_ps, value in values if t_ps <= low][-1:] for track, values in whole.values.items()
             if "in flight" not in track}
    ok(all(values[0][0] >= low and values[-1][0] <= high for values in part.values.values())
       and all(part.values[track][0] == (low, value[0]) for track, value in begun.items() if value and value[0]),
       "counters begin with their values at the start of the window")
    ended = run(program, "run", "gemm", *GEMM, "--timeline", path, "--timeline-pes", "sip0.cube0.pe1")
    part = Timeline(path)
    is_whole("one PE", part)
    kept = [one for one in whole.slices if pe_of(one.track) == "sip0.cube0.pe1" or "/host" in one.track
            or one.name in ("sip0.cube0.pe1", "host")]
    pes = {pe_of(track) for track in part.tracks.values() if re.search(r"/pe\d+/", track)}
    left = sum(one.args["slices_of_other_pes"] for one in part.instants if one.name == "left out")
    others = [one for one in whole.slices if re.search("links/|/memories/|/pe_tcm ", one.track)
              and one.name not in ("sip0.cube0.pe1", "host")]
    ok(left == len(others) and f"{left} slices of other PEs than sip0.cube0.pe1" in ended.stderr,
       "what other PEs cause is counted", left, len(others), ended.stderr)
    ok(pes == {"sip0.cube0.pe1"} and sum(shown(part).values()) == len(kept),
       "--timeline-pes shows these PEs and what they cause", pes, len(part.slices), len(kept))
    ended = run(program, "run", "gemm", *GEMM, "--timeline", path, "--timeline-slices", "150")
    part = Timeline(path)
    is_whole("150 slices", part, part=True)
    left = next(one.args for one in part.instants if one.name == "left out")
    ok(150 <= len(part.slices) <= 160 and not shown(part) - shown(whole),
       "--timeline-slices shows the first ones, and the calls around them", len(part.slices))
    rest_ps = left["all_from_ps"]
    missing = shown(whole) - shown(part)
    ok(f"left out: everything from {rest_ps} ps on, after 150 slices" in ended.stderr
       and min(end for _, _, _, end in missing) >= rest_ps and max(one.begin for one in part.on(".*/(pe_|commands).*")) <= rest_ps,
       "what is left out then is said with its time", left, ended.stderr)
    in_flight("150 slices", part, (0, rest_ps))
    late = {track: values[-1] for track, values in part.values.items() if values[-1][0] >= rest_ps}
    ok(part.values and not late, "so are the values of counters", late, rest_ps)
    ends = {(one.track, one.begin, one.end) for one in part.on(".*/kernel") if not one.depth}
    ok(part.on("host") and not any(track.endswith("/host") for track, *_ in missing),
       "requests of the host are shown nevertheless", *missing)
    ok(len(ends) == 4 and ends <= {(one.track, one.begin, one.end) for one in whole.on(".*/kernel") if not one.depth},
       "kernels end at their times nevertheless", ends)
    part = cut(program, whole)
    ok(not shown(part).keys() & {key for key in shown(whole) if key[2] > middle + 1000000},
       "a timeline of a run that is ended has nothing of later times")
    waves = scratch("window.vcd")
    run(program, "run", "gemm", *GEMM, "--waves", waves, "--timeline-from", f"{low} ps", "--timeline-to", f"{high} ps",
        "--timeline-pes", "sip0.cube0.pe1")
    full, part = wave_changes(read(scratch("gemm.vcd"))), wave_changes(read(waves))
    wrong = [name for name, changes in part.items() if changes !=
             [(low, [value for t_ps, value in full[name] if t_ps <= low][-1])]
             + [change for change in full[name] if low < change[0] <= high]]
    ok(part and not wrong and {name.rpartition(".")[0] for name in part if "links" not in name} == {"sip0.cube0.pe1"},
       "waves show the same window and PEs", *wrong[:3])


def names():
    case = os.path.join(ROOT, "tests", "conformance", "single_dma_read")
    stream = os.path.join(os.fsencode(scratch("")), b"\xff\xc3\xa9 \xed\xa0\x80\"\n\\.yaml")
    write(stream, read(os.path.join(case, "stream.yaml")))
    path = scratch("named.pftrace")
    program = simulator(os.path.join(case, "topo.yaml"))
    ended = run(program, "replay", os.fsdecode(stream), "--timeline", path)
    root = next(iter(Timeline(path).tracks.values()))
    ok(ended.returncode == 0 and root.rpartition("/")[2].startswith("?\u00e9 ???\"\n\\.yaml on "),
       "names that are not UTF-8 become so", repr(root), ended.said)


def exact(ps):
    """A time with all its digits, in the largest unit that leaves digits before the point."""
    unit = min((len(str(ps)) - 1) // 3, 4)
    return f"{decimal.Decimal(ps).scaleb(-3 * unit).normalize():f} {('ps', 'ns', 'us', 'ms', 's')[unit]}"


def late():
    """Times up to 2^63 ps, which take up to nine bytes; later ones are left out."""
    program = simulator(os.path.join(ROOT, "tests", "conformance", "single_dma_read", "topo.yaml"))
    stream = """host:
  - { do: delay, ns: %d }
  - { do: launch, program: a, targets: [sip0.cube0.pe0] }
programs:
  a:
    - { do: load, from: { space: hbm, offset: 0 }, to: 0x200000, bytes: 8192 }
"""
    for bits in (49, 56, 57, 62):
        path = write(scratch("late.yaml"), "name: late\n" + stream % (2 ** bits // 1000 + 1))
        timeline, result, rows, _ = traced(program, "replay", path, name=f"2^{bits} ps")
        says_the_same(f"2^{bits} ps", timeline, result, rows)
        in_flight(f"2^{bits} ps", timeline)
    path, late_path = write(scratch("late.yaml"), "name: late\n" + stream % (2 ** 63 // 1000 + 1)), scratch("late.pftrace")
    ended = run(program, "replay", path, "--timeline", late_path)
    ok(ended.returncode == 0 and not Timeline(late_path).slices
       and f"slices after {exact(2 ** 63 - 1)}" in ended.stderr, "times that the format does not have are left out",
       ended.said)


def mistakes():
    program = simulator(SMALL)
    path = scratch("mistake.pftrace")
    points = write(scratch("points"), "{}\n")
    remove(path)
    for words, said in (
            (["--timeline", scratch("no/such/folder")], "cannot write"),
            (["--timeline", path, "--json", path], "--json and --timeline cannot both go to"),
            (["--waves", path, "--timeline", path], "--timeline and --waves cannot both go to"),
            (["--timeline-from", "1 us"], "neither is given"),
            (["--timeline", path, "--timeline-from", "2 us", "--timeline-to", "1 us"],
             "--timeline-from is after --timeline-to: 2000000 ps, 1000000 ps"),
            (["--timeline", path, "--timeline-to", "1"], "--timeline-to 1: a time such as 10 us is needed"),
            (["--timeline", path, "--timeline-pes", "cube*"], "--timeline-pes cube*: no PE of small has such a name"),
            (["--waves", path, "--timeline-slices", "-1"], "--timeline-slices -1: a whole number from 0"),
            (["--timeline", path, "--points", points], "--timeline is for one run"),
            (["--waves", path, "--points", points], "--waves is for one run")):
        ended = run(program, "run", "gemm", *words)
        ok(ended.returncode == 2 and said in ended.stderr and not os.path.exists(path),
           f"{' '.join(os.path.basename(word) for word in words)} is refused", ended.said)
    library = write(scratch("libisal.so.2"), "no library")
    ended = run(program, "run", "gemm", *GEMM, "--timeline", path + ".gz", env=os.environ | {"LD_LIBRARY_PATH": os.path.dirname(library)})
    ok(ended.returncode == 3 and "install libisal2, or name a file without .gz" in ended.stderr, "without the library that compresses, it is named", ended.said)
    ended = run(program, "run", "gemm", *GEMM, "--timeline", "/dev/full")
    ok(ended.returncode == 3 and "cannot write /dev/full" in ended.stderr, "a full disk gives status 3", ended.said)
    with open(path, "wb") as file:
        ended = run(program, "run", "gemm", *GEMM, "--timeline", "-", stdout=file)
    ok(ended.returncode == 0 and read_bytes(path) == read_bytes(scratch("gemm.pftrace")) and "verified" in ended.stderr,
       "a timeline may go to standard output, and the summary then to standard error", ended.stderr)


suite(streams, ended_runs, models, bench, collective, frees, critical_path, small_stacks, names, *(() if SAN else (late,)), mistakes)
