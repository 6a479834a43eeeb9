"""itself: rows that hold the simulator against itself: size of the machine, op log, trace; and what kernels cost."""
import json
import os
import re
import subprocess

from inputs import exact, gemm, gemm_services, lengthened, machine, repeated, services_traced, stream
from measure import cpu_s, in_turn, median, ratio
from row import Result, Row, duration, times
from setting import HERE, ROOT, EndsDiffer, NotMeasured, output, write

DELAYS, FEW_DELAYS = 20000, 100
SHAPE = (512, 256, 256)                 # of each PE's GEMM: few tiles, where each event is simulated
LONG_SHAPE = (16384, 512, 512)          # long enough that a launch's start does not count
BENCH = ("m=2048", "k=512", "n=2048", "tile_m=16", "tile_k=32", "tile_n=16")       # many tiles, little to compute


def scale(setting, options=(), shape=LONG_SHAPE):
    """As many launches on 64 PEs as make the services of the launches on 4,096."""
    small, large = (setting.simulator(machine(setting, pes)) for pes in (64, 4096))
    one, each = stream(setting, "scale", gemm(*shape)), gemm_services(*shape)
    counted = services_traced(small, one)
    if counted != 64 * each:
        raise EndsDiffer(f"{counted} stage services in the trace, {64 * each} by the shapes")
    on_large, launches = lengthened(setting, large, one, *options)
    on_small = repeated(setting, one, 64 * launches)
    many, few = in_turn(setting.pairs, lambda: cpu_s(large, "replay", on_large, *options),
                        lambda: cpu_s(small, "replay", on_small, *options))
    cost, services = ratio(many, few), 4096 * each * launches
    return Result(times(cost), None if options else cost <= 1.5,
                  f"{duration(median(many) / services)} a service on 4,096 PEs, "
                  f"{duration(median(few) / services)} on 64; {services:,} services each, whole processes",
                  {"ratio": cost, "services": services, "pes_4096": many, "pes_64": few})


def irregular_scale(setting):
    """The same with every event simulated, whatever repeats itself."""
    options = exact(setting.simulator(machine(setting, 64)))
    if not options:
        raise NotMeasured("replay has no --exact-events: scale simulates every event")
    return scale(setting, options, SHAPE)


def ref_sip(setting):
    return setting.simulator(os.path.join(ROOT, "topologies", "ref_sip.yaml"), "-k", os.path.join(HERE, "gemm.c"))


def bench_host(setting, *words, bench="spread_gemm"):
    """What a run of gemm.c's bench on ref_sip, or of one of the library, says of the host."""
    result = setting.path("run.json")
    cpu_s(ref_sip(setting), "run", bench, *words, "--json", result)
    with open(result, encoding="utf-8") as file:
        return json.load(file)["host"]


def oplog(setting):
    """The op log alone; and with the race check, which runs beside it unless it is switched off."""
    def simulation(*options):
        return lambda: bench_host(setting, *BENCH, *options)["simulation_s"]
    on, off, checked = in_turn(setting.pairs, simulation("--races", "off"), simulation("--data", "off"), simulation())
    cost = ratio(on, off)
    return Result(times(cost), cost <= 1.3, f"{duration(median(on))} of simulation, by its own clock, with the op log "
                  f"(gemm.c --data verify --races off on ref_sip), {duration(median(off))} without (--data off); with the "
                  f"race check as well {duration(median(checked))}, {times(ratio(checked, off))}",
                  {"ratio": cost, "on": on, "off": off, "checked": checked})


def oplog_file(setting):
    """Every event is simulated on both sides, since every stage of a tile is in the file."""
    exactly = exact(ref_sip(setting), "run")
    path = setting.path("op.log")
    on, off = in_turn(setting.pairs,
                      lambda: bench_host(setting, *BENCH, "--data", "off", "--oplog", path)["simulation_s"],
                      lambda: bench_host(setting, *BENCH, "--data", "off", *exactly)["simulation_s"])
    cost, size = ratio(on, off), os.path.getsize(path)
    return Result(times(cost), cost <= 1.3, f"{duration(median(on))} of simulation, by its own clock, with --oplog "
                  f"FILE of {size / 1e6:.3g} MB (gemm.c --data off on ref_sip), {duration(median(off))} without",
                  {"ratio": cost, "on": on, "off": off, "bytes": size})


