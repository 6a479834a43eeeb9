#!/usr/bin/python3
"""views: strided views on both sides of loads and stores, in messages and in tl_data: every value, every mistake."""
import itertools
import json
import os

from harness import ROOT, is_refused, ok, printed, result, run, scratch, simulator, small_machine, suite, topology

KERNEL = os.path.join(ROOT, "tests", "kernels", "views.c")
DTYPES = ("f32", "f16", "bf16", "i32", "i16", "i8", "u8")
SHAPE = (2, 3, 5, 7)


class View:
    """The positions of the elements of a view, by shape and strides."""

    def __init__(self, shape, stride=None, offset=0):
        self.shape, self.offset = tuple(shape), offset
        self.stride = stride or [self.count(self.shape[axis + 1:]) for axis in range(len(shape))]

    @staticmethod
    def count(shape):
        product = 1
        for size in shape:
            product *= size
        return product

    def every(self, axis, first, step=1, count=None):
        shape, stride = list(self.shape), list(self.stride)
        shape[axis] = count or (shape[axis] - first + step - 1) // step
        stride[axis] *= step
        return View(shape, stride, self.offset + first * self.stride[axis])

    def transposed(self, x, y):
        order = list(range(len(self.shape)))
        order[x], order[y] = y, x
        return View([self.shape[i] for i in order], [self.stride[i] for i in order], self.offset)

    def positions(self):
        for index in itertools.product(*map(range, self.shape)):
            yield self.offset + sum(i * stride for i, stride in zip(index, self.stride))


def want(form, pe, parts):
    """The part of the result that a PE makes of the parts of all; the rest of it stays 1."""
    own, result = parts[pe], [1.0] * 210
    whole = View(SHAPE)
    pairs = {
        "part": lambda: [whole.every(3, 2, count=4).every(1, 1, count=2)] * 2,
        "every": lambda: [whole.every(2, 1, 3), whole.every(2, 0, 4)],
        "transposed": lambda: [whole.transposed(1, 3), View((2, 7, 5, 3))],
        "reshape": lambda: [whole.every(1, 0, count=2), whole.every(1, 1, count=2)],
        "tcm": lambda: [whole.transposed(0, 3), View((7, 3, 5, 2))],
        "sent": lambda: [whole, whole],
    }
    if form == "sent":
        own = parts[pe - 1]
    if form == "looked":                                # of u8: the element (0, 0, 4, 6) gives the place
        first, to = whole.every(3, 6), int(own[34]) % 7
        pairs["looked"] = lambda: [first, whole.every(3, to, count=1)]
    source, target = pairs[form]()
    for at, position in zip(target.positions(), source.positions()):
        result[at] = own[position]
    return result


def viewed(program, where, pes, *words):
    form = dict(word.split("=", 1) for word in words)["form"]
    ended = run(program, "run", "viewed", *words, "--data", "debug")
    got = printed(ended, "from", "to")
    parts = [got.get("from", [])[210 * pe:210 * pe + 210] for pe in range(pes)]
    good = ended.returncode == 0 and len(got["from"]) == 210 * pes
    ok(good and got["to"] == [value for pe in range(pes) for value in want(form, pe, parts)],
       f"views move the right elements on {where}: {' '.join(words)}", ended.said[:4000])


def all_viewed(program):
    forms = ("part", "every", "transposed", "reshape", "tcm", "sent")
    for form, dtype in itertools.product(forms, DTYPES):
        viewed(program, "4 PEs", 4, f"form={form}", f"dtype={dtype}")
    for form, space in itertools.product(forms, ("sram", "tcm")):
        viewed(program, "4 PEs", 4, f"form={form}", "dtype=i16", f"space={space}", "async=true")
    for form in forms[:-1] + ("looked",):
        viewed(program, "one PE", 1, f"form={form}", "dtype=u8", "async=true", "pes=sip0.cube1.pe0")
    viewed(program, "4 PEs", 4, "form=looked", "dtype=u8")


def many_pes():
    """8 and 128 PEs, a branch on loaded data on each."""
    made = simulator(topology("ref_sip"), "ref_sip", [KERNEL])
    for form in ("looked", "transposed", "sent"):
        viewed(made, "8 PEs", 8, f"form={form}", "dtype=u8", "pes=sip0.cube3.pe*")
        viewed(made, "128 PEs", 128, f"form={form}", "dtype=u8")


