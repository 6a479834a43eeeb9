#!/usr/bin/python3
"""setup: what .ci/setup says and does, on machines with and without packages, root and apt. plain build only

Scripts act as id, dpkg-query and apt-get. .ci/setup finds nothing else but grep and sh.
"""
import os
import shutil

from harness import ROOT, SCRATCH, done, folder, ok, run, script

ALL, WITHOUT_RE2C, WITHOUT_SIMPY, WITHOUT_NPM = "echo installed", *(
    f'case "$*" in *{name}*) echo config-files;; *) echo installed;; esac' for name in ("re2c", "simpy", "npm"))
ROOT_USER, OTHER_USER = "echo 0", "echo 1000"
APT, BROKEN_APT = 'echo "apt-get $*" >&2', 'case "$*" in *install*) exit 100;; esac'


def setup(*words, packages=ALL, user=ROOT_USER, apt=APT):
    """Runs .ci/setup on a machine that has these packages, user and apt-get."""
    shutil.rmtree(SCRATCH)
    where = folder("bin")
    for name in ("grep", "sh"):
        os.symlink(shutil.which(name), os.path.join(where, name))
    for name, body in (("dpkg-query", packages), ("id", user), ("apt-get", apt)):
        if body:
            script(os.path.join(where, name), body + "\n")
    return run(os.path.join(ROOT, ".ci", "setup"), *words, env={"PATH": where})


def installs(ended, package):
    """Whether it says that it installs a package, and does it."""
    return f"setup: installing {package}\n" in ended.stderr and any(
        line.startswith("apt-get") and " install " in line and line.endswith(f" {package}")
        for line in ended.stderr.splitlines())


ended = setup("check")
ok(ended.returncode == 0 and ended.said.count("\n") == 1,
   "with all packages setup succeeds and says nothing", ended.said)
ended = setup(packages=WITHOUT_RE2C, apt="")
ok(ended.returncode == 3 and "\n    re2c\n" in ended.stderr, "without apt setup names the missing package, status 3",
   ended.said)
ended = setup(packages=WITHOUT_RE2C, user=OTHER_USER)
ok(ended.returncode == 3 and "apt-get " not in ended.stderr,
   "without root setup does not call apt, status 3", ended.said)
ended = setup(packages=WITHOUT_RE2C)
ok(ended.returncode == 0 and installs(ended, "re2c"),
   "as root setup says what it installs, and installs it", ended.said)
ended = setup("check", packages=WITHOUT_SIMPY)
ok(ended.returncode == 0 and not ended.stderr, "the tests need no package of the peers", ended.said)
ended = setup("check", packages=WITHOUT_NPM)
ok(ended.returncode == 0 and installs(ended, "npm"), "the tests of pages get npm where there is none", ended.said)
ended = setup("bench", packages=WITHOUT_SIMPY)
ok(ended.returncode == 0 and installs(ended, "python3-simpy3"),
   "the bench installs the packages of the peers", ended.said)
ended = setup(packages=WITHOUT_RE2C, apt=BROKEN_APT)
ok(ended.returncode == 3 and "could not install re2c" in ended.stderr, "an installation that fails gives status 3",
   ended.said)
ended = setup("nonsense")
ok(ended.returncode == 2 and "usage" in ended.stderr, "a wrong word gives status 2 and the usage", ended.said)
done()
