"""inputs: the machines and streams that the bench writes for itself, and streams made longer until they can be timed.

A stream gets longer by its launches, which are repeated: the same shapes, the same work each time, one launch after
the other. So a longer stream has exactly that many times the stage services.
"""
import json
import math
import subprocess

from measure import cpu_s
from setting import write

LONG_S, LONG_ENOUGH_S = 1.0, 0.7
MOST_LAUNCHES = 4000
MACHINES = {64: "sips: 1 }\nsip: { cubes: { rows: 2, cols: 4 } }\n",
            128: "sips: 1 }\nsip: { cubes: { rows: 4, cols: 4 } }\n",
            4096: "sips: 16 }\nsip: { cubes: { rows: 4, cols: 8 } }\n"}     # cubes of 8 PEs, as by default
TILE = 64


def machine(setting, pes, more=""):
    """The topology file of a machine of so many PEs; `more` goes on where the file ends."""
    return write(setting.path(f"pes_{pes}.yaml"), f"system: {{ name: pes_{pes}, {MACHINES[pes]}{more}")


def stream(setting, name, *steps):
    """A stream in which every PE of the machine takes these steps."""
    steps = [dict(step, id=f"c{n}") for n, step in enumerate(steps)]
    steps.append({"do": "wait", "for": [step["id"] for step in steps]})
    document = {"name": name, "launches": [{"program": "p", "targets": ["*"]}], "programs": {"p": steps}}
    return write(setting.path(name + ".yaml"), json.dumps(document))


def gemm(m, k, n, **more):
    """The step of a GEMM from and to the PE's own slice of HBM."""
    places = {name: {"space": "hbm", "offset": at << 24} for at, name in enumerate("abc")}
    return {"do": "composite", "op": "gemm", "m": m, "k": k, "n": n, "tile": [TILE] * 3, "dtype": "f16"} | places | more


def gemm_services(m, k, n):
    """Stage services: two reads, FETCH and GEMM of each tile, STORE and DMA_WRITE of each tile of the result."""
    m, k, n = (math.ceil(size / TILE) for size in (m, k, n))
    return 4 * m * k * n + 2 * m * n


def load(path):
    """A stream. Those that the bench wrote are JSON, so that its own rows do not need PyYAML."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.startswith("{"):
        return json.loads(text)
    import yaml
    return yaml.safe_load(text)


def repeated(setting, path, times):
    """The stream with its launches so many times."""
    document = load(path)
    document["launches"] *= times
    return write(setting.path(f"{path.replace('/', '_')}-{times}.yaml"), json.dumps(document))


def lengthened(setting, program, path, *options):
    """(the stream with its launches repeated until a run takes about a second, how many times)"""
    times, took_s = 1, cpu_s(program, "replay", path, *options)
    while took_s < LONG_ENOUGH_S and times < MOST_LAUNCHES:
        times = min(MOST_LAUNCHES, math.ceil(times * min(100, LONG_S / max(took_s, 1e-3))))
        took_s = cpu_s(program, "replay", repeated(setting, path, times), *options)
    return repeated(setting, path, times), times


def services_traced(program, path):
    """The stage services of a run, counted in its trace."""
    with subprocess.Popen([program, "replay", path, "--trace", "-"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        return sum(block.count(b'"engine_start"') for block in iter(process.stdout.readline, b""))


def exact(program, command="replay"):
    """The option by which a simulator skips nothing that repeats itself; none when it has no such option."""
    said = subprocess.run([program, command, "--help"], capture_output=True, text=True, check=False).stdout
    return ("--exact-events",) if "--exact-events" in said else ()
