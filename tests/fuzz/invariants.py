"""invariants: what holds of every result and trace, whatever the model says about times.

Of each launch that ran: its PEs start together, unless it says otherwise; every stage of every tile starts once and ends at most once, after its
start, and once exactly if all went well; a command ends after its tiles; no engine serves more at once than it has
places for, and is not busier than time; the bytes that a PE's commands move through its TCM fit in its time.
"""
import itertools
import json
from collections import Counter

from plan import Engines, tiles_of
from stream import step_for
from units import move_ps


class Machine:
    """What the checks know of a topology: the places of each engine, and its TCM."""

    def __init__(self, topology):
        dma, fetch_store = topology.pe("pe_dma"), topology.pe("pe_fetch_store")
        self.engines = Engines(topology)
        self.places = {"pe_dma": dma.count("rd_engines") + dma.count("wr_engines") + 1, "pe_gemm": 1, "pe_math": 1,
                       "pe_fetch_store": fetch_store.count("ports")}
        self.rates = [topology.pe("pe_tcm").rate(key) for key in ("read_bw_gbs", "write_bw_gbs")]


class Place:
    """A PE as far as reading its steps needs it."""

    def __init__(self, name):
        self.sip, self.cube, self.number = (int(part.lstrip("sipcube")) for part in name.split("."))
        self.slice = 0


def broken(machine, result, trace, stream):
    """What does not hold, a line each."""
    events = [json.loads(line) for line in trace.splitlines()]
    found = [] if all(a["t"] <= b["t"] for a, b in zip(events, events[1:])) else ["the trace goes back in time"]
    for number, launch in enumerate(result["launches"]):
        if launch["status"] == "skipped":
            continue
        pes = tuple(pe["id"] + "." for pe in launch["pes"])
        inside = [event for event in events if launch["submitted_ps"] <= event["t"] <= launch["done_ps"]
                  and event["node"].startswith(pes)]
        end, raw = launch["done_ps"], stream.launches[number]
        complaints = [*started_together(launch, raw), *once_each(launch, inside), *not_overfull(machine, inside),
                      *not_busier(launch, end), *bytes_fit(machine, launch, end, raw, stream)]
        found += [f"launch {number}: {complaint}" for complaint in complaints]
    return found


def started_together(launch, raw):
    starts = {pe["start_ps"] for pe in launch["pes"]} - {None}
    if min(starts, default=None) != launch["start_ps"] or (len(starts) > 1 and "start" not in raw):
        yield f"PEs start at {sorted(starts)}, the launch at {launch['start_ps']}"


def once_each(launch, events):
    counts = Counter()
    for event in events:
        what = (event["node"], event["cmd"], event["tile"], event["stage"])
        counts[event["ev"], *what] += 1
        if event["ev"] == "engine_complete" and not counts["engine_start", *what]:
            yield f"{what} ends without a start"
    yield from (f"{what} {count} times" for what, count in counts.items() if count > 1)
    if launch["status"] == "ok":
        yield from (f"{what[1:]} never ends" for what in counts
                    if what[0] == "engine_start" and not counts["engine_complete", *what[1:]])
        yield from (f"command {one['n']} of {one['pe']} is not complete" for one in launch["commands"]
                    if one["complete_ps"] is None)


def not_overfull(machine, events):
    """After each instant, no engine has more services under way than places."""
    under_way = Counter()
    for time, together in itertools.groupby(events, key=lambda event: event["t"]):
        for event in together:
            under_way[event["node"]] += (event["ev"] == "engine_start") - (event["ev"] == "engine_complete")
        yield from (f"{node} serves {count} at once at {time} ps" for node, count in under_way.items()
                    if count > machine.places.get(node.rsplit(".", 1)[1], 0))


def lived_ps(pe, end):
    return 0 if pe["start_ps"] is None else (end if pe["end_ps"] is None else pe["end_ps"]) - pe["start_ps"]


def not_busier(launch, end):
    for pe in launch["pes"]:
        if max(pe["dma_ps"], pe["compute_ps"]) > lived_ps(pe, end):
            yield f"{pe['id']} is busier than time"
    for metric in ("dma_ps", "compute_ps"):
        if launch[metric] != max(pe[metric] for pe in launch["pes"]):
            yield f"{metric} is not that of the busiest PE"


def bytes_fit(machine, launch, end, raw, stream):
    """Both TCM channels: a read ends with a write of its bytes, FETCH reads them, STORE and DMA_WRITE likewise."""
    steps = {}
    for part in raw.get("parts") or [raw]:
        for pe in launch["pes"] if "parts" not in raw else [pe for pe in launch["pes"] if pe["id"] in part["targets"]]:
            steps[pe["id"]] = [step for step in stream.programs[part["program"]] if step["do"] not in ("wait", "delay")]
    for pe in launch["pes"]:
        moved = Counter()
        for command in launch["commands"]:
            if command["pe"] == pe["id"] and command["complete_ps"] is not None:
                step = step_for(steps[pe["id"]][command["n"]], Place(pe["id"]))
                if step["do"] not in ("send", "recv"):
                    moved.update(kinds_of(step, machine.engines))
        # What completes after a fault is beyond the PE's time.
        if pe["status"] == "ok":
            for name, rate, kinds in zip(("read", "write"), machine.rates, (("FETCH", "DMA_WRITE"),
                                                                            ("DMA_READ", "STORE"))):
                need = move_ps(sum(moved[kind] for kind in kinds), rate)
                if need > lived_ps(pe, end):
                    yield f"{pe['id']}: the TCM's {name} channel has to be busy for {need} ps"


def kinds_of(step, engines):
    """{stage kind: bytes} of all tiles of a command."""
    moved = Counter()
    for tile in tiles_of(step, engines):
        for stage in tile.stages:
            moved[stage.kind] += stage.size
    return moved
