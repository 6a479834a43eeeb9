#!/usr/bin/python3
"""compare: `SIM compare` holds simulated times against measured ones, and finds the constants of the device. limit: 200

The device is the same simulator with other numbers; what it measures has noise.
"""
import json
import random

from harness import SAN, SMALL, ok, read, run, scratch, simulator, suite, write

HBM, PE = "cube.hbm_ctrl.attrs.", "cube.pe_template.components."
ACCESS, PC_BW, CLOCK = HBM + "access_ns", HBM + "pc_bw_gbs", PE + "pe_gemm.attrs.clock_ghz"
SHARE = 0.02                                            # within which constants are found


def steps(rng, count):
    """The commands of a program: each is waited for, but for a few."""
    for number in range(count):
        what, later = rng.random(), ", async: true" if rng.random() < 0.15 else ""
        name = f", id: c{number}"
        if what < 0.4:
            space = rng.choice(("hbm, offset: ", "hbm, pe: 1, offset: ", "sram, offset: "))
            yield f"do: load, from: {{ space: {space}{rng.randrange(0, 1 << 20, 4096)} }}, to: 0x200000, bytes: {rng.choice((256, 4096, 65536))}{later}{name}"
        elif what < 0.55:
            yield f"do: store, from: 0x200000, to: {{ space: hbm, offset: {rng.randrange(0, 1 << 20, 4096)} }}, bytes: {rng.choice((256, 4096, 16384))}{name}"
        elif what < 0.75:
            m, k, n = (rng.choice((16, 64, 100, 256)) for _ in range(3))
            yield f"do: gemm, m: {m}, k: {k}, n: {n}, dtype: f16{later}{name}"
        else:
            yield f"do: math, op: {rng.choice(('exp', 'add'))}, elems: {rng.choice((128, 1024, 8192))}, dtype: f16{name}"


def stream(name, seed, count, pes):
    rng = random.Random(seed)
    parts = ", ".join(f"{{ program: p{pe}, targets: [sip0.cube0.pe{pe}] }}" for pe in range(pes))
    programs = "".join(f"  p{pe}:\n" + "".join(f"    - {{ {step} }}\n" for step in steps(rng, count)) for pe in range(pes))
    return write(scratch(name + ".yaml"), f"launches:\n  - parts: [{parts}]\nprograms:\n{programs}")


def rows(program, command, constants):
    """The commands of the device: with their times, as the records of a log."""
    settings = [word for key, value in constants.items() for word in ("--set", f"{key}={value}")]
    ended = run(program, *command, *settings, "--command-log", "-", "--json", scratch("device.json"))
    return [row for row in map(json.loads, ended.stdout.splitlines()) if "cmd" in row]


def log(name, records, columns=("t_ns", "done_ns", "pe", "cmd", "do")):
    lines = [",".join(columns), *(",".join(str(record[column]) for column in columns) for record in records)]
    return write(scratch(name), "\n".join(lines) + "\n")


def measure(records, seed, noise, jitter_ps, outliers=0.0):
    """What a log says of these commands: durations with relative noise, instants with jitter."""
    rng, measured = random.Random(seed), []
    for row in records:
        took = (row["done_ps"] - row["t_ps"]) * (1 + rng.gauss(0, noise)) * (20 if rng.random() < outliers else 1)
        begin = row["t_ps"] + rng.gauss(0, jitter_ps) + 5e9
        measured.append(row | {"t_ns": f"{begin / 1000:.3f}", "done_ns": f"{max(begin, begin + took + rng.gauss(0, jitter_ps)) / 1000:.3f}"})
    return measured


def compare(program, *words):
    ended = run(program, "compare", *words, "--json", "-")
    return json.loads(ended.stdout) if ended.returncode == 0 else ended.said


def zeros(answer):
    kinds = answer["durations"]
    return answer["divergence"] is None and kinds and all(kind["mean_error_ps"] == 0 for kind in kinds + [answer["starts"]])