def trace(setting):
    """Every event is simulated on both sides, since all of them are in the trace."""
    program = setting.simulator(machine(setting, 64))
    options = exact(program)
    path, launches = lengthened(setting, program, stream(setting, "traced", gemm(*SHAPE)), *options)
    services = 64 * gemm_services(*SHAPE) * launches
    on, off = in_turn(setting.pairs, lambda: cpu_s(program, "replay", path, *options, "--trace", "/dev/null"),
                      lambda: cpu_s(program, "replay", path, *options))
    cost = ratio(on, off)
    return Result(times(cost), None, f"{duration(median(on) / services)} a service with --trace, "
                  f"{duration(median(off) / services)} without; no build is without the trace, so that what it costs "
                  "when off is not seen", {"ratio": cost, "services": services, "on": on, "off": off})


def has_option(program, option):
    return f"{option} " in subprocess.run([program, "run", "--help"], capture_output=True, text=True, check=True).stdout


def checks(setting):
    """What --profile says of the checks at the end of a run, against the simulation."""
    hosts, = in_turn(setting.pairs, lambda: bench_host(setting, "--data", "off", "--profile", bench="gemm"))
    spent = [lap["ns"] * 1e-9 for host in hosts for lap in host["profile"] if lap["what"] == "conservation checks"]
    if not spent:
        raise NotMeasured("--profile knows no conservation checks")
    share = ratio(spent, [host["simulation_s"] for host in hosts])
    return Result(duration(median(spent)), median(spent) <= 1e-3, f"checks of conservation at the end of gemm on "
                  f"ref_sip, 128 PEs and all its links: {100 * share:.2g} % of its simulation",
                  {"seconds": spent, "share": share})


def kernels(setting):
    """Events are counted where all of them are simulated."""
    options = exact(ref_sip(setting), "run")
    hosts, plain = in_turn(setting.pairs, lambda: bench_host(setting, "--data", "off", *options),
                           lambda: bench_host(setting, "--data", "off")["simulation_s"])
    rate, seconds = (median(host[key] for host in hosts) for key in ("events_per_s", "simulation_s"))
    return Result(f"{rate / 1e6:.3g} M/s", None, f"events of gemm.c --data off on ref_sip, {duration(seconds)} of "
                  f"simulation with {' '.join(options) or 'every event'}, {duration(median(plain))} as it comes",
                  {"events_per_s": rate, "simulation_exact": seconds, "simulation": plain})


def library_points(setting):
    """A file of points for each bench of the library: those of its tests that run on every machine, and collectives."""
    folder, files = os.path.join(ROOT, "tests", "library"), {}
    for name in sorted(os.listdir(folder)):
        bench, _, suffix = name.rpartition(".")
        if suffix == "jsonl":
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                files[bench] = "".join(line for line in file if '"on"' not in line and '"plain"' not in line)
    for bench in ("all_gather", "all_reduce", "all_to_all", "broadcast", "reduce", "reduce_scatter"):
        files[bench] = '{"size": 100000}\n'
    return {bench: write(setting.path(bench + ".jsonl"), text) for bench, text in files.items()}


def races(setting):
    program = setting.simulator(os.path.join(ROOT, "tests", "library", "eight.yaml"))
    points = library_points(setting)
    def seconds(option):
        return {bench: cpu_s(program, "run", bench, "--races", option, "--points", path)
                for bench, path in points.items()}
    on, off = in_turn(setting.pairs, lambda: seconds("on"), lambda: seconds("off"))
    all_on, all_off = ([sum(each.values()) for each in runs] for runs in (on, off))
    cost = ratio(all_on, all_off)
    worst, bench = max((ratio([each[name] for each in on], [each[name] for each in off]), name) for name in points)
    return Result(times(cost), cost <= 1.5, f"{duration(median(all_on))} with the race check, "
                  f"{duration(median(all_off))} without: the benches of the library with data on 8 PEs, whole "
                  f"processes; {bench} costs most, {times(worst)}",
                  {"ratio": cost, "on": all_on, "off": all_off, "worst": worst, "worst_bench": bench})


def library_benches(setting):
    """A simulator of ref_sip, and the names of the library's benches."""
    program = setting.simulator(os.path.join(ROOT, "topologies", "ref_sip.yaml"))
    listed = subprocess.run([program, "list"], capture_output=True, text=True, check=True).stdout
    return program, re.findall(r"^(\w+): .*\(kernels/", listed, re.MULTILINE)


