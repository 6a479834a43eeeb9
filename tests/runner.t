#!/usr/bin/python3
"""runner: what tests/run counts, schedules, prints and leaves; in a folder with suites made for it. It
mostly waits. plain build only
"""
import os
import pty
import re
import shutil

from harness import ROOT, done, folder, ok, remove, run, script, write

SUITES = {
    "good": "echo 'ok 1 - a'; echo 'ok 2 - b # SKIP no tool'; echo 1..2",
    "absent": "echo '1..0 # SKIP no tool'",
    "bad": "echo 1..2; echo 'ok 1 - a'; echo 'not ok 2 - b'; echo '# because'",
    "dies": "echo 1..2; echo 'ok 1 - a'; echo last words >&2; kill -9 $$",
    "status": "echo 'ok 1 - a'; echo 1..1; exit 4",
    "silent": "",
    "late": "# limit: 1\necho 'ok 1 - a'; sleep 600 & sleep 600",
    "once": "# plain build only\necho 'ok 1 - a'; echo 1..1",
    "again": "# limit: 7\ntest \"$BUILD\" = \"$WANT\" -a \"${SAN:-0}\" = 1 && echo 'ok 1 - a'; echo 1..1",
}
WANT = {
    ("good",): "1 passed, 0 failed, 1 skipped",
    ("absent", "good"): "1 passed, 0 failed, 2 skipped",
    ("bad",): "1 passed, 1 failed",
    ("dies",): "1 passed, 1 failed",
    ("status",): "1 passed, 1 failed",
    ("silent",): "0 passed, 1 failed",
    ("no_program",): "0 passed, 1 failed",
    ("absent",): "0 passed, 0 failed, 1 skipped",
    (): "5 passed, 7 failed, 2 skipped",
}
TREE = folder("tree")
BUILD = os.path.join(TREE, "build")
RUN = os.path.join(TREE, "tests", "run")


def tests_run(*words, **more):
    """tests/run in its folder, where no suite runs twice unless SAN is empty."""
    return run(RUN, *words, env=os.environ | {"BUILD": BUILD, "SAN_BUILD": BUILD + "/san", "SAN": "1"} | more)


def counts():
    for names, want in WANT.items():
        ran = tests_run(*names)
        last = (ran.stdout.splitlines() or [""])[-1]
        ok(last == want and (ran.returncode == 0) == ("good" in names),
           f"{' and '.join(names) or 'all suites'}: the last line is '{want}'", ran.said)
    ok("not ok bad 2 - b\n  # because\n" in ran.stdout, "a failure is shown with its diagnostics", ran.said)
    ok("  # last words\n" in ran.stdout, "a suite that dies is shown with its last words", ran.said)
    ok(re.search(r"not ok late - overran its limit of 1 s after 1 tests\n", ran.stdout),
       "a suite that hangs is ended at its limit and says so", ran.said)
    ran = tests_run("nothing")
    ok(ran.returncode and "'nothing'" in ran.stderr, "a name that no suite has is an error", ran.said)


def sanitized():
    """A Makefile that acts the build, and suites that see whether they run in it."""
    built = os.path.join(BUILD, "built")
    write(os.path.join(TREE, "Makefile"), f"sanitized:\n\t@touch {built}\n")
    ran = tests_run("asan/again", SAN="", WANT=BUILD + "/san")
    ok(ran.stdout.endswith("\n2 passed, 0 failed\n") and os.path.exists(built),
       "a suite under the sanitizers runs in their build, which is made before", ran.said)
    for name in ("late", "again"):
        remove(os.path.join(TREE, "tests", name + ".t"))
    ran = tests_run(SAN="")
    shown = "\n" + ran.stdout
    ok(all(f"\n{one} " in shown for one in ("once", "good", "asan/good")) and "asan/once " not in shown,
       "every suite runs under the sanitizers as well, unless it says plain build only", ran.said)
    remove(built)
    ran = tests_run("good", SAN="")
    ok(not os.path.exists(built) and "asan" not in ran.stdout,
       "without such a suite nothing is built for them", ran.said)
    write(os.path.join(TREE, "Makefile"), "sanitized:\n\t@echo no compiler >&2; false\n")
    ran = tests_run("asan/good", "good", SAN="")
    ok(ran.stdout.endswith("\n1 passed, 1 failed, 1 skipped\n") and "# no compiler" in ran.stdout,
       "a build with the sanitizers that fails is one failure", ran.said)


