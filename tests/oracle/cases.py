#!/usr/bin/python3
"""cases: what the oracle alone makes of conformance cases, against what they expect.

    cases.py FOLDER...

Each is the folder of a case. Prints a line for each; exit status 1 if one differs.
"""
import json
import os
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [HERE, os.path.dirname(HERE)]

from harness import first_difference, read, result_difference        # noqa: E402
import oracle                                                        # noqa: E402
import result                                                        # noqa: E402
import usage                                                         # noqa: E402
import why                                                           # noqa: E402
from stream import Stream                                            # noqa: E402
from topology import Topology                                        # noqa: E402


def expected(topology, stream):
    """The oracle's result, trace, statistics and causes, or why it has none."""
    try:
        machine = oracle.Machine(topology, stream).run()
        return (json.dumps(result.result(machine)), "".join(result.trace(machine)), json.dumps(usage.value_of(machine)),
                why.value_of(machine))
    except Exception:                                                # any fault of the oracle is a finding
        return "the oracle fails: " + traceback.format_exc()


def differences(folder):
    """Where the oracle's result and trace differ from those of a case; empty if nowhere."""
    topo, stream, value, trace = (os.path.join(folder, name) for name in
                                  ("topo.yaml", "stream.yaml", "expected.json", "trace.jsonl"))
    got = expected(Topology(topo), Stream(stream))
    if isinstance(got, str):
        return [got]
    return [line for line in (result_difference(read(value), got[0]), first_difference(read(trace), got[1])) if line]


def main():
    wrong = {folder: differences(folder) for folder in sys.argv[1:]}
    for folder, lines in wrong.items():
        print("\n".join([f"{'differs' if lines else 'agrees'}: {os.path.basename(folder.rstrip('/'))}", *lines]))
    sys.exit(any(wrong.values()))


if __name__ == "__main__":
    main()