def simulated_files(program, path):
    """A run is equal to itself, whatever says what it was."""
    files = {word: scratch("same" + end) for word, end in (("--trace", ".trace"), ("--json", ".json"), ("--command-log", ".jsonl"))}
    run(program, "replay", path, *(word for pair in files.items() for word in pair))
    measured = log("same.csv", measure(rows(program, ("replay", path), {}), 1, 0, 0))
    answers = [compare(program, file, measured) for file in (*files.values(), path)]
    ok(all(isinstance(answer, dict) and zeros(answer) and answer["commands"] == 120 for answer in answers),
       "a trace, a result, a log and a stream of one run have its times", *answers)
    ok(len({json.dumps(answer["durations"], sort_keys=True) for answer in answers if isinstance(answer, dict)}) == 1, "and one answer by kind of command")
    ok("no number of the topology explains" in run(program, "compare", path, measured).stdout, "nothing is found where nothing differs")


def by_hand(program, path):
    """Errors, the worst and the first divergence, as computed here."""
    base = rows(program, ("replay", path), {})
    measured = measure(rows(program, ("replay", path), {ACCESS: 45}), 7, 0.02, 300)
    answer = compare(program, "--replay", path, "--fit", "none", log("hand.csv", measured))
    pairs = [(row, m, round(1000 * float(m["t_ns"])), round(1000 * float(m["done_ns"]))) for row, m in zip(base, sorted(measured, key=lambda m: [
        (row["pe"], row["cmd"]) for row in base].index((m["pe"], m["cmd"]))))]
    pairs.sort(key=lambda pair: (pair[0]["t_ps"], pair[0]["pe"], pair[0]["cmd"]))
    offset = pairs[0][0]["t_ps"] - pairs[0][2]
    wrong = []
    for kind in answer["durations"]:
        errors = [(row["done_ps"] - row["t_ps"]) - (done - begin) for row, _, begin, done in pairs if row["do"] == kind["do"]]
        want = (len(errors), sum(errors) / len(errors), sum(map(abs, errors)) / len(errors), max(errors, key=abs))
        got = (kind["commands"], kind["bias_ps"], kind["mean_error_ps"], kind["worst"]["error_ps"])
        wrong += [] if all(abs(a - b) < 1e-6 * max(1, abs(a)) for a, b in zip(want, got)) else [(kind["do"], want, got)]
    starts = [row["t_ps"] - (begin + offset) for row, _, begin, _ in pairs]
    wrong += [] if abs(answer["starts"]["bias_ps"] - sum(starts) / len(starts)) < 1 else ["starts"]
    ok(not wrong and len(answer["durations"]) == 4, "bias, mean error and worst of each kind are as computed here", *wrong)
    first = next(row for row, _, begin, done in pairs
                 if abs(row["done_ps"] - row["t_ps"] - (done - begin)) > 0.05 * (done - begin)
                 or abs(row["t_ps"] - begin - offset) > 0.05 * max(begin + offset - pairs[0][0]["t_ps"], done - begin))
    found = answer["divergence"]
    ok((found["pe"], found["cmd"]) == (first["pe"], first["cmd"]), "the first divergence is the first one", found, first)
    line = read(scratch("hand.csv")).splitlines()[found["line"] - 1]
    ok(f",{first['pe']},{first['cmd']}," in line, "its line is that of the log", line)
    loose = compare(program, "--replay", path, "--fit", "none", scratch("hand.csv"), "--tolerance", "1 ms")
    ok(loose["divergence"] is None and loose["tolerance"] == "1 ms", "a tolerance may be a time", loose["divergence"])
    unaligned = compare(program, "--replay", path, "--fit", "none", scratch("hand.csv"), "--align", "none")
    ok(unaligned["offset_ps"] == 0 and abs(unaligned["starts"]["bias_ps"]) > 1e5, "clocks may stay as they are", unaligned["starts"])


