"""cause: a moment is a time and its cause: the work that ends then, which began at another moment, back to time 0."""
from typing import NamedTuple


class Owner(NamedTuple):
    """For whom work is done: a command of a PE, a tile, a stage of it."""
    pe: str
    command: int
    tile: int | None = None
    stage: str | None = None


class Work:
    """Takes `ps` from a moment on, somewhere; that of a control message has its path: it consists of the path's hops."""
    __slots__ = ("since", "ps", "kind", "at", "path")

    def __init__(self, since, ps, kind, at, path):
        self.since, self.ps, self.kind, self.at, self.path = since, ps, kind, at, path


class Moment:
    """The end of some work. The edge says how that led to what happens now: `direct`, or over what had to be waited for,
    which held up somebody. `owner` is for whom it happens."""
    __slots__ = ("time", "work", "edge", "owner", "held_up")

    def __init__(self, time, work=None, edge="direct", owner=None, held_up=None):
        self.time, self.work, self.edge, self.owner, self.held_up = time, work, edge, owner, held_up

    def then(self, ps, kind, at, path=None):
        """The end of work that begins now. Work that takes no time hands on its own cause."""
        return Moment(self.time + ps, Work(self, ps, kind, at, path), "direct", self.owner) if ps else self

    def until(self, time, kind, at):
        return self.then(time - self.time, kind, at)

    def along(self, path, kind):
        """The arrival of a control message."""
        return self.then(path.latency, kind, None, path)

    def over(self, edge):
        """The same moment for something that had to wait for it, whose owner is told next."""
        return Moment(self.time, self.work, edge, self.owner)

    def of(self, owner):
        return Moment(self.time, self.work, self.edge, owner, self.held_up or owner)


START = Moment(0)
NEVER = 0, START                # the mark of a condition that was always true


def latest(*moments):
    """The first of the latest ones."""
    return max(moments, key=lambda moment: moment.time)
