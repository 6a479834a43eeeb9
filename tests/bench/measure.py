"""measure: CPU seconds of whole processes on one core, run in turn, and the median of what pairs of them give."""
import contextlib
import os
import statistics
import subprocess

from setting import CORE, Broken


@contextlib.contextmanager
def pinned():
    """What is started meanwhile runs on one core. A child that pinned itself would be a copy of this process first, whose
    page faults, 1 ms of CPU time, would count as its own."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {CORE})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_s(*command, said=None, **options):
    """CPU seconds, user and system, of a process and its children; standard output goes to the file `said`."""
    with open(said or os.devnull, "w+", encoding="utf-8") as out:
        with pinned():
            process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT if said else subprocess.DEVNULL, **options)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Broken(f"{' '.join(map(str, command))}: status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def in_turn(times, *measures):
    """Every measure once, then all of them again: a list of what each gave."""
    rounds = [[measure() for measure in measures] for _ in range(times)]
    return [list(column) for column in zip(*rounds)]


def ratio(above, below):
    """The median of the pairs' ratios."""
    return statistics.median(a / b for a, b in zip(above, below))


def median(values):
    return statistics.median(values)