def late_start(program, path):
    """A share of a start is one of the time since the first one, not of the command's duration."""
    base = sorted(rows(program, ("replay", path), {}), key=lambda row: (row["t_ps"], row["pe"], row["cmd"]))
    first, last = base[0], base[-1]
    for share in 0.04, 0.065:
        shift = share * (last["t_ps"] - first["t_ps"])
        moved = [*base[:-1], last | {"t_ps": last["t_ps"] + shift, "done_ps": last["done_ps"] + shift}]
        answer = compare(program, "--replay", path, "--fit", "none", log("late.csv", measure(moved, 1, 0, 0)))
        found = answer["divergence"]
        wanted = (last["pe"], last["cmd"]) if share > 0.05 else None
        ok(shift > 0.1 * (last["done_ps"] - last["t_ps"]) and (found and (found["pe"], found["cmd"])) == wanted,
           f"a start {100 * share:g} % of the run late {'diverges' if wanted else 'does not diverge'}", found, last)


def joins(program, path):
    """A record says which command it is of by number, by id, or by its place."""
    records = measure(rows(program, ("replay", path), {}), 1, 0, 0)
    named = [row | {"id": f"c{row['cmd']}", "took_ns": f"{(row['done_ps'] - row['t_ps']) / 1000:.3f}", "t_cycles": row["t_ps"] / 500,
                    "done_cycles": row["done_ps"] / 500} for row in records]
    shuffled = sorted(named, key=lambda row: row["done_ps"], reverse=True)
    for title, columns, *words in (("by number", ("t_ns", "done_ns", "pe", "cmd")), ("by id", ("t_ns", "done_ns", "pe", "id")),
                                   ("by place", ("t_ns", "done_ns", "pe")), ("with a duration", ("t_ns", "took_ns", "pe", "cmd")),
                                   ("in cycles", ("t_cycles", "done_cycles", "pe", "cmd"), "--clock", "2 GHz"), ("with its launch", ("t_ns", "done_ns", "pe", "launch", "cmd"))):
        answer = compare(program, "--replay", path, "--fit", "none", log("join.csv", shuffled, columns), *words)
        ok(isinstance(answer, dict) and zeros(answer) and answer["only_measured"] == answer["only_simulated"] == 0, f"records are joined {title}", answer)
    alone = compare(program, "--replay", path, "--fit", "none", log("join.csv", sorted(named, key=lambda row: row["cmd"]), ("took_ns", "pe")))
    ok(isinstance(alone, dict) and "starts" not in alone and all(kind["mean_error_ps"] == 0 for kind in alone["durations"]), "durations alone are compared", alone)
    starts = compare(program, "--replay", path, "--fit", "none", log("join.csv", named, ("t_ns", "pe", "cmd")))
    ok(isinstance(starts, dict) and starts["durations"] == [] and starts["starts"]["mean_error_ps"] == 0, "starts alone are compared", starts)
    two = write(scratch("two.yaml"), read(path).replace("launches:\n", "launches:\n  - { program: p1, targets: [sip0.cube0.pe1] }\n"))
    records = measure(rows(program, ("replay", two), {}), 1, 0, 0)
    for columns in (("t_ns", "done_ns", "pe", "launch", "cmd"), ("t_ns", "done_ns", "pe", "cmd"), ("t_ns", "done_ns", "pe")):
        answer = compare(program, "--replay", two, "--fit", "none", log("join.csv", records, columns))
        ok(isinstance(answer, dict) and zeros(answer) and answer["commands"] == 180, f"records of two launches are joined by {' '.join(columns[2:])}", answer)
    fewer = [row for row in named if row["cmd"] % 7] + [named[0] | {"cmd": 900}]
    answer = compare(program, "--replay", path, "--fit", "none", log("join.csv", fewer))
    ok(answer["only_simulated"] == 18 and answer["only_measured"] == 1 and zeros(answer), "commands that one side lacks are counted", answer)