def paged():
    """A strided view sends as many requests as pages that lie apart, at the same time, and moves the same elements."""
    mmu = "cube.pe_template.components.pe_mmu.attrs."
    for settings in ([], [mmu + "tlb_overhead_ns=0", mmu + "walk_ns=0"]):
        program = small_machine(f"paged{len(settings)}", [KERNEL], mmu + "enabled=true", mmu + "page_kb=4", *settings)
        for columns in ("4096", "1000", "1"):
            ends = []
            for way in ("true", "false"):
                ended, made = result(program, "paged", f"paged={way}", f"columns={columns}")
                got = printed(ended, "from", "to", "first", "second")
                pairs = [value for pair in zip(got.get("first", []), got.get("second", [])) for value in pair]
                ok(ended.returncode == 0 and pairs and got["to"] == pairs,
                   f"a view over pages moves the right elements: paged={way}, columns={columns}, settings {settings}",
                   ended.said[:4000])
                ends.append(made["launches"][0]["pe_exec_ps"])
            ok(ends[0] == ends[1] if settings else ends[0] > ends[1],
               f"a view takes the time of its requests: columns={columns}, {ends} ps with and without pages")
        log = scratch("paged.log")
        ended = run(program, "run", "paged", "paged=true", "--oplog", log)
        shown = [json.loads(line) for line in run(program, "oplog", log).stdout.splitlines()]
        loads = [op for op in shown if op.get("op_name") == "dma_read"]
        served = {tuple(op[key] for key in ("pe", "command", "t_start", "t_end", "component")) for op in loads}
        ok(ended.returncode == 0 and len(loads) > len(served) == len({(op["pe"], op["command"]) for op in loads}),
           "the records of one load in the op log all have its times", ended.said, loads)


def written(program):
    for words in ((), ("--data", "off"), ("--data", "debug")):
        ended = run(program, "run", "written", *words)
        ok(ended.returncode == 0, f"tl_data shows what the host wrote, in the order of the view: {words}", ended.said[:4000])


# what, exit status, message.
WRONG = (
    ("none", 0, ""),
    ("axis", 1, r"KERNEL_ERROR .* tl_transposed: a shard of 2 axes has no axis 2"),
    ("step", 1, r"tl_every: the step is 0"),
    ("past", 1, r"tl_every: the first index is 9000, but axis 1 has 9000"),
    ("count", 1, r"tl_reshape: 36000 elements cannot have a shape of 45000"),
    ("five_axes", 1, r"tl_reshape: a shape cannot have 5 axes"),
    ("apart", 1, r"tl_reshape: the elements of an axis would be at unequal distances: copy them first"),
    ("outside", 1, r"BAD_ADDRESS .* tl_view: the view, \d+ bytes at .*: it runs past the end of the memory"),
    ("no_rank", 1, r"tl_view: the view is not a valid shard: rank 7, dtype number 0"),
    ("no_dtype", 1, r"tl_view: the view is not a valid shard: rank 1, dtype number 99"),
    ("odd", 1, r"BAD_ADDRESS .* tl_view: the view at sip0\.cube1\.hbm_ctrl\.pe1\+0x1 is not aligned to f32"),
    ("odd_load", 1, r"BAD_ADDRESS .* tl_load: the shard at \S* is not aligned to f32"),
    ("runs", 1, r"tl_load: the shard has 18000 runs of consecutive bytes; a command has at most 4096"),
    ("runs_4096", 0, ""),
    ("over", 1, r"tl_load: elements of the shard overlap"),
    ("again", 1, r"tl_load: elements of the shard overlap"),
    ("over_buffer", 1, r"tl_load_into: elements of the buffer overlap"),
    ("over_send", 1, r"tl_send: elements of the buffer overlap"),
    ("common", 1, r"tl_load_into: the buffer and the shard have the bytes at \S*pe_tcm\+0x\w+ in common"),
    ("far", 1, r"tl_load: the elements of the shard reach further than any memory"),
    ("wraps", 1, r"BAD_ADDRESS at sip0\.cube0\.pe\d\.pe_dma.*the end of the memory"),
    ("free_load", 1, r"tl_load_into: the bytes at \S*pe_tcm\+0x\w+ were freed by tl_free at \S*views\.c:\d+"),
    ("free_send", 1, r"KERNEL_ERROR .* tl_send: the bytes at \S* were freed by tl_free at "),
    ("free_recv", 1, r"tl_recv_async: the bytes at \S* were freed by tl_free at "),
    ("free_math", 1, r"tl_compute: the bytes at \S* were freed by tl_free at "),
    ("free_data", 1, r"tl_data: the bytes at \S* were freed by tl_free at "),
    ("free_free", 1, r"tl_free: the bytes at \S* were freed by tl_free at "),
    ("free_source", 1, r"tl_load: the bytes at \S* were freed by tl_free at "),
    ("free_part", 1, r"tl_data: the bytes at \S*0 were freed by tl_free at "),
    ("free_again", 0, ""),
    ("after", 1, r"tl_after: the handle does not belong to this kernel"),
)


def main():
    small = small_machine("views", [KERNEL])
    all_viewed(small)
    is_refused(small, "blurred", r"called at \S*\bviews\.c:\d+", WRONG)
    written(small)
    paged()
    many_pes()


suite(main)
