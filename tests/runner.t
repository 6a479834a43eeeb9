#!/usr/bin/python3
"""runner: tests/run counts what suites say, and what they fail to say as failed."""
import os
import shutil

from harness import ROOT, SCRATCH, done, ok, run

SUITES = {
    "good": "#!/bin/sh\necho 'ok 1 - a'; echo 'ok 2 - b # SKIP no tool'; echo 1..2",
    "absent": "#!/bin/sh\necho '1..0 # SKIP no tool'",
    "bad": "#!/bin/sh\necho 1..2; echo 'ok 1 - a'; echo 'not ok 2 - b'; echo '# because'",
    "dies": "#!/bin/sh\necho 1..2; echo 'ok 1 - a'; echo last words >&2; kill -9 $$",
    "status": "#!/bin/sh\necho 'ok 1 - a'; echo 1..1; exit 4",
    "silent": "#!/bin/sh",
    "late": "#!/bin/sh\n# limit: 1\necho 'ok 1 - a'; sleep 60 & sleep 60",
    "no_program": "#!/nowhere",
}
WANT = {
    ("good",): "1 passed, 0 failed, 1 skipped",
    ("absent", "good"): "1 passed, 0 failed, 2 skipped",
    ("bad",): "1 passed, 1 failed",
    ("dies",): "1 passed, 1 failed",
    ("status",): "1 passed, 1 failed",
    ("silent",): "0 passed, 1 failed",
    ("late",): "1 passed, 1 failed",
    ("no_program",): "0 passed, 1 failed",
    ("absent",): "0 passed, 0 failed, 1 skipped",
    (): "5 passed, 6 failed, 2 skipped",
}

tests = os.path.join(SCRATCH, "tests")
os.makedirs(tests, exist_ok=True)
shutil.copy(os.path.join(ROOT, "tests", "run"), tests)
for name, text in SUITES.items():
    with open(os.path.join(tests, name + ".t"), "w", encoding="utf-8") as file:
        file.write(text + "\n")
    os.chmod(file.name, 0o755)

env = os.environ | {"BUILD": os.path.join(SCRATCH, "build")}
for names, want in WANT.items():
    ran = run(os.path.join(tests, "run"), *names, env=env)
    last = (ran.stdout.splitlines() or [""])[-1]
    ok(last == want and (ran.returncode == 0) == ("good" in names), "suites: " + (" ".join(names) or "all"), ran.said)
ran = run(os.path.join(tests, "run"), "bad", env=env)
ok("not ok bad 2 - b\n  # because\n" in ran.stdout, "a failure is shown with what follows it", ran.said)
ran = run(os.path.join(tests, "run"), "dies", env=env)
ok("  # last words\n" in ran.stdout, "and a death with its last words", ran.said)
ran = run(os.path.join(tests, "run"), "nothing", env=env)
ok(ran.returncode and "'nothing'" in ran.stderr, "a name that no suite has is an error", ran.said)
done()