FITS = (
    ("three constants, noise of 1 %", {ACCESS: 55, PC_BW: 20, CLOCK: 1.31}, 0.01, 0, 0),
    ("three constants, instants with 0.3 ns of jitter", {ACCESS: 21.5, PC_BW: 47, PE + "pe_dma.attrs.overhead_ns": 9}, 0, 300, 0),
    ("constants several times as large", {PC_BW: 9, "cube.sram.attrs.read_bw_gbs": 40, PE + "pe_math.attrs.clock_ghz": 0.4}, 0.005, 100, 0),
    ("whole numbers", {PE + "pe_gemm.attrs.rows": 32, PE + "pe_gemm.attrs.fill_cycles": 200, PE + "pe_math.attrs.lanes.f16": 64}, 0.005, 100, 0),
    ("one command in thirty takes twenty times as long", {ACCESS: 60, CLOCK: 0.7}, 0.01, 100, 1 / 30),
    ("no noise", {ACCESS: 43.21, PC_BW: 27.1828, CLOCK: 0.77, PE + "pe_cpu.attrs.overhead_ns": 3.5}, 0, 0, 0),
)


def found(fit, constants):
    """What is wrong with the constants of a fit."""
    got = {constant["key"]: constant for constant in fit["constants"]}
    wrong = [f"{key} is missing" for key in constants if key not in got]
    for key in set(constants) & set(got):
        off, error = got[key]["number"] / constants[key] - 1, got[key].get("standard_error", 0) / constants[key]
        if abs(off) > SHARE or abs(off) > 5 * error + 1e-3:
            wrong.append(f"{key}: {got[key]['number']} instead of {constants[key]}, error {error:.2%}")
    return wrong


def fits(program, path):
    for title, constants, noise, jitter, outliers in FITS[:2] if SAN else FITS:
        for seed in (1, 2) if title == FITS[0][0] and not SAN else (1,):
            measured = log("fit.csv", measure(rows(program, ("replay", path), constants), seed, noise, jitter, outliers))
            answer = compare(program, path, measured, *(word for key in constants for word in ("--fit", key)))
            wrong = found(answer["fit"], constants) if isinstance(answer, dict) else [answer]
            ok(not wrong, f"the fit finds {title}, seed {seed}", *wrong)


def standard_errors(program):
    """The error that is stated is that of the fit: for commands that are all alike, and with gaps that the log itself gave."""
    steps = "".join("    - { do: load, from: { space: hbm, offset: 0 }, to: 0x200000, bytes: 4096 }\n    - { do: gemm, m: 64, k: 64, n: 64, dtype: f16 }\n"
                    for _ in range(60))
    path = write(scratch("alike.yaml"), f"launches:\n  - {{ program: p0, targets: [sip0.cube0.pe0] }}\nprograms:\n  p0:\n{steps}")
    constants, columns = {ACCESS: 37, CLOCK: 0.8}, ("t_ns", "done_ns", "pe", "do", "from", "to", "bytes", "m", "k", "n", "dtype")
    device = rows(program, ("replay", path), constants)
    far = []
    for seed in range(1, 7):
        measured = [row | ({"from": "hbm", "to": "0x200000", "bytes": 4096, "m": "", "k": "", "n": "", "dtype": ""} if row["do"] == "load" else
                           {"from": "", "to": "", "bytes": "", "m": 64, "k": 64, "n": 64, "dtype": "f16"}) for row in measure(device, seed, 0.01, 0)]
        file, imported = log("alike.csv", measured, columns), scratch("imported.yaml")
        run(program, "import", file, "-o", imported)
        for simulated in (path, imported):
            answer = compare(program, "--replay", simulated, file, *(word for key in constants for word in ("--fit", key)))
            got = {constant["key"]: constant for constant in answer["fit"]["constants"]} if isinstance(answer, dict) else {}
            for key, value in constants.items():
                away = (got[key]["number"] - value) / got[key]["standard_error"] if key in got else 1e9
                if abs(away) > 3.5:
                    far.append(f"seed {seed}, {simulated}: {key} is {away:.1f} standard errors away")
    ok(not far, "constants are within 3.5 standard errors of those of the device", *far)