def beside_exact(setting, *watched):
    """Runs of each bench of the library with every event simulated, and the same with the options of each of `watched`. Of each
    of these, how many times as long all of them take, the bench that takes most times as long, and the CPU times of the sums."""
    program, benches = library_benches(setting)
    options = exact(program, "run")
    if not options or not has_option(program, watched[0][0]):
        raise NotMeasured(f"run has no {watched[0][0]}")

    def seconds(words):
        return {bench: cpu_s(program, "run", bench, "--data", "off", *words) for bench in benches}

    *on, off = in_turn(setting.pairs, *(lambda words=words: seconds(words) for words in (*watched, options)))
    sums = [[sum(each.values()) for each in runs] for runs in (*on, off)]
    costs = [{bench: ratio([each[bench] for each in runs], [each[bench] for each in off]) for bench in benches} for runs in on]
    return [ratio(those, sums[-1]) for those in sums[:-1]], [max((each[bench], bench) for bench in benches) for each in costs], \
        sums, costs


def timeline_sizes(setting):
    """Of the timelines of all benches of the library: their bytes, those of the files that are compressed, and the slices, each
    of which has one packet that ends it."""
    program, benches = library_benches(setting)
    path = setting.path("sizes.pftrace")
    plain = zipped = slices = 0
    for bench in benches:
        cpu_s(program, "run", bench, "--data", "off", "--timeline", path)
        cpu_s(program, "run", bench, "--data", "off", "--timeline", path + ".gz")
        plain, zipped = plain + os.path.getsize(path), zipped + os.path.getsize(path + ".gz")
        with open(path, "rb") as file:
            slices += len(re.findall(rb"\x50\x01\x5a.\x48\x02\x58", file.read(), re.DOTALL))
    if not slices:
        raise NotMeasured("no packet of a timeline ends a slice: the writer has changed")
    return plain, zipped, slices


def timeline(setting):
    """Every event is simulated on both sides. The runs have fewer slices than a timeline may have."""
    path = setting.path("library.pftrace")
    (cost, more), (worst, worst_gz), (on, compressed, off), costs = \
        beside_exact(setting, ("--timeline", path), ("--timeline", path + ".gz"))
    plain, zipped, slices = timeline_sizes(setting)
    return Result(times(max(cost, more)), max(cost, more) <= 3, f"{duration(median(compressed))} of CPU time with --timeline FILE.gz, "
                  f"{duration(median(on))} with FILE, {duration(median(off))} without: the benches of the library --data off on "
                  f"ref_sip, whole processes; {worst_gz[1]} costs most, {times(worst_gz[0])}, with FILE {worst[1]}, "
                  f"{times(worst[0])}; {zipped / slices:.3g} bytes a slice in FILE.gz, {plain / slices:.3g} in FILE",
                  {"ratio": cost, "ratio_gz": more, "on": on, "gz": compressed, "off": off, "worst": worst_gz[0],
                   "worst_bench": worst_gz[1], "benches": costs[1], "slices": slices, "bytes": plain, "bytes_gz": zipped})


def why(setting):
    """Every event is simulated on both sides."""
    (cost,), ((worst, bench),), (on, off), costs = beside_exact(setting, ("--why",))
    return Result(times(cost), cost <= 2, f"{duration(median(on))} of CPU time with --why, {duration(median(off))} without: the "
                  f"benches of the library --data off on ref_sip, whole processes; {bench} costs most, {times(worst)}",
                  {"ratio": cost, "on": on, "off": off, "worst": worst, "worst_bench": bench, "benches": costs[0]})


def library(setting, goal, *options):
    """All benches of the library, one after the other, as a user runs them: at their defaults on ref_sip."""
    program, benches = library_benches(setting)
    runs, = in_turn(setting.pairs, lambda: {bench: cpu_s(program, "run", bench, *options) for bench in benches})
    seconds = [sum(run.values()) for run in runs]
    most, bench = max((median([run[bench] for run in runs]), bench) for bench in benches)
    return Result(f"{median(seconds):.3g} s", median(seconds) <= goal,
                  f"{len(benches)} benches{' '.join(('',) + options)} on ref_sip at their defaults, whole processes; "
                  f"{bench} takes longest, {duration(most)}",
                  {"seconds": seconds, "benches": {name: median([run[name] for run in runs]) for name in benches}})


