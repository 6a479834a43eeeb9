#!/usr/bin/python3
"""power: a check that says `verified` would have found the mistake: kernels that are a little wrong, or do nothing, fail,
and right ones never do."""
import json
import os

from harness import ROOT, ok, read, run, scratch, small_machine, suite

KERNEL = os.path.join(ROOT, "tests", "kernels", "power.c")


def check(program, *words):
    path = scratch("power.json")
    ended = run(program, "run", "power", *words, "--json", path)
    return ended, json.loads(read(path))["verify"][0]


def is_wrong(program, name, *words):
    ended, found = check(program, *words)
    ok(ended.returncode == 1 and found["status"] == "wrong" and "\nWRONG " in ended.stdout, name, ended.said)


def is_right(program, name, *words):
    ended, found = check(program, *words)
    ok(ended.returncode == 0 and found["status"] == "ok" and found["power"] < 0.05, name, ended.said)
    return found


def wrong(program):
    is_wrong(program, "a kernel that does nothing is wrong against a composed reference", "what=readme", "keys=0")
    ended, found = check(program, "what=readme", "keys=0")
    ok(not found["written"] and "\n  no kernel has written the tensor\n" in ended.stdout,
       "a wrong tensor that no kernel has written is said to be so", ended.said)
    is_wrong(program, "attention to one of 128 parts of the keys is wrong", "what=attention", "keys=16")
    is_wrong(program, "attention to all but one of 128 parts of the keys is wrong", "what=attention", "keys=2032")
    is_wrong(program, "3e-4 on every element of a product of f32 is wrong", "dtype=f32", "off=3e-4")
    is_wrong(program, "0.02 on every element of a product of f16 is wrong", "dtype=f16", "off=0.02")


def right(program):
    """Many seeds: a bound that a right kernel exceeds is no bound."""
    for dtype in ("f32", "f16", "bf16"):
        shares = [is_right(program, f"a right product of {dtype} verifies with seed {seed}", "dtype=" + dtype,
                           "--seed", str(seed))["max_share"] for seed in range(12)]
        ok(max(shares) <= 1, f"no element of a right product of {dtype} exceeds its bound", shares)
    for seed in range(12):
        is_right(program, f"right attention verifies with seed {seed}", "what=attention", "keys=2048",
                 "--seed", str(seed))


def kinds(program):
    for kind, most in (("worst", 1), ("plain", 0.05)):
        ended, found = check(program, "dtype=f16", "--tolerance", kind)
        ok(ended.returncode == 0 and found["tolerance"]["kind"] == kind, f"--tolerance {kind} verifies a product of f16",
           ended.said)
    _, bounds = check(program, "dtype=f32")
    _, worst = check(program, "dtype=f32", "--tolerance", "worst")
    ok(worst["power"] > 5 * bounds["power"], "errors that are added up allow more than independent ones", bounds, worst)
    is_right(program, "the bounds of 1024 sums of f32 allow 2e-5 on every element", "dtype=f32", "off=2e-5")
    ended, found = check(program, "dtype=f32", "off=2e-5", "--tolerance", "plain")
    ok(ended.returncode == 1 and found["tolerance"] == {"kind": "plain", "atol": 1e-5, "rtol": 1e-5},
       "plain tolerances of f32 do not", ended.said)
    ended = run(program, "run", "power", "--tolerance", "loose")
    ok(ended.returncode == 2 and "--tolerance loose: bounds, worst or plain is needed" in ended.stderr,
       "another tolerance is refused", ended.said)


def weak(program):
    ended, found = check(program, "what=chain")
    ok(found["status"] in ("too weak", "wrong") and ended.returncode == 1, "a long chain in bf16 is not verified",
       ended.said)
    ended, found = check(program, "what=zeros")
    ok(ended.returncode == 1 and found["status"] == "zeros" and "\nNOT VERIFIED c: it holds nothing but zeros" in
       ended.stdout and "\nverified" not in ended.stdout,
       "a result of zeros alone is not verified", ended.said)


def nothing(program):
    ended, found = check(program, "what=untouched")
    ok(ended.returncode == 1 and found["status"] == "unwritten" and not found["written"] and
       "\nNOT VERIFIED c: no kernel has written it; it holds what is expected without them" in ended.stdout,
       "a tensor that no kernel has written is not verified, though it is right", ended.said)
    ended, found = check(program, "dtype=f16")
    ok(found["written"], "a tensor that a kernel has written is told apart", found)
    ended = run(program, "run", "power", "what=unexpected")
    ok(ended.returncode == 0 and "\nnot checked  no tensor: the bench expects nothing\n" in ended.stdout,
       "a bench without expectations says that nothing was checked", ended.said)
    ended = run(program, "run", "power", "what=untouched", "--data", "debug")
    ok("\nnot checked  no operation: none of 0 computes\n" in ended.stdout and "verified     every" not in ended.stdout,
       "a run without operations has not verified every operation", ended.said)


def large(program):
    """2048 x 1024 x 1024 is compared by random projections."""
    found = is_right(program, "a large product is verified by projections", "what=block", "dtype=f16", "m=2048")
    ok(found.get("projections", {}).get("missed", 1) < 1e-6, "the probability of missing a wrong tile is small", found)
    is_wrong(program, "a tile of a large product that lacks one step of k is found", "what=block", "dtype=f16", "m=2048",
             "off=1")


def main():
    program = small_machine("power", [KERNEL])
    for part in (wrong, right, kinds, weak, nothing, large):
        part(program)


suite(main)
