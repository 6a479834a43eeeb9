"""skipping: what fast-forward saves: runs against the same with --exact-events, where every event is simulated.

Each figure is a ratio of CPU times of whole processes, without data. The work is what users run: the benches of the
library and of the guide at their defaults; a whole product or a vector operation as one composite a PE; streams of many
short commands.
"""
import os
import re
import subprocess

from inputs import composites, exact, machine, short_commands, stream
from measure import cpu_s, in_turn, median
from row import Result, Row, duration, times
from setting import ROOT


def services(program, *words):
    """(stage services, those in skipped periods, those on PEs that slept)"""
    said = subprocess.run([program, *words, "--profile"], capture_output=True, text=True, check=True).stderr
    return [int(n) for n in re.search(r"(\d+) stage services: (\d+) in skipped periods, (\d+) on", said).groups()]


def compare(setting, runs):
    """Result of runs, (title, program, words): all of them together, and each that skips anything by itself."""
    options = {program: exact(program, words[0]) for _, program, words in runs}
    pairs = [in_turn(setting.pairs, lambda p=program, w=words: cpu_s(p, *w),
                     lambda p=program, w=words: cpu_s(p, *w, *options[p])) for _, program, words in runs]
    plain, every = ([sum(seconds) for seconds in zip(*side)] for side in zip(*pairs))
    counted = {title: services(program, *words) for title, program, words in runs}
    skipping = [f"{title} {times(median(exact_s) / median(plain_s))}, {(counted[title][1]) / counted[title][0]:.0%} in "
                f"periods and {counted[title][2] / counted[title][0]:.0%} on PEs not simulated"
                for (title, _, _), (plain_s, exact_s) in zip(runs, pairs) if any(counted[title][1:])]
    return Result(times(median(every) / median(plain)), None,
                  f"{duration(median(every))} with every event simulated, {duration(median(plain))} without, for "
                  f"{len(runs)} runs, {len(skipping)} of which skip services" + "".join("; " + said for said in skipping),
                  {"every_event": every, "seconds": plain, "services": counted})


def benches(setting, of_library, *words):
    """The runs of all benches of the library, or of those in the files that the words name, at their defaults."""
    program = setting.simulator(os.path.join(ROOT, "topologies", "ref_sip.yaml"), *words)
    listed = subprocess.run([program, "list"], capture_output=True, text=True, check=True).stdout
    return [(name, program, ("run", name, "--data", "off"))
            for name, place in re.findall(r"^(\w+): .*\(([^(]*)\)$", listed, re.MULTILINE)
            if place.startswith("kernels/") == of_library]


def guide(setting):
    """The steps of the guide, without the one that shows mistakes."""
    folder = os.path.join(ROOT, "docs", "guide")
    return [run for name in sorted(os.listdir(folder)) if name.endswith(".c") and "mistakes" not in name
            for run in benches(setting, False, "-k", os.path.join(folder, name))]


def replays(setting, pes, streams):
    program = setting.simulator(machine(setting, pes))
    return [(title, program, ("replay", stream(setting, f"{pes} {title}".replace(" ", "_"), *steps)))
            for title, steps in streams.items()]


def row(name, runs):
    return Row(f"skipped-{name}", "-", lambda setting: compare(setting, runs(setting)), skips=True)


ROWS = [row("library", lambda setting: benches(setting, True)), row("guide", guide)] + [
    row(f"whole-{pes}", lambda setting, pes=pes: replays(setting, pes, composites(pes))) for pes in (1, 8, 128, 4096)] + [
    row(f"short-{pes}", lambda setting, pes=pes: replays(setting, pes, short_commands(pes))) for pes in (1, 128, 4096)]
