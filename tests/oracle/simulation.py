"""simulation: time: instants, their rounds, in each round the retiring of what is due and the issue of what waits."""
import heapq
import itertools

from cause import START
from usage import Reserved

SERVICE_END, MESSAGE, KERNEL = 0, 1, 2          # the classes of timed events


class Simulation:
    def __init__(self):
        self.now = 0
        self.events = []
        self.made = 0
        self.trace = []
        self.cancelled = set()
        self.over = False
        self.moment = START                     # now, and the cause of what happens now
        self.marks = itertools.count(1)

    def at(self, moment, node, kind, key, effect):
        """A timed event; two of one node, class and key at one time would have no order."""
        assert moment.time >= self.now
        self.made += 1
        event = (moment.time, node.rank, kind, key, self.made, effect, moment)
        heapq.heappush(self.events, event)
        return event

    def because_of(self, moment):
        """It is the cause of all that happens from here on."""
        assert moment.time == self.now, "a cause ends when what it causes begins"
        self.moment = moment

    def happen(self, moment, effect):
        """In place."""
        before = self.moment
        self.because_of(moment)
        effect()
        self.moment = before

    def mark(self, edge=None):
        """A condition becomes true now: (its place in the order of all that did, the moment for what needs it)."""
        return next(self.marks), self.moment.over(edge) if edge else self.moment

    def cancel(self, event):
        if event in self.events:
            self.events.remove(event)
            heapq.heapify(self.events)
        else:
            self.cancelled.add(event)           # it is due in this round

    def run(self, issue, instant_over):
        """To the end of the instant in which all is over, or until nothing is left to happen."""
        while self.events and not self.over:
            self.now = self.events[0][0]
            while self.events and self.events[0][0] == self.now:
                self.round(issue)
            instant_over()

    def round(self, issue):
        due = []
        while self.events and self.events[0][0] == self.now:
            due.append(heapq.heappop(self.events))
        assert all(one[:4] != next_one[:4] for one, next_one in zip(due, due[1:]))
        for event in due:
            if event not in self.cancelled:
                *_, effect, self.moment = event
                effect()
        issue()


class Channel:
    """A reservation: what is asked for at a moment starts when the channel is free."""

    def __init__(self, kind, name):
        self.kind, self.name = kind, name
        self.free, self.usage = START, Reserved()

    def reserve(self, asked, length, size, before=0):
        """Of the length, `before` is for what comes before the bytes: a change of rows. -> its start, its end"""
        start = asked
        if self.free.time > asked.time:
            start = self.free.over(self.kind).of(asked.owner)
        self.free = start.then(before, "row", self.name).then(length - before, self.kind, self.name)
        self.usage.add(asked.time, start.time, length, size)
        return start, self.free
