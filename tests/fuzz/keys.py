"""keys: which numbers of a topology the work on a critical path takes its time from, and how to change them."""
from fractions import Fraction

PARTS = "cube.pe_template.components.pe_{}.attrs.".format
HBM, SRAM = "cube.hbm_ctrl.attrs.", "cube.sram.attrs."
OVERHEADS = {"noc": "cube.noc.router", "port": "cube.port", "hbm_ctrl": "cube.hbm_ctrl.attrs", "sram": "cube.sram.attrs",
             "m_cpu": "cube.m_cpu.attrs", "io_cpu": "sip.io_cpu", "pcie_ep": "sip.pcie_ep", "switch": "system.switch",
             "host": "system.host"}
MOST_RATE = 10 ** 15                                            # bytes per second, the most that a key can say
LINKS = {"pcie": ("system.pcie.latency_ns", "system.pcie.bw_gbs"), "io": ("sip.io.latency_ns", "sip.io.bw_gbs"),
         "ucie": ("sip.ucie.latency_ns", "sip.ucie.bw_gbs"), "noc": ("cube.noc.pitch_mm", "cube.noc.link_bw_gbs"),
         "attach": ("cube.noc.attach.length_mm", "cube.noc.attach.bw_gbs")}


def kind_of(node):
    """What a node's id says that it is: a key of OVERHEADS, or a part of a PE."""
    return next((word for word in node.split(".") if word in OVERHEADS), node.rsplit(".", 1)[-1])


def links_of(at):
    ends = {kind_of(end) for end in at.split(" -> ")}
    return LINKS["pcie" if "switch" in ends else "io" if "io_cpu" in ends else "ucie" if ends == {"port"}
                 else "noc" if ends == {"noc"} else "attach"]


def overhead_of(node):
    kind = kind_of(node)
    return (OVERHEADS[kind] if kind in OVERHEADS else PARTS(kind[3:])[:-1]) + ".overhead_ns"


def bandwidths(at):
    """Of a channel."""
    node, which = at.split()
    if node.endswith("sram"):
        return [f"{SRAM}{which}_bw_gbs"]
    return [PARTS("tcm") + which + "_bw_gbs", "cube.pe_template.links.fetch_store_to_tcm_bw_gbs"]


def keys_of(work, at, topology):
    """The keys, of which the time of work somewhere is made. What a barrier waits for is on the way to other PEs."""
    if work == "node":
        return [overhead_of(at)]
    if work == "wire":
        return [links_of(at)[0]] if " -> " in at else [
            f"cube.pe_template.links.{key}" for key in topology.part("cube.pe_template.links").values
            if key.endswith(f"_to_{at.rsplit('.pe_', 1)[1]}_mm")]
    if work == "link":
        return [links_of(at)[1]]
    if work == "channel":
        return bandwidths(at)
    if work == "stream":
        return ([HBM + "pc_bw_gbs", HBM + "row_miss_ns"] if ".hbm_ctrl." in at
                else bandwidths(at.replace("pe_dma", "pe_tcm") + " read"))
    if work == "engine":
        kind = at.rsplit(".pe_", 1)[1]
        return [PARTS(kind) + "overhead_ns"] + [PARTS(kind) + "clock_ghz"] * (kind in ("gemm", "math"))
    if work == "barrier":
        return [key for key, _ in LINKS.values()] + [path + ".overhead_ns" for path in OVERHEADS.values()] + [
            PARTS("cpu") + "overhead_ns"]
    return {"pseudo_channel": [HBM + "pc_bw_gbs"], "row": [HBM + "row_miss_ns"], "access": [HBM + "access_ns"],
            "feed": [PARTS("scheduler") + "tile_overhead_ns"],
            "translation": [PARTS("mmu") + "tlb_overhead_ns", PARTS("mmu") + "walk_ns"]}.get(work, [])


def times(topology):
    """The keys of all times and lengths above 0."""
    def inside(tree, at):
        for key, value in tree.items():
            if isinstance(value, dict):
                yield from inside(value, f"{at}{key}.")
            elif key.endswith(("_ns", "_mm")) and ps_of(topology, at + key):
                yield at + key
    return list(inside(topology.tree, ""))


def ps_of(topology, key):
    path, name = key.rsplit(".", 1)
    part = topology.part(path)
    return part.ps(name) if name.endswith("_ns") else part.wire_ps(name)


def in_ps(topology, key, ps):
    """A setting of a time or length."""
    if key.endswith("_ns"):
        return f"{key}={ps} ps"
    return f"{key}={float(Fraction(ps) / 1000 / topology.ns_per_mm)}"


def faster(topology, key):
    """The setting that halves a time or length, or doubles a bandwidth or clock; None if it can be no faster."""
    path, name = key.rsplit(".", 1)
    if name.endswith(("_ns", "_mm")):
        ps = ps_of(topology, key)
        return in_ps(topology, key, ps // 2) if ps > 1 else None
    part = topology.part(path)
    if name.endswith("_ghz"):
        return f"{key}={2 * part.khz(name)} kHz"
    rate = part.rate(name)
    return None if rate is None else f"{key}={2 * rate} B/s" if 2 * rate <= MOST_RATE else f"{key}=~"
