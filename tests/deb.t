#!/usr/bin/python3
"""deb: the Debian package of `make deb` has no fault that lintian knows, and dpkg installs and removes it. plain build only, limit: 200
"""
import glob
import os
import shutil

from harness import BUILD, SCRATCH, SMALL, done, folder, make, ok, run, scratch, skip, write


def files_below(where):
    return {os.path.relpath(os.path.join(path, name), where) for path, _, names in os.walk(where) for name in names}


def installs(package):
    """dpkg puts the files below a folder that is empty, apart from its own records, and takes them away again."""
    root = folder("root")
    write(os.path.join(folder("root", "var", "lib", "dpkg"), "status"), "")
    folder("root", "var", "lib", "dpkg", "info")
    folder("root", "var", "lib", "dpkg", "updates")
    dpkg = ("dpkg", "--root=" + root, "--force-depends", "--force-not-root", "--force-script-chrootless", "--log=" + scratch("log"))
    done_by = run(*dpkg, "--install", package)
    ok(done_by.returncode == 0, "dpkg installs the package", done_by.said)
    have = files_below(os.path.join(root, "usr"))
    for file in ("bin/kbgen", "lib/kbgen/runtime.o", "share/man/man1/kbgen.1.gz", "share/man/man1/kbgen-sim.1.gz",
                 "share/bash-completion/completions/kbgen", "share/zsh/vendor-completions/_kbgen",
                 "share/fish/vendor_completions.d/kbgen.fish", "share/pkgconfig/kbgen.pc", "share/cmake/kbgen/kbgen-config.cmake",
                 "share/kbgen/rt/kb/tl.h", "share/doc/kbgen/copyright", "share/doc/kbgen/README.md", "share/doc/kbgen/docs/guide.md"):
        ok(file in have, f"the package has {file}", *sorted(have)[:20])
    ended = run(os.path.join(root, "usr/bin/kbgen"), SMALL, "-o", "small", "-v", cwd=folder("work"), env=os.environ | {"KBGEN_CACHE": ""})
    ok(ended.returncode == 0 and run(os.path.join(SCRATCH, "work/small"), "info").returncode == 0,
       "kbgen of the package makes a simulator", ended.said)
    ok("compile code.c" not in ended.said and "compile tables.c" in ended.said,
       "it finds the code that was compiled for the package", ended.said)
    gone = run(*dpkg, "--remove", "kbgen")
    left = {file for file in files_below(os.path.join(root, "usr")) if "kbgen" in file}
    ok(gone.returncode == 0 and not left, "dpkg removes all of it", gone.said, *left)


shutil.rmtree(SCRATCH)
missing = [tool for tool in ("dpkg-buildpackage", "dh") if not shutil.which(tool)]
if missing:
    skip("make deb makes a package", f"there is no {missing[0]}")
    done()
made = make("deb", "tree=" + scratch("tree"), "MAINTAINER=J. O'Doe <doe@example.org>")
packages = glob.glob(os.path.join(BUILD, "deb", "*.deb"))
if ok(made.returncode == 0 and len(packages) == 1, "make deb makes a package", made.said):
    fields = run("dpkg-deb", "-f", packages[0]).stdout
    ok("\nDepends: " in fields and "libgmp10" in fields and "libsqlite3-0" in fields and "gcc | c-compiler" in fields,
       "the package needs its libraries and a compiler", fields)
    ok("\nMaintainer: J. O'Doe <doe@example.org>\n" in fields, "the package has the maintainer that make was given", fields)
    if shutil.which("lintian"):
        said = [line for line in run("lintian", "--tag-display-limit", "0", packages[0]).stdout.splitlines() if line[:2] in ("E:", "W:")]
        ok(not said, "lintian has no error and no warning to tell", *said)
    else:
        skip("lintian has no error and no warning to tell", "there is no lintian")
    installs(packages[0])
done()
