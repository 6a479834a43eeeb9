"""build_time: from a topology to a simulator that runs, against the compiler on an empty program; what a change of numbers
alone takes; how large the simulator is.

The generated code of build-other is of a structure that was not compiled together with kbgen."""
import os
import tempfile

from inputs import machine
from measure import cpu_s, in_turn, median
from row import Result, Row, duration
from setting import CC, KBGEN, ROOT, Broken, output, write

EMPTY = "int main(void) { return 0; }\n"
OTHER = "cube: { pe_template: { components: { pe_dma: { attrs: { rd_engines: 3 } } } } }\n"
MOST_MORE_S, MOST_NUMBERS_S, MOST_MB = 0.12, 0.015, 1.5


def build(setting, pes, more="", goal=MOST_MORE_S):
    topology = machine(setting, pes, more)
    empty = write(setting.path("empty.c"), EMPTY)

    def ours():
        """In a new folder, so that nothing that was made before is used."""
        with tempfile.TemporaryDirectory(dir=setting.folder) as folder:
            seconds = cpu_s(KBGEN, topology, cwd=folder)
            output(os.path.join(folder, "build", f"pes_{pes}"), "info")
            return seconds

    made, compiled = in_turn(setting.pairs, ours, lambda: cpu_s(CC, empty, "-o", setting.path("empty")))
    more = median(a - b for a, b in zip(made, compiled))
    return Result(f"{duration(more)} more", goal and more <= goal,
                  f"CPU time: kbgen {duration(median(made))}, {CC} on an empty main {duration(median(compiled))}",
                  {"more": more, "kbgen": made, "cc": compiled})


def counting_compiler(setting, log):
    """A compiler that writes a line for every time it is run."""
    path = write(setting.path("counting-cc"), f'#!/bin/sh\necho "$@" >>{log}\nexec {CC} "$@"\n')
    os.chmod(path, 0o755)
    return path


def lines(path):
    with open(path, encoding="utf-8") as file:
        return len(file.readlines())


def numbers(setting):
    """A bandwidth that changes from build to build, in one folder, which keeps what kbgen made before."""
    folder = tempfile.mkdtemp(dir=setting.folder)
    log = write(setting.path("compilers"), "")
    words = ("--cc", counting_compiler(setting, log))

    def made(link_gbs):
        topology = machine(setting, 128, f"cube: {{ noc: {{ link_bw_gbs: {link_gbs} }} }}\n")
        seconds = cpu_s(KBGEN, topology, *words, cwd=folder)
        output(os.path.join(folder, "build", "pes_128"), "info")
        return seconds

    full, full_runs = made(100), lines(log)
    if full_runs == 0:
        raise Broken("kbgen did not run the compiler that --cc names")
    changes = [made(101 + n) for n in range(setting.pairs)]
    runs, seconds = (lines(log) - full_runs) / setting.pairs, median(changes)
    return Result(duration(seconds), seconds <= MOST_NUMBERS_S and runs == 0,
                  f"CPU time for each change of cube.noc.link_bw_gbs on 128 PEs, with {runs:g} runs of the compiler; the "
                  f"full build has {full_runs}, {duration(full)}",
                  {"compiler_runs": runs, "changes": changes, "full": full, "compiler_runs_full": full_runs})


def size(setting):
    """Of the simulator of the repository's machine with 128 PEs, which has no kernels of a user."""
    made = os.path.getsize(setting.simulator(os.path.join(ROOT, "topologies", "ref_sip.yaml")))
    return Result(f"{made / 1e6:.3g} MB", made <= MOST_MB * 1e6, "the file of ref_sip, with the library's kernels",
                  {"bytes": made})


ROWS = [Row("build-128", "<= 120 ms", lambda setting: build(setting, 128)),
        Row("build-4096", "<= 120 ms", lambda setting: build(setting, 4096)),
        Row("build-other", "-", lambda setting: build(setting, 128, OTHER, None)),
        Row("numbers", "<= 15 ms", numbers), Row("binary", "<= 1.5 MB", size)]
