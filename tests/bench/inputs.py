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
MACHINES = {1: "sips: 1 }\nsip: { cubes: { rows: 1, cols: 1 } }\ncube: { memory_map: { hbm_slices_per_cube: 1 } }\n",
            8: "sips: 1 }\nsip: { cubes: { rows: 1, cols: 1 } }\n",
            64: "sips: 1 }\nsip: { cubes: { rows: 2, cols: 4 } }\n",
            128: "sips: 1 }\nsip: { cubes: { rows: 4, cols: 4 } }\n",
            4096: "sips: 16 }\nsip: { cubes: { rows: 4, cols: 8 } }\n"}     # cubes of 8 PEs, as by default
TILE = 64
GRIDS = {1: (1, 1), 8: (4, 2), 128: (16, 8), 4096: (64, 64)}            # the blocks of a product on so many PEs
PRODUCTS = ((4096, 4096, 4096), (8192, 8192, 8192), (16384, 2048, 8192))        # m, k, n
SHORT_COMMANDS = {1: 200, 128: 200, 4096: 10}                            # of each PE


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


def composites(pes):
    """Whole problems as one composite a PE: {name: steps}."""
    rows, cols = GRIDS[pes]
    steps = {}
    for m, k, n in PRODUCTS:
        m_each, n_each, a, b = m // rows, n // cols, 2 * m // rows * k, 2 * k * n // cols
        places = {name: {"space": "hbm", "offset": at} for name, at in (("a", 0), ("b", a), ("c", a + b))}
        steps[f"gemm {m} x {k} x {n}"] = [gemm(m_each, k, n_each, **places)]
    m, n = 8192, 8192
    steps[f"gelu {m} x {n}"] = [{
        "do": "composite", "op": "math", "fn": "gelu", "m": m // rows, "n": n // cols, "tile": [TILE, TILE],
        "dtype": "f16", "src": {"space": "hbm", "offset": 0}, "dst": {"space": "hbm", "offset": 2 * m * n // pes}}]
    return steps


def short_commands(pes):
    """As a kernel gives them, again and again: {name: steps}."""
    there, here = {"space": "hbm", "offset": 0}, 1 << 21
    load = {"do": "load", "from": there, "to": here, "bytes": 1 << 14}
    store = {"do": "store", "from": here, "to": there, "bytes": 1 << 14}
    product = {"do": "gemm", "m": 64, "k": 64, "n": 64, "dtype": "f16"}
    return {"load, gemm, store": [load, product, store] * SHORT_COMMANDS[pes],
            "gemms of 128 x 128 x 128": [gemm(128, 128, 128)] * SHORT_COMMANDS[pes]}


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
