"""peers: stage services per CPU second on the peers' inputs, against the peers."""
import json
import os
import subprocess

from inputs import exact, lengthened, repeated, services_traced
from measure import cpu_s, in_turn, median, ratio
from row import Result, Row, duration, times
from setting import PEERS, ROOT, Broken, EndsDiffer, NotMeasured, output, write

INPUTS = ("pe1", "cube8", "sip128", "sram8")
TITLES = {"simpy": "SimPy", "systemc": "SystemC"}
GOALS = {"simpy": 1000, "systemc": 60}
IRREGULAR = {"pe1": 14, "cube8": 13, "sram8": 12, "sip128": 16}
QUIET = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", SYSTEMC_DISABLE_COPYRIGHT_MESSAGE="1")


def install(setting):
    """The Debian packages of the peers: says on standard error what it installs, or what is missing."""
    def setup():
        if subprocess.run([os.path.join(ROOT, ".ci", "setup"), "bench"], check=False).returncode:
            raise Broken("the peers' packages are missing: see above")
    setting.once("packages", setup)


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Peer:
    """One of the peers, on any stream of an input's machine."""

    def __init__(self, setting, name, topology):
        self.setting, self.name, self.topology = setting, name, topology
        self.result = setting.path("peer.json")
        install(setting)
        if name == "systemc":
            self.program = setting.program(os.path.join(PEERS, "systemc", "peer.cpp"), "-std=c++17", "-lsystemc",
                                           compiler="g++")

    def command(self, stream):
        if self.name == "simpy":
            return "/usr/bin/python3", os.path.join(PEERS, "simpy", "peer.py"), self.topology, stream, \
                   "--json", self.result
        flat = self.setting.path(stream.replace("/", "_") + ".txt")
        flatten = os.path.join(PEERS, "systemc", "flatten.py")
        self.setting.once(flat, lambda: write(flat, output("/usr/bin/python3", flatten, self.topology, stream,
                                                           env=QUIET)))
        return self.program, flat, self.result

    def run(self, stream):
        """(CPU seconds, the result)"""
        seconds = cpu_s(*self.command(stream), env=QUIET)
        return seconds, json.loads(text_of(self.result))


class Input:
    """One of the inputs, with what is expected of it and our simulator of its machine."""

    def __init__(self, setting, name):
        folder = os.path.join(PEERS, "inputs", name)
        self.setting, self.name = setting, name
        self.topology, self.stream = (os.path.join(folder, file) for file in ("topo.yaml", "stream.yaml"))
        self.expected = json.loads(text_of(os.path.join(PEERS, "inputs", "expected.json")))[name]
        self.program = setting.simulator(self.topology)

    def ours(self, stream, *options):
        return cpu_s(self.program, "replay", stream, *options)

    def our_end(self, stream, *options):
        result = self.setting.path("ours.json")
        output(self.program, "replay", stream, "--json", result, *options)
        return json.loads(text_of(result))["end_ps"]

    def agree(self, what, ours, theirs):
        if ours != theirs:
            raise EndsDiffer(f"{self.name}: {what}: {ours} here, {theirs} there")

    def check(self, options):
        """The given input's end and services, and the end of two launches of it, which SystemC says."""
        self.agree("end_ps", self.our_end(self.stream, *options), self.expected["end_ps"])
        self.agree("services", services_traced(self.program, self.stream), self.expected["services"])
        twice = repeated(self.setting, self.stream, 2)
        _, theirs = Peer(self.setting, "systemc", self.topology).run(twice)
        self.agree("end_ps of two launches", self.our_end(twice, *options), theirs["end_ps"])


def compare(setting, peer_name, name, options=()):
    """Result of ours with these options against a peer."""
    given = Input(setting, name)
    setting.once(("checked", name, options), lambda: given.check(options))
    long, launches = setting.once(("long", name, options),
                                  lambda: lengthened(setting, given.program, given.stream, *options))
    peer = Peer(setting, peer_name, given.topology)

    def theirs():
        seconds, result = peer.run(given.stream)
        given.agree(f"end_ps of {peer_name}", given.expected["end_ps"], result["end_ps"])
        return seconds

    peer.command(given.stream)                          # flattens, which is not measured
    many, plain, other = in_turn(setting.pairs, lambda: given.ours(long, *options),
                                 lambda: given.ours(given.stream, *options), theirs)
    each = [seconds / launches for seconds in many]
    services, gain, plain_gain = given.expected["services"], ratio(other, each), ratio(other, plain)
    goal = IRREGULAR[name] if options else GOALS[peer_name]
    return Result(times(gain), gain >= goal,
                  f"{duration(median(each) / services)} a service ({median(many):.2f} s for {launches} launches), "
                  f"{TITLES[peer_name]} {duration(median(other) / services)}; one launch, the whole process: "
                  f"{duration(median(plain))} against {duration(median(other))}, {times(plain_gain)}",
                  {"ratio": gain, "ratio_given": plain_gain, "services": services, "launches": launches,
                   "ours": many, "ours_given": plain, "peer": other})


def irregular(setting, name):
    """The same with every event simulated, whatever repeats itself."""
    options = exact(Input(setting, name).program)
    if not options:
        raise NotMeasured("replay has no --exact-events: the rows of the peers simulate every event")
    return compare(setting, "systemc", name, options)


def row(peer, name):
    return Row(f"{peer}-{name}", f">= {GOALS[peer]:,}x", lambda setting: compare(setting, peer, name), True, True)


ROWS = [row(peer, name) for peer in TITLES for name in INPUTS] + [
    Row(f"irregular-{name}", f">= {IRREGULAR[name]}x", lambda setting, name=name: irregular(setting, name), True)
    for name in INPUTS]
