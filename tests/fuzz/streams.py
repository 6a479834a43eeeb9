"""streams: random commands for a machine: every kind, composites, messages between PEs, launches, and faults."""
import copy

from stream import chosen, parts_of

DTYPES = ("f16", "f16", "bf16", "f32", "i8")
F8 = ("f8e4m3", "f8e5m2")
OPS = ("relu", "exp", "add", "bias_add", "tanh", "gelu", "cast")
SIZES = (1, 64, 64, 256, 512, 4096, 4096, 5000, 3000)
FIRST_VA = 0x10000000
REGION = 0x10000
SPACES = ("hbm", "sram", "tcm")


class Facts:
    """What a stream has to know of its machine."""

    def __init__(self, topology):
        self.sips, self.cubes = topology.sips, topology.cube_rows * topology.cube_cols
        self.pes_of_cube, self.slices = topology.pes, topology.slices
        sizes, tcm, mmu, rings = (topology.part("cube.memory_map"), topology.pe("pe_tcm"), topology.pe("pe_mmu"),
                                  topology.pe("pe_ipcq"))
        self.sizes = {"hbm": sizes.bytes("hbm_slice_mb"), "sram": sizes.bytes("sram_mb"), "tcm": tcm.bytes("size_mb")}
        self.low = tcm.bytes("reserved_mb")
        self.has_sram = topology.has_sram
        self.spaces = ["hbm"] * 3 * (topology.slices > 0) + ["sram"] * topology.has_sram + ["tcm"]
        self.gemm_dtypes = [one for one in F8 if one in topology.pe("pe_gemm").counts("k_per_cycle")]
        self.math_dtypes = [one for one in F8 if one in topology.pe("pe_math").counts("lanes")]
        self.mmu, self.page = mmu.values["enabled"] == "true", mmu.bytes("page_kb")
        self.slot = rings.bytes("slot_kb")
        self.pes = [f"sip{s}.cube{c}.pe{p}" for s in range(self.sips) for c in range(self.cubes)
                    for p in range(self.pes_of_cube)]

    def count(self, space):
        """Of the memories of a kind in a cube that an address may name."""
        return self.slices if space == "hbm" else self.pes_of_cube


