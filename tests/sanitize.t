#!/usr/bin/python3
"""sanitize: the other suites once more, with kbgen, runtime and emitted code under ASan and UBSan. limit: 1800"""
import os
import sys

from harness import ROOT, done, make, ok

# What runs no program of ours. Suites that the sanitizers are in the way of skip themselves.
APART = {"runner", "schema", "setup", "tidy"}

if os.environ.get("SAN"):
    print("1..0 # SKIP everything is under the sanitizers already")
    sys.exit()
built = make("SAN=1", "WERROR=-Werror", "all", "units")
ok(built.returncode == 0, "all builds with the sanitizers", built.said)
suites = [name.removesuffix(".t") for name in sorted(os.listdir(os.path.join(ROOT, "tests"))) if name.endswith(".t")]
units = ["unit/" + name.removesuffix(".c") for name in sorted(os.listdir(os.path.join(ROOT, "tests", "unit")))
         if name.endswith(".c")]
for suite in [name for name in suites if name not in APART] + units:
    ran = make("SAN=1", "check", "T=" + suite)
    if "\n0 passed, 0 failed, 1 skipped\n" not in ran.stdout:
        ok(ran.returncode == 0, suite, ran.said)
done()