def quick():
    for name in ("absent", "bad", "dies", "no_program", "silent", "status"):
        remove(os.path.join(TREE, "tests", name + ".t"))
    for name, limit in (("long", "limit: 9"), ("known", "limit: 9, quick")):
        script(os.path.join(TREE, "tests", name + ".t"),
               f"# {limit}\ntest \"$QUICK\" = 1 && echo 'ok 1 - a'; echo 1..1\n")
    ran = tests_run("--quick")
    ok(ran.stdout.endswith("\n2 passed, 0 failed, 1 skipped\n") and "\nknown " in "\n" + ran.stdout,
       "--quick runs suites without a limit and quick ones, and they know it", ran.said)


def stop():
    ran = tests_run("--stop", "good", "bad", "silent")
    ok(re.search(r"^good .*\nnot ok bad 2 .*\nbad ", ran.stdout.replace("  # because\n", ""), re.S) and ran.returncode == 1
       and "silent" not in ran.stdout, "--stop ends at the first suite that fails", ran.said)
    first = os.path.join(TREE, "tests", "first.t")
    script(first, f"exec python3 -c 'import sys; sys.path.insert(0, \"{ROOT}/tests\"); from harness import ok; "
                  "ok(1, 1); ok(0, 2); ok(0, 3)'\n")
    ran = tests_run("--stop", "first")
    ok(ran.stdout.endswith("\n1 passed, 1 failed\n"), "--stop ends a suite at its first test that fails", ran.said)
    script(first, "echo 'ok 1 - a'; echo 1..1; sleep 60\n")
    write(os.path.join(BUILD, "tests", "seconds.json"), '{ "first": 0.1 }')
    ran = tests_run("--stop", "first")
    ok(re.search(r"overran its limit of 5 s", ran.stdout),
       "--stop ends a suite that takes much longer than before", ran.said)
    remove(first)


def beside():
    """As many suites as run at a time wait for the one beside them, which waits until all of them have begun."""
    count, names = min(8, max(2, os.cpu_count())), ["waiting"]
    wait = "for i in $(seq 100); do {} && echo 'ok 1 - a' && break; sleep 0.1; done; echo 1..1\n"
    arrived = os.path.join(folder("arrived"), "")
    script(os.path.join(TREE, "tests", "waiting.t"), "# It mostly waits.\n" + wait.format(
        f'test "$(ls {arrived} | wc -l)" -ge {count} && touch {arrived}all'))
    for number in range(count):
        names.append(f"busy{number}")
        script(os.path.join(TREE, "tests", names[-1] + ".t"),
               f"touch {arrived}{number}\n" + wait.format(f"test -e {arrived}all"))
    ran = tests_run(*names)
    ok(ran.stdout.endswith(f"\n{count + 1} passed, 0 failed\n"),
       "a suite that mostly waits runs beside as many others as run at a time", ran.said)
    for name in names:
        remove(os.path.join(TREE, "tests", name + ".t"))


def leaves():
    scratch = os.path.join(BUILD, "tests")
    tests_run("good", "bad")
    ok(not os.path.exists(scratch + "/good") and os.path.exists(scratch + "/bad"),
       "the scratch folder of a failed suite stays, that of a good one goes", *os.listdir(scratch))
    ran = tests_run("good")
    ok(re.search(r"\nslowest: good \d+ s\n.*\ndisk: .* \d+ MiB at most\n", ran.stdout, re.S),
       "time and disk are told before the count", ran.said)


def progress():
    ran = tests_run("good")
    ok(not ran.stderr, "without a terminal there is no progress line", ran.said)
    script(os.path.join(TREE, "tests", "slow.t"), "sleep 2; echo 'ok 1 - a'; echo 1..1\n")
    write(os.path.join(BUILD, "tests", "seconds.json"), '{ "good": 9, "slow": 1 }')
    here, there = pty.openpty()
    run(RUN, "good", "slow", env=os.environ | {"BUILD": BUILD, "SAN": "1"}, stderr=there, timeout=60)
    os.close(there)
    shown = os.read(here, 1 << 16).decode()
    os.close(here)
    ok("of 2 suites, " in shown and " left: " in shown and shown.endswith("\033[K"),
       "on a terminal a line shows progress and the time left, and is cleared", repr(shown))
    ok(shown.count("left: ") < 20, "the progress line is written once a second, also when half of the workers are done",
       repr(shown))
    remove(os.path.join(TREE, "tests", "slow.t"))


shutil.rmtree(TREE)
os.makedirs(os.path.dirname(RUN))
shutil.copy(os.path.join(ROOT, "tests", "run"), RUN)
for name, text in SUITES.items():
    script(os.path.join(TREE, "tests", name + ".t"), text + "\n")
write(os.path.join(TREE, "tests", "no_program.t"), "#!/nowhere\n")
os.chmod(os.path.join(TREE, "tests", "no_program.t"), 0o755)
counts()
beside()
stop()
sanitized()
leaves()
progress()
quick()
done()
