"""why: the critical path: the work behind the end, one piece after the other, back to time 0; accounts of kernels."""
from typing import NamedTuple

from cause import Owner
from usage import kernels_of


class Segment(NamedTuple):
    begin: int
    end: int
    edge: str                       # what this held up, and how; direct: it led to it
    work: str
    at: str
    owner: Owner | None
    held_up: Owner | None           # for whom what follows happens


def hops(path):
    """The wires and nodes of a control message, the last first."""
    for link, node in zip(path.links[::-1], path.nodes[:0:-1]):
        if node.overhead:
            yield node.overhead, "node", node.name
        yield link.latency, "wire", link.name


def path(moment):
    """The segments behind a moment, the last first."""
    while moment.work:
        work, since, end, edge = moment.work, moment.work.since, moment.time, moment.edge
        for ps, kind, at in hops(work.path) if work.path else [(work.ps, work.kind, work.at)]:
            yield Segment(end - ps, end, edge, kind, at, since.owner, moment.owner)
            end, edge = end - ps, "direct"
        assert end == since.time, "a work's parts are the work"
        moment = since


def clipped(segments, begin):
    """Those after a time; the one in which it lies from there on."""
    for segment in segments:
        if segment.end <= begin:
            return
        yield segment._replace(begin=max(begin, segment.begin))


def sums(segments):
    """{(edge, work): ps}"""
    found = {}
    for one in segments:
        key = one.edge, one.work
        found[key] = found.get(key, 0) + one.end - one.begin
    return found


def critical_path(machine):
    """The segments of a run in order of time: without a gap from 0 to its end."""
    segments, end = list(path(machine.host.end)), machine.host.end.time
    for segment in segments:
        assert segment.begin < segment.end == end, "segments follow each other"
        end = segment.begin
    assert end == 0, "the path begins at 0"
    return segments[::-1]


def account(kernel):
    """What a kernel that has ended spent its time on."""
    found = sums(segment for since, moment in kernel.waits for segment in clipped(path(moment), since))
    assert sum(found.values()) == kernel.end_ps - kernel.start_ps, "a kernel's account is its time"
    return found


def value_of(machine):
    accounts = [account(kernel) for kernel in kernels_of(machine) if kernel.end_ps is not None]
    return critical_path(machine), accounts