class Drawn:
    """One stream in the making."""

    def __init__(self, rng, facts):
        self.rng, self.facts = rng, facts
        self.hostile = rng.choice((0, 0, 0, 0.02, 0.1))     # how often a fault is asked for
        self.async_share = rng.choice((0.2, 0.6, 0.95))
        self.maps = self.draw_maps() if facts.mmu or rng.random() < 0.1 else []

    def wrong(self):
        return self.rng.random() < self.hostile

    # ---- addresses

    def offset(self, space, size):
        """A place in a memory for some bytes: often the same, sometimes odd, seldom beyond the end, or where there is
        no memory."""
        rng, low, end = self.rng, self.facts.low if space == "tcm" else 0, self.facts.sizes[space]
        if self.wrong():
            return rng.choice((end, max(0, end - size + 1) if size > 1 else end, (1 << 36) - 1, max(0, low - 1)))
        room = max(0, end - low - size)
        return low + min(room, rng.choice((0, 0, 64, 256, 4096, 0x4000, 0x8000, rng.randrange(room + 1))))

    def physical(self, size):
        rng, facts = self.rng, self.facts
        value = {"space": rng.choice(SPACES if self.wrong() else facts.spaces)}
        for key, count in (("sip", facts.sips), ("cube", facts.cubes), ("pe", facts.count(value["space"]))):
            if rng.random() < 0.25 and count and not (key == "pe" and value["space"] == "sram"):
                value[key] = rng.choice((rng.randrange(count), rng.randrange(count), "own"))
            if self.wrong() and key != "sip":
                value[key] = rng.choice((count, 200))
        if offset := self.offset(value["space"], size):
            value["offset"] = offset
        return value

    def number(self, size):
        """A physical address as the number it is: what a va is with the MMU off."""
        value, rng, facts = self.physical(size), self.rng, self.facts
        sip, cube, pe = (value.get(key) if isinstance(value.get(key), int) else rng.randrange(count or 1)
                         for key, count in (("sip", facts.sips), ("cube", facts.cubes), ("pe", facts.count(value["space"]))))
        space = {"hbm": 0, "tcm": 1, "sram": 2}[value["space"]]
        if space == 2 and not self.wrong():
            pe = 0
        return pe << 56 | sip << 48 | cube << 40 | space << 36 | value.get("offset", 0)

    def address(self, size):
        rng = self.rng
        if not self.facts.mmu:
            return {"va": self.number(size)} if rng.random() < 0.15 else self.physical(size)
        if rng.random() < 0.3:
            return self.physical(size)
        if self.wrong():
            return {"va": rng.choice((0, FIRST_VA - 100, FIRST_VA + len(self.maps) * REGION - 64, (1 << 64) - size))}
        region = FIRST_VA + rng.randrange(len(self.maps)) * REGION
        span = len(self.maps) * REGION + FIRST_VA - region
        return {"va": region + min(max(0, span - size), rng.choice((0, 0, 64, 4096, 0xF000, rng.randrange(REGION))))}

    def draw_maps(self):
        """Regions one after the other; several may lie in one memory, side by side or over each other."""
        rng, facts, maps = self.rng, self.facts, []
        for i in range(rng.randrange(1, 7)):
            to = {"space": rng.choice(SPACES if self.wrong() else facts.spaces)}
            size = facts.sizes[to["space"]]
            places = [at for at in (i * REGION, 0, REGION, facts.low) if at + REGION <= size]
            if to["space"] == "tcm":
                places = [at for at in places if at >= facts.low]
            to["offset"] = rng.choice(places or [0])
            for key, count in (("cube", facts.cubes), ("pe", facts.count(to["space"]))):
                if rng.random() < 0.2 and count and not (key == "pe" and to["space"] == "sram"):
                    to[key] = rng.randrange(count)
            hole = self.hostile and rng.random() < 0.3
            va = FIRST_VA + i * REGION
            start = -(-va // facts.page) * facts.page
            maps.append({"va": start, "bytes": rng.choice((1, 5000)) if hole else va + REGION - start, "to": to})
        return maps

    def near(self, size):
        """An offset in the PE's own TCM."""
        return self.offset("tcm", size)

    # ---- commands

    def step(self):
        draw = self.rng.choice((self.load, self.load, self.store, self.store, self.gemm, self.math, self.composite_gemm,
                                self.composite_gemm, self.composite_math, self.delay))
        return draw()

    def blocking(self, step):
        return step | ({"async": True} if self.rng.random() < self.async_share else {})

    def load(self):
        size = self.rng.choice(SIZES)
        return self.blocking({"do": "load", "from": self.address(size), "to": self.near(size), "bytes": size})

    def store(self):
        size = self.rng.choice(SIZES)
        return self.blocking({"do": "store", "from": self.near(size), "to": self.address(size), "bytes": size})

    def dtype(self):
        if self.wrong():
            return self.rng.choice(("u8", "i32", "i16", *F8))
        return self.rng.choice(self.facts.gemm_dtypes * 3 + list(DTYPES))

    def math_dtype(self):
        if self.wrong():
            return self.rng.choice(("u8", "i8", "i16", *F8))
        return self.rng.choice(self.facts.math_dtypes + ["f16", "bf16", "f32"])

    def op(self):
        return "nonesuch" if self.wrong() else self.rng.choice(OPS)

    def gemm(self):
        m, k, n = (self.rng.choice((1, 16, 64, 70)) for _ in range(3))
        return self.blocking({"do": "gemm", "m": m, "k": k, "n": n, "dtype": self.dtype()})

    def math(self):
        return self.blocking({"do": "math", "op": self.op(), "elems": self.rng.choice((1, 64, 128, 1000)),
                              "dtype": self.math_dtype()})

    def delay(self):
        return {"do": "delay", "ns": self.rng.choice((0, 0, 1, 2, 10, 50, 0.0004, 123.4567))}

    def dims(self, count):
        """(dimensions, tiles), of some ten tiles at most."""
        rng = self.rng
        while True:
            tile = [rng.choice((8, 16, 16, 32, 7)) for _ in range(count)]
            whole = [max(1, side * rng.choice((1, 1, 2, 3)) + rng.choice((0, 0, 0, -1, 1, 5))) for side in tile]
            tiles = 1
            for side, one in zip(whole, tile):
                tiles *= -(-side // one)
            if tiles <= 10:
                return whole, tile

    def composite_gemm(self):
        rng, ((m, k, n), tile) = self.rng, self.dims(3)
        step = {"do": "composite", "op": "gemm", "m": m, "k": k, "n": n, "tile": tile, "dtype": self.dtype(),
                "c": self.address(m * n * 4)}
        pinned = [name for name in "ab" if rng.random() < 0.2]
        step |= {name: self.address(size * k * 4) for name, size in (("a", m), ("b", n)) if name not in pinned}
        if pinned:
            step["pinned"] = pinned
        if step["dtype"] not in ("f16", "bf16", "f32", *self.facts.math_dtypes) or rng.random() < 0.5:
            step["out_dtype"] = self.math_dtype()
        if rng.random() < 0.5:
            step["epilogue"] = [{"op": self.op(), "scope": rng.choice(("k_tile", "output_tile", "output_tile", "once"))}
                                for _ in range(rng.choice((1, 1, 2, 3)))]
        return step

    def composite_math(self):
        (m, n), tile = self.dims(2)
        step = {"do": "composite", "op": "math", "fn": self.op(), "m": m, "n": n, "tile": tile,
                "dtype": self.math_dtype(), "src": self.address(m * n * 4), "dst": self.address(m * n * 4)}
        return step | ({"out_dtype": self.dtype()} if self.rng.random() < 0.5 else {})

    # ---- programs

    def program(self, count):
        rng, steps, named = self.rng, [], []
        for _ in range(count):
            if named and rng.random() < 0.2:
                steps.append({"do": "wait", "for": rng.sample(named, rng.randrange(1, min(3, len(named)) + 1))})
            step = self.lonely_message() if self.wrong() else self.step()
            if step["do"] != "delay":
                named.append(f"c{len(named)}")
                step = {"do": step["do"], "id": named[-1]} | step
            steps.append(step)
        return steps

    def lonely_message(self):
        """One that nobody may answer, or that a PE sends to itself."""
        pe, size = self.rng.choice(self.facts.pes), self.rng.choice((1, 64, self.facts.slot))
        if self.rng.random() < 0.3:
            return self.blocking({"do": "recv", "from": pe, "to": self.near(size)})
        return self.blocking({"do": "send", "to": self.several([pe]), "from": self.near(size), "bytes": size})

    def several(self, pes):
        """The destinations of a send: a list of one is the same as that one."""
        if self.wrong():
            pes = pes + [self.rng.choice(self.facts.pes)]
        return pes if len(pes) > 1 or self.rng.random() < 0.1 else pes[0]

    def messages(self, programs):
        """Sends and receives between PEs that have a program of their own; nearly all match."""
        rng, facts, names = self.rng, self.facts, list(programs)
        for _ in range(rng.choice((0, 2, 5, 9))):
            source, to = rng.choice(names), [rng.choice(names)]
            if rng.random() < 0.3:
                to = rng.sample(names, rng.randrange(1, len(names) + 1))
            to = [one for one in to if one != source or self.wrong()]
            if not to:
                continue
            size = min(self.facts.slot, rng.choice(SIZES)) + (self.wrong() and self.facts.slot)
            send = self.blocking({"do": "send", "to": self.several(to), "from": self.near(size), "bytes": size})
            receives = [(one, self.blocking({"do": "recv", "from": source, "to": self.near(size)})) for one in to]
            for name, step in [(source, send), *receives]:
                if not self.wrong():
                    programs[name].insert(rng.randrange(len(programs[name]) + 1), step)

    # ---- launches and requests of the host

    def globs(self):
        rng, facts = self.rng, self.facts
        if rng.random() < 0.4:
            return [rng.choice(("*", "sip0.*", "*.pe0", "sip?.cube0.pe*", "*cube0*"))]
        return rng.sample(facts.pes, rng.randrange(1, min(4, len(facts.pes)) + 1))

    def launch(self, number, programs):
        """A launch; its programs go into `programs`."""
        rng, facts = self.rng, self.facts
        if rng.random() < 0.5:
            name = f"p{number}"
            programs[name] = self.program(rng.randrange(1, 6))
            launch = {"program": name, "targets": self.globs()}
        else:
            own = {pe: self.program(rng.randrange(0, 5))
                   for pe in rng.sample(facts.pes, rng.randrange(1, min(5, len(facts.pes)) + 1))}
            self.messages(own)
            names = {pe: f"p{number}_{i}" for i, pe in enumerate(own)}
            programs |= {names[pe]: steps for pe, steps in own.items()}
            launch = {"parts": [{"program": names[pe], "targets": [pe]} for pe in own]}
        if rng.random() < 0.3:
            launch["on_failure"] = rng.choice(("fail_fast", "drain"))
        if rng.random() < 0.08:
            launch["timeout_ns"] = rng.choice((0, 10, 500, 1000.5, 1e6))
        return launch

    def request(self):
        rng, facts, size = self.rng, self.facts, self.rng.choice((64, 4096, 100, 1))
        def place():
            value = {key: one for key, one in self.physical(size).items() if one != "own"}
            if value.get("cube", 0) >= facts.cubes:
                del value["cube"]
            return value
        writes = rng.random() < 0.5
        return {"do": "write" if writes else "read", "to" if writes else "from":
                [place() for _ in range(rng.choice((1, 1, 2, 4)))], "bytes": size}


    # ---- what the host does, in an order of its own

    def targets_of(self, step):
        return chosen([glob for part in parts_of(step) for glob in part["targets"]], self.facts.pes)

    def host_map(self):
        entry = dict(self.rng.choice(self.maps or self.draw_maps()))
        if self.rng.random() < 0.4:
            del entry["to"]
            return {"do": "unmap"} | entry
        return {"do": "map"} | entry

    def host(self, programs):
        """A list of steps: requests in flight together, never a launch and anything else on one PE."""
        rng, steps, flying = self.rng, [], {}           # id -> PEs that nothing else may touch, and whether it launches
        def in_the_way(pes, launches):
            return [name for name, (taken, launch) in flying.items() if taken & pes and (launch or launches)]
        def wait(names):
            if names:
                steps.append({"do": "wait", "for": names})
            for name in names:
                flying.pop(name, None)
        for i in range(rng.choice((2, 4, 6, 9))):
            if rng.random() < 0.15:
                steps.append({"do": "delay", "ns": rng.choice((0, 1, 50, 300, 2000.25, 12000))})
            if flying and rng.random() < 0.15:
                wait(rng.sample(sorted(flying), rng.randrange(1, len(flying) + 1)))
            draw, pes = rng.random(), set()
            if draw < 0.45:
                step = {"do": "launch"} | self.launch(i, programs)
                pes = self.targets_of(step)
                if rng.random() < 0.5:
                    step["start"] = rng.choice(("barrier", "cube", "free"))
            elif draw < 0.65:
                step, pes = self.host_map(), set(self.facts.pes)
                if rng.random() < 0.6:
                    step["targets"] = self.globs()
                    pes = chosen(step["targets"], self.facts.pes)
            else:
                step = self.request()
            wait(in_the_way(pes, step["do"] == "launch"))
            if rng.random() < 0.7:
                step |= {"id": f"h{i}", "async": True}
                flying[f"h{i}"] = pes, step["do"] == "launch"
            steps.append(step)
        return steps


def stream(rng, facts):
    """A stream's tree."""
    drawn, programs = Drawn(rng, facts), {}
    value = {"name": "drawn"}
    if rng.random() < 0.35:
        return value | {"host": drawn.host(programs), "programs": programs}
    if drawn.maps:
        value["mmu"] = drawn.maps
    if rng.random() < 0.2:
        value["memory"] = [drawn.request() for _ in range(rng.choice((1, 2, 3)))]
    value["launches"] = [drawn.launch(i, programs) for i in range(rng.choice((1, 1, 2, 3)))]
    value["programs"] = programs
    return value


def with_timeout(rng, value, result):
    """The stream with a timeout at a time at which something happens in one of its launches; None if nothing does."""
    value = copy.deepcopy(value)
    launches = value["launches"] if "launches" in value else [one for one in value["host"] if one["do"] == "launch"]
    submitted = [at for at, one in enumerate(result["launches"]) if one["status"] != "skipped"]
    if not submitted:
        return None
    at = rng.choice(submitted)
    launch = result["launches"][at]
    times = [one[key] for kind, key in (("pes", "end_ps"), ("commands", "complete_ps"), ("commands", "submitted_ps"))
             for one in launch[kind]] + [launch["done_ps"]] * 3
    times = [time - launch["submitted_ps"] for time in times if time is not None]
    times = [time for time in times if time < 10 ** 15]         # what a float holds exactly, in ns with three places
    if not times:
        return None
    launches[at]["timeout_ns"] = rng.choice(times) / 1000
    return value