def automatic(program, path):
    """Without keys, the fit finds which constants differ."""
    for constants in ({CLOCK: 1.4}, {ACCESS: 70, PE + "pe_math.attrs.clock_ghz": 0.5}):
        measured = log("auto.csv", measure(rows(program, ("replay", path), constants), 3, 0.01, 50))
        ended = run(program, "compare", path, measured, "--json", scratch("auto.json"))
        answer = json.loads(read(scratch("auto.json")))
        wrong = found(answer["fit"], constants)
        ok(not wrong and len(answer["fit"]["constants"]) == len(constants), f"the fit finds which of all constants differ: {len(constants)}",
           *wrong, answer["fit"]["constants"])
        settings = ended.stdout.strip().splitlines()[-1].split()
        again = run(program, "compare", path, measured, "--fit", "none", "--json", "-", *settings)
        bias = json.loads(again.stdout)["durations"] if again.returncode == 0 else []
        ok(bias and all(abs(kind["bias_ps"]) < 0.02 * kind["measured_ps"] for kind in bias), "its last line is the options of a machine with these times", again.said)


def undetermined(program, path):
    measured = log("less.csv", measure(rows(program, ("replay", path), {CLOCK: 1.2}), 3, 0.01, 50))
    fit = compare(program, path, measured, "--fit", "system.pcie.latency_ns", "--fit", CLOCK)["fit"]
    notes = {constant["key"]: (constant["determined"], constant.get("note")) for constant in fit["constants"]}
    ok(notes["system.pcie.latency_ns"] == (False, "no measured time depends on it") and notes[CLOCK][0] and not found({"constants": fit["constants"][1:]}, {CLOCK: 1.2}),
       "a constant on which no time depends is named, and stays", fit)
    twins = (PE + "pe_math.attrs.overhead_ns", PE + "pe_math.attrs.fill_cycles")
    fit = compare(program, path, measured, "--fit", twins[0], "--fit", twins[1], "--fit", CLOCK)["fit"]
    notes = {constant["key"]: (constant["determined"], constant.get("note", "")) for constant in fit["constants"]}
    ok([notes[key] for key in twins] == [(False, f"the times do not tell it from {key}") for key in reversed(twins)] and notes[CLOCK][0],
       "constants that the times do not tell apart are named", fit)


def bench(program):
    """A bench is run again for the fit as well."""
    command, constants = ("softmax", "rows=64", "cols=256"), {ACCESS: 51, PE + "pe_math.attrs.clock_ghz": 0.6}
    measured = log("bench.csv", measure(rows(program, ("run", *command, "--data", "off"), constants), 5, 0.01, 100))
    answer = compare(program, measured, "--bench", " ".join(command), *(word for key in constants for word in ("--fit", key)))
    wrong = found(answer["fit"], constants) if isinstance(answer, dict) else [answer]
    ok(not wrong, "the fit of a bench finds two constants", *wrong)