def library_events(setting):
    """Events for each second of CPU time of all benches of the library together. A result has a row for each command: so events
    are counted in runs of their own, in which they are the same."""
    program, benches = library_benches(setting)
    path, events = setting.path("run.json"), 0
    for bench in benches:
        output(program, "run", bench, "--data", "off", "--json", path)
        with open(path, encoding="utf-8") as file:
            events += json.load(file)["host"]["events"]
    seconds, = in_turn(setting.pairs, lambda: sum(cpu_s(program, "run", bench, "--data", "off") for bench in benches))
    rate = events / median(seconds)
    return Result(f"{rate / 1e6:.3g} M/s", rate >= 7e6, f"{events / 1e6:.3g} M events of {len(benches)} benches --data off on "
                  "ref_sip at their defaults, for each CPU second of the whole processes",
                  {"events_per_s": rate, "events": events, "seconds": seconds})


def resumption(setting):
    """The difference between many delays and few is what each takes: one event, one resumption, one suspension."""
    program = setting.simulator(os.path.join(ROOT, "topologies", "ref_sip.yaml"), "-k", os.path.join(HERE, "delays.c"))
    many, few = in_turn(setting.pairs, *(lambda count=count: cpu_s(program, "run", "delays", f"count={count}")
                                         for count in (FEW_DELAYS + DELAYS, FEW_DELAYS)))
    each = median(a - b for a, b in zip(many, few)) / DELAYS / 128
    return Result(duration(each), None, f"for each of {DELAYS} delays of 128 kernels on ref_sip: an "
                  "event, a resumption and a suspension", {"each": each, "many": many, "few": few})


def set_points(setting):
    """What a point of a sweep takes more if it replaces numbers, here by those that are there: the runs are the same."""
    program, count = setting.simulator(os.path.join(ROOT, "topologies", "ref_sip.yaml")), 3000
    sets = {"cube.noc.link_bw_gbs": 128, "cube.hbm_ctrl.attrs.access_ns": 73, "sip.ucie.latency_ns": 11}
    other, plain = (write(setting.path(name), count * (json.dumps(point) + "\n"))
                    for name, point in (("sets.jsonl", {"--set": sets}), ("plain.jsonl", {})))
    words = ("run", "softmax", "rows=16", "cols=128", "pes=sip0.cube0.pe0", "--data", "off", "--json",
             setting.path("answers.jsonl"), "--points")
    on, off = in_turn(setting.pairs, lambda: cpu_s(program, *words, other), lambda: cpu_s(program, *words, plain))
    each = (min(on) - min(off)) / count                 # it is less than what a busy machine adds to either
    return Result(duration(each), each <= 0.5e-3, f"a point of a sweep with three numbers of ref_sip replaced, more than one "
                  f"without, {duration(median(off) / count)}", {"each": each, "on": on, "off": off})


def whatif(setting):
    program = setting.simulator(os.path.join(ROOT, "topologies", "ref_sip.yaml"))
    seconds, = in_turn(setting.pairs, lambda: cpu_s(program, "whatif", "gemm_2d"))
    return Result(f"{median(seconds):.3g} s", median(seconds) <= 3, "whatif gemm_2d on ref_sip: each number of the machine "
                  "better by 10%, whole processes", {"seconds": seconds})


ROWS = [Row("scale", "<= 1.5x", scale, skips=True), Row("irregular-scale", "-", irregular_scale),
        Row("oplog", "<= 1.3x", oplog), Row("oplog-file", "<= 1.3x", oplog_file), Row("trace", "-", trace),
        Row("timeline", "<= 3x", timeline), Row("why", "<= 2x", why), Row("checks", "<= 1 ms", checks),
        Row("races", "<= 1.5x", races), Row("kernels", "-", kernels),
        Row("library-timing", "<= 0.9 s", lambda setting: library(setting, 0.9, "--data", "off")),
        Row("library-events", ">= 7 M/s", library_events), Row("resumption", "-", resumption),
        Row("library-data", "<= 63 s", lambda setting: library(setting, 63)),
        Row("set", "<= 0.5 ms", set_points), Row("whatif", "<= 3 s", whatif)]
