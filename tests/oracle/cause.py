"""cause: a moment is a time and its cause: the work that ends then, which began at another moment, back to time 0."""
from typing import NamedTuple


class Owner(NamedTuple):
    """For whom work is done: a kernel, or a stage of one of its tiles; -1 where there is none."""
    pe: str
    command: int = -1
    tile: int = -1
    stage: int = -1


class Work:
    """Takes `ps` from a moment on, somewhere; a control message has its path, since it consists of that path's hops."""
    __slots__ = ("since", "ps", "kind", "at", "path")

    def __init__(self, since, ps, kind, at, path):
        self.since, self.ps, self.kind, self.at, self.path = since, ps, kind, at, path


class Moment:
    """The end of some work. The edge says how that led to what happens now: `direct`, or through what had to be waited
    for. `owner` is for whom it happens."""
    __slots__ = ("time", "work", "edge", "owner")

    def __init__(self, time, work=None, edge="direct", owner=None):
        self.time, self.work, self.edge, self.owner = time, work, edge, owner

    def then(self, ps, kind, at, path=None):
        """The end of work that begins now. Work that takes no time hands on its own cause."""
        return Moment(self.time + ps, Work(self, ps, kind, at, path), "direct", self.owner) if ps else self

    def until(self, time, kind, at):
        return self.then(time - self.time, kind, at)

    def along(self, path):
        """The arrival of a control message."""
        return self.then(path.latency, "control", None, path)

    def over(self, edge):
        """The same moment for something that had to wait for it."""
        return Moment(self.time, self.work, edge, self.owner)

    def of(self, owner):
        return Moment(self.time, self.work, self.edge, owner)


START = Moment(0)
NEVER = 0, START                # the mark of a condition that was always true


def latest(*moments):
    """The first of the latest ones."""
    return max(moments, key=lambda moment: moment.time)