def wrong_use(program, path):
    good = log("good.csv", measure(rows(program, ("replay", path), {}), 1, 0, 0))
    trace = scratch("same.trace")
    bad = {
        "empty": ("", "the log has no record"), "header": ("t_ns,pe\n", "has no command of"), "time": ("pe,cmd\n0,0\n", "2:1: error: the record has no time"),
        "twice": ("t_ns,pe,cmd\n1,0,1\n2,0,1\n", "3:1: error: command 1 of sip0.cube0.pe0 is here twice"), "pe": ("t_ns,pe\n1,7\n", "2:3: error: pe must be"),
        "word": ("t_ns,pe,cmd,do\n1,0,0,laod\n", "2:7: error: there is no command 'laod'; did you mean 'load'?"),
        "id": ("t_ns,pe,id\n1,0,nobody\n", "2:5: error: no command of sip0.cube0.pe0 has the id 'nobody'"),
        "kind": ("t_ns,pe,cmd,do\n1,0,0,send\n", "2:1: error: this is a send, but in the simulation sip0.cube0.pe0, launch 0, command 0 is a"),
        "long": ("t_ns,took_ns,pe\n1,1e18,0\n", "2:1: error: the command takes more than 20 days"),
        "far": ("t_ns,pe,cmd\n1,0,0\n1e18,0,1\n", "the record is more than 20 days after the first one"),
    }
    for name, (text, said) in bad.items():
        out = scratch("bad.json")
        ended = run(program, "compare", path, write(scratch(name), text), "--json", out)
        ok(ended.returncode == 2 and said in ended.stderr and not read(out), f"wrong times are refused: {name}", ended.said[:500])
    traces = {
        "gap": ('{"t":1,"ev":"command_submitted","node":"sip0.cube0.pe0.pe_scheduler","cmd":1}\n', "1:1: error: command 1 of sip0.cube0.pe0 is submitted, but 0 comes next"),
        "end": ('{"t":1,"ev":"command_complete","node":"sip0.cube0.pe0.pe_scheduler","cmd":0}\n', "is complete, but was not submitted"),
        "node": ('{"t":1,"ev":"command_submitted","node":"sip0.m_cpu","cmd":0}\n', "1:40: error: there is no part 'sip0.m_cpu' of a PE"),
        "key": ('{"t":1,"ev":"command_submitted","cmd":0}\n', "1:1: error: 'node' is missing"), "half": ('{"t":1,"ev":"comm', "1:13: error: this text has no end"),
        "result": ('{"launches": 3}', "this is no result of --json"), "row": ('{"launches": [{"commands": [{"pe": "sip0.cube0.pe0"}]}]}', "'n' of a command is missing"),
    }
    for name, (text, said) in traces.items():
        ended = run(program, "compare", write(scratch(name), text), good)
        ok(ended.returncode == 2 and said in ended.stderr, f"what was simulated is refused: {name}", ended.said[:500])
    for words, said in (((good,), "needs what was simulated"), ((trace, good, "--fit", ACCESS), "needs --replay"), ((path, good, "--fit", "hbm"), "has no such number"),
                        ((path, good, "--fit", "cube.hbm_ctrl.attrs.acess_ns"), "did you mean 'cube.hbm_ctrl.attrs.access_ns'?"),
                        ((path, good, "--fit", ACCESS, "--fit", ACCESS), "is given twice"), ((path, good, "--fit", "none", "--fit", ACCESS), "--fit none"),
                        ((path, good, "--tolerance", "-1 ns"), "--tolerance"), ((path, good, "--align", "last"), "--align last"),
                        ((good, "--bench", ""), "--bench needs a bench"), ((good, "--bench", "gemm" + 1025 * " M=1"), "--bench has more than 1025 words"), ((good, "--bench", "gemm", "--replay", path), "two runs")):
        ended = run(program, "compare", *words)
        ok(ended.returncode == 2 and said in ended.stderr, f"compare refuses {' '.join(words[1:])[-60:]}", ended.said[:500])
    other = run(program, "compare", trace, good, "--replay", path, "--set", ACCESS + "=50", "--fit", "none")
    ok(other.returncode == 0 and "is of another run or machine" in other.stderr, "a trace of another machine is told from the run", other.said[:500])


def main():
    program = simulator(SMALL, "small")
    path = stream("device", 11, 60, 2)
    simulated_files(program, path)
    by_hand(program, path)
    late_start(program, path)
    joins(program, path)
    fits(program, path)
    standard_errors(program)
    if not SAN:                                         # hundreds of runs, which fits() makes a few of
        automatic(program, path)
    undetermined(program, path)
    bench(program)
    wrong_use(program, path)


suite(main)
