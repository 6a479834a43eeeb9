"""stream: stream.yaml as programs of steps with whole numbers, and what the host does."""
import re

from memory import SPACES, physical
from topology import read_yaml
from units import half_up, number

NUMBERS = ("m", "k", "n", "bytes", "elems")


class Operand:
    """Where a command's data are: a virtual address or a physical one; a tile lies further on in it."""

    def __init__(self, virtual, address):
        self.virtual, self.address = virtual, address


def whole(text):
    return int(number(text))


def own_or(value, own):
    return own if value in (None, "own") else whole(value)


def place(value, sip, cube, pe, own_slice):
    """The physical address of {space, sip, cube, pe, offset}, seen from a PE with its slice of HBM."""
    own = {"hbm": own_slice, "tcm": pe, "sram": 0}[value["space"]]
    return physical(SPACES[value["space"]], own_or(value.get("sip"), sip), own_or(value.get("cube"), cube),
                    own_or(value.get("pe"), own), whole(value.get("offset", "0")))


def operand(value, pe):
    if "va" in value:
        return Operand(True, whole(value["va"]))
    return Operand(False, place(value, pe.sip, pe.cube, pe.number, pe.slice))


def step_for(raw, pe):
    """A step as the PE that runs it sees it."""
    step = dict(raw)
    do = step["do"]
    step.update({key: whole(step[key]) for key in NUMBERS if key in step})
    if do == "delay":
        step["ps"] = half_up(number(step["ns"]) * 1000)
    if do in ("load", "store"):
        far, near = ("from", "to") if do == "load" else ("to", "from")
        step[far], step["tcm"] = operand(step[far], pe), whole(step[near])
    if do == "send":
        step["tcm"] = whole(step["from"])
        step["to"] = step["to"] if isinstance(step["to"], list) else [step["to"]]
    if do == "composite":
        step["tile"] = [whole(side) for side in step["tile"]]
        step["out_dtype"] = step.get("out_dtype", step["dtype"])
        step["pinned"], step["epilogue"] = step.get("pinned", []), step.get("epilogue", [])
        step.update({key: operand(step[key], pe) for key in ("a", "b", "c", "src", "dst") if key in step})
    step["async"] = do == "composite" or step.get("async") == "true"
    return step


class Stream:
    def __init__(self, path):
        raw = read_yaml(path)
        self.programs = raw.get("programs", {})
        self.host = raw.get("host")
        if self.host is None:
            self.host = [*({"do": "map"} | one for one in raw.get("mmu", [])), *raw.get("memory", []),
                         *({"do": "launch"} | one for one in raw["launches"])]
        self.launches = [step for step in self.host if step["do"] == "launch"]


def parts_of(launch):
    return launch.get("parts") or [launch]


def chosen(targets, names):
    """The names that a list of globs picks."""
    patterns = [re.compile("".join({"*": ".*", "?": "."}.get(c) or re.escape(c) for c in one)) for one in targets]
    return {name for name in names if any(pattern.fullmatch(name) for pattern in patterns)}
