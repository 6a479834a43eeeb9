"""why: the critical path: the work behind the end, one piece after the other, back to time 0; accounts of kernels and of
engines."""
import heapq
from typing import NamedTuple

from cause import Owner
from usage import kernels_of


# The reason of a segment is its edge if that is not direct, else its work, unless they are called otherwise:
OF_EDGES = {"engine": "engine_busy"}
OF_WORKS = {"feed": "engine"}


class Segment(NamedTuple):
    begin: int
    end: int
    edge: str                       # over which what follows was reached
    reason: str
    work: str
    at: str
    owner: Owner | None
    held_up: Owner | None           # for whom what had to wait happens


def reason(edge, kind, part, at):
    """Why time passes in a part of some work of a kind."""
    if edge != "direct":
        return OF_EDGES.get(edge, edge)
    if kind == "stream":
        return "pseudo_channel" if ".hbm_ctrl." in at else "channel"
    return kind if kind == "launch" else OF_WORKS.get(part, part)


def hops(path):
    """The wires and nodes of a control message, the last first."""
    for link, node in zip(path.links[::-1], path.nodes[:0:-1]):
        if node.overhead:
            yield node.overhead, "node", node.name
        yield link.latency, "wire", link.name


def path(moment):
    """The segments behind a moment, the last first."""
    while moment.work:
        work, since, end, edge, held_up = moment.work, moment.work.since, moment.time, moment.edge, moment.held_up
        for ps, part, at in hops(work.path) if work.path else [(work.ps, work.kind, work.at)]:
            why = reason(edge, work.kind, part, at)
            yield Segment(end - ps, end, edge, why, part, at, since.owner, held_up)
            end, edge, held_up = end - ps, "direct", None
        assert end == since.time, "a work's parts are the work"
        moment = since


def clipped(segments, begin):
    """Those after a time; the one in which it lies from there on."""
    for segment in segments:
        if segment.end <= begin:
            return
        yield segment._replace(begin=max(begin, segment.begin))


def sums(segments):
    """{reason: ps}"""
    found = {}
    for one in segments:
        found[one.reason] = found.get(one.reason, 0) + one.end - one.begin
    return found


def critical_path(machine):
    """The segments of a run in order of time: without a gap from 0 to its end."""
    segments, end = list(path(machine.host.end)), machine.host.end.time
    for segment in segments:
        assert segment.begin < segment.end == end, "segments follow each other"
        end = segment.begin
    assert end == 0, "the path begins at 0"
    return segments[::-1]


def add(found, more):
    for reason_, ps in more.items():
        found[reason_] = found.get(reason_, 0) + ps


def account(kernel, end):
    """What a kernel spent its time on, up to its end: its waits, and what it was in then."""
    found = sums(segment for since, moment in kernel.waits for segment in clipped(path(moment), since))
    if kernel.due:
        add(found, sums(one._replace(end=min(one.end, end)) for one in clipped(path(kernel.due), kernel.waits_since)))
    else:
        add(found, {"wait": end - kernel.waits_since})
    assert sum(found.values()) == end - kernel.start_ps, "a kernel's account is its time"
    return found


def engine_account(kernel, end, server, services):
    """(busy, {reason: ps}) of a server for one engine: of several places, a start takes the one that is idle for longest."""
    busy, idle, since = 0, {}, [kernel.start_ps] * server.engines
    for one in services:
        until = end if one.end is None else min(one.end, end)
        add(idle, sums(clipped(path(one.start), heapq.heapreplace(since, until))))
        busy += until - one.start.time
    for begin in since:
        returned = kernel.end_ps is not None and not kernel.fault
        add(idle, sums(clipped(path(kernel.waits[-1][1]), begin)) if returned else {"wait": end - begin})
    return busy, idle


def engine_accounts(kernel, end):
    """{engine: (busy, {reason: ps})} of the engines that served for the kernel."""
    found = {}
    for engine, services in kernel.services.items():
        busy, idle, servers = 0, {}, kernel.pe.servers_of(engine)
        for server in servers:
            of_server = engine_account(kernel, end, server, [one for one in services if one.server is server])
            busy += of_server[0]
            add(idle, of_server[1])
        time = sum(server.engines for server in servers) * (end - kernel.start_ps)
        assert busy + sum(idle.values()) == time, "an engine's account is its kernel's time"
        found[engine] = busy, {name: ps for name, ps in idle.items() if ps}
    return found


def launch_paths(machine):
    """(submitted, segments in order of time) of each launch that has ended for the host, in the order of the file."""
    for report in machine.host.launches:
        if report in machine.host.ends:
            begin, end = report.launch.submitted, machine.host.ends[report]
            found = list(clipped(path(end), begin))[::-1]
            assert sum(one.end - one.begin for one in found) == end.time - begin, "a launch's path is its time"
            yield begin, found


def value_of(machine):
    """The critical path; {(PE, start): (account, engines)} of the kernels; the paths of launches."""
    accounts = {}
    for kernel in kernels_of(machine):
        end = machine.host.end.time if kernel.end_ps is None else kernel.end_ps
        accounts[kernel.pe.name, kernel.start_ps] = account(kernel, end), engine_accounts(kernel, end)
    return critical_path(machine), accounts, list(launch_paths(machine))
