"""simulation: time: instants, their rounds, in each round the retiring of what is due and the issue of what waits."""
import heapq

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

    def at(self, time, node, kind, key, effect):
        """A timed event; two of one node, class and key at one time would have no order."""
        assert time >= self.now
        self.made += 1
        event = (time, node.rank, kind, key, self.made, effect)
        heapq.heappush(self.events, event)
        return event

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
                event[-1]()
        issue()


class Channel:
    """A reservation: what is asked for at `when` starts when the channel is free."""

    def __init__(self):
        self.free, self.usage = 0, Reserved()

    def reserve(self, when, length, size):
        start = max(when, self.free)
        self.free = start + length
        self.usage.add(when, start, length, size)
        return start, self.free
