"""row: a row of the table: what it is called, its goal, how it is measured, and what came out."""
from dataclasses import dataclass, field
from typing import Callable, Optional


@dataclass
class Result:
    measured: str                                   # as it stands in the table
    met: Optional[bool]                             # None: the row has no goal
    detail: str
    figures: dict = field(default_factory=dict)     # for machines: times in seconds unless the name has a unit


@dataclass
class Row:
    name: str
    goal: str                                       # "-" for none
    measure: Callable                               # Setting -> Result
    needs_peers: bool = False
    skips: bool = False                             # fast-forward makes it: most events are computed, not simulated

    def answers_to(self, word):
        return word == self.name or word in self.name.split("-")


def duration(seconds):
    """Three digits and a unit."""
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if seconds >= scale:
            break
    return f"{seconds / scale:.3g} {unit}"


def times(ratio):
    return f"{ratio:.3g}x" if ratio < 100 else f"{ratio:,.0f}x"
