#!/usr/bin/python3
"""install: kbgen works from where `make install` puts it, read-only and without the tree, and simulators are parts of builds by
make, ninja and CMake. plain build only"""
import hashlib
import os
import re
import shutil

from harness import BUILD, KBGEN, ROOT, SCRATCH, SMALL, done, folder, make, ok, read, read_bytes, run, same_bytes, scratch, skip, write

HOME = scratch("root of all/usr")
PROGRAM = os.path.join(HOME, "bin", "kbgen")


def sums():
    """A checksum of each installed file: root may write in spite of the modes."""
    return {os.path.join(path, name): hashlib.sha256(read_bytes(os.path.join(path, name))).hexdigest()
            for path, _, names in os.walk(HOME) for name in names}


def works(name, program, *words):
    ended = run(program, *words, cwd=WORK)
    ok(ended.returncode == 0, name, ended.said)


def changes(title, build, file, program, is_made):
    """Whether a build makes a simulator again after a file has been touched."""
    before_ns = os.stat(program).st_mtime_ns
    while file and os.stat(file).st_mtime_ns <= before_ns:              # the clock of files has ticks of milliseconds
        os.utime(file)
    ended = build()
    ok(ended.returncode == 0 and (os.stat(program).st_mtime_ns > before_ns) == is_made, title, ended.said)


def is_rebuilt(tool, build, where, program):
    """A simulator is made again if a file is newer that it was made of: known from its depfile, no rule names them."""
    ended = build()
    if not ok(ended.returncode == 0 and run(program, "run", "own").returncode in (0, 1), f"{tool} makes a simulator", ended.said):
        return
    changes(f"{tool} makes nothing again when nothing has changed", build, None, program, False)
    for what, file in (("the topology", "small.yaml"), ("a file that it includes", "parts/wires.yaml"),
                       ("a kernel", "my kernel.c"), ("a header that the kernel includes", "own.h"), ("kbgen", PROGRAM)):
        changes(f"{tool} makes a simulator again when {what} is newer", build, os.path.join(where, file), program, True)
        changes(f"{tool} does so once for {what}", build, None, program, False)
    os.remove(os.path.join(where, "own.h"))
    write(os.path.join(where, "my kernel.c"), KERNEL.replace('#include "own.h"\n', ""))
    changes(f"{tool} goes on when a header is gone that was included", build, None, program, True)


KERNEL = """#include <kb/host.h>
#include "own.h"
KB_BENCH(own, "nothing", KB_INT(n, 1, 1, 2, "a number")) { }
"""
MAKEFILE = r"""
out/small: small.yaml; kbgen small.yaml -k my\ kernel.c -o out/small -MD
-include out/small.d
"""
NINJA = """
rule kbgen
  command = kbgen small.yaml -k "my kernel.c" -o $out -MD
  depfile = $out.d
  deps = gcc
build out/small: kbgen small.yaml
"""
CMAKE = """cmake_minimum_required(VERSION 3.20)
project(accelerator C)
find_package(kbgen 0.1 REQUIRED)
kbgen_add_simulator(small small.yaml KERNELS "my kernel.c" OUTPUT "${CMAKE_BINARY_DIR}/out/small" SET system.host.overhead_ns=7)
kbgen_add_simulator(two ${kbgen_TOPOLOGIES}/small.yaml)
kbgen_add_library(duo small.yaml KERNELS "my kernel.c")
foreach(kind IN ITEMS duo duo_static)
  add_executable(with_${kind} user.c)
  target_link_libraries(with_${kind} library::${kind})
endforeach()
add_custom_target(listing ALL COMMAND simulator::two list > ${CMAKE_BINARY_DIR}/listing)
"""


USER = """#include <kb/sim.h>
#include <duo.h>
#include <stdio.h>
int main(void)
{
    struct kb_sim_config config = {.struct_size = sizeof config};
    kb_sim *sim;
    return kb_sim_create(&config, &sim) != KB_OK || puts(kb_library_name()) < 0 || kb_sim_destroy(sim) != KB_OK;
}
"""


def project(name, **files):
    """A folder with a topology that includes a file, a kernel and a header, and with build files."""
    where = folder(name)
    write(os.path.join(where, "small.yaml"), "include: parts/wires.yaml\n" + read(SMALL))
    write(os.path.join(folder(name, "parts"), "wires.yaml"), "system: { wire: { ns_per_mm: 0.01 } }\n")
    write(os.path.join(where, "my kernel.c"), KERNEL)
    write(os.path.join(where, "own.h"), "/* nothing */\n")
    for file, text in files.items():
        write(os.path.join(where, file.replace("_", ".")), text)
    return where


def by_make():
    where = project("by make", Makefile=MAKEFILE)
    is_rebuilt("make", lambda: run("make", "-C", where, env=ENVIRONMENT), where, os.path.join(where, "out/small"))


def by_ninja():
    if not shutil.which("ninja"):
        return skip("ninja makes a simulator", "there is no ninja")
    where = project("by ninja", build_ninja=NINJA)
    return is_rebuilt("ninja", lambda: run("ninja", "-C", where, env=ENVIRONMENT), where, os.path.join(where, "out/small"))


def by_cmake(generator):
    if not shutil.which("cmake") or generator == "Ninja" and not shutil.which("ninja"):
        return skip(f"CMake makes a simulator by {generator}", "there is no cmake or ninja")
    where = project("by cmake and " + generator, CMakeLists_txt=CMAKE, user_c=USER)
    out = os.path.join(where, "out of source")
    made = run("cmake", "-G", generator, "-S", where, "-B", out, "-DCMAKE_PREFIX_PATH=" + HOME, env=ENVIRONMENT)
    if not ok(made.returncode == 0, f"CMake finds the package kbgen, for {generator}", made.said):
        return None
    build = lambda: run("cmake", "--build", out, env=ENVIRONMENT)     # noqa: E731
    build()
    ok("gemm" in read(os.path.join(out, "listing")), f"a custom command of {generator} runs a simulator by its name")
    for kind in ("duo", "duo_static"):
        ended = run(os.path.join(out, "with_" + kind))
        ok(ended.stdout == "duo\n" and ended.returncode == 0, f"by {generator}, a program is linked with the library {kind}", ended.said)
    library = os.path.join(out, "simulators/duo.lib/libduo.so")
    changes(f"{generator} makes a library again when a file that its topology includes is newer", build,
            os.path.join(where, "parts/wires.yaml"), library, True)
    changes(f"{generator} makes it once", build, None, library, False)
    is_rebuilt(f"CMake with {generator}", build, where, os.path.join(out, "out/small"))
    return None


def packages():
    """Programs that look for kbgen by its package find the files that are installed."""
    if not shutil.which("pkg-config"):
        return skip("pkg-config finds kbgen", "there is no pkg-config")
    where = ENVIRONMENT | {"PKG_CONFIG_PATH": os.path.join(HOME, "share/pkgconfig")}
    asked = {word: run("pkg-config", word, "kbgen", env=where).stdout.strip().replace("\\", "")
             for word in ("--modversion", "--variable=kbgen", "--variable=includedir", "--variable=topologies",
                          "--variable=pythondir")}
    ok(run(PROGRAM, "--version").stdout == f"kbgen {asked['--modversion']}\n", "pkg-config knows the version of kbgen", asked)
    ok(all(os.path.exists(path) for word, path in asked.items() if "variable" in word)
       and os.path.exists(asked["--variable=includedir"] + "/kb/tl.h")
       and os.path.exists(asked["--variable=pythondir"] + "/kbsim.py"), "pkg-config knows where its files are", asked)
    return None


def made_by_programs():
    """Manual pages and completion are what the programs print."""
    share = os.path.join(HOME, "share")
    for file, words in (("man/man1/kbgen.1", ("--man",)), ("bash-completion/completions/kbgen", ("--completion", "bash")),
                        ("zsh/site-functions/_kbgen", ("--completion", "zsh")),
                        ("fish/vendor_completions.d/kbgen.fish", ("--completion", "fish"))):
        ok(read(os.path.join(share, file)) == run(PROGRAM, *words).stdout, f"{file} is installed")
    header = read(os.path.join(ROOT, "rt/kb/sim.h"))
    functions = re.findall(r"^[a-z][\w *]*?\b(kb_\w+)\(", header, re.M)
    page = read(os.path.join(share, "man/man3/kb_sim.3"))
    missing = [name for name in functions if f"{name}(" not in page or not os.path.exists(os.path.join(share, f"man/man3/{name}.3"))]
    ok(len(functions) > 20 and not missing, "each function of kb/sim.h is in kb_sim(3), and has a page that leads to it", *missing)
    if shutil.which("mandoc"):
        said = run("mandoc", "-Tlint", os.path.join(share, "man/man3/kb_sim.3")).stdout.splitlines()
        said = [line for line in said if "referenced manual not found" not in line]
        ok(not said, "mandoc has nothing to say of kb_sim(3)", *said)
    else:
        skip("mandoc reads kb_sim(3)", "there is no mandoc")
    page = read(os.path.join(share, "man/man1/kbgen-sim.1"))
    ok(".Dt KBGEN-SIM 1" in page and "\n.Ss whatif\n" in page, "man/man1/kbgen-sim.1 is installed")


def without_notices():
    """Where Debian's notices of licences are missing, make install says so and installs all else."""
    where = folder("no notices")
    ended = run(os.path.join(ROOT, "gen/packaging/stage"), BUILD, scratch("tree"), env=os.environ | {"HOST_SHARE": where})
    have = sorted(os.listdir(scratch("tree/share/doc/kbgen/licences")))
    ok(ended.returncode == 0 and have == ["LICENSE"] and ended.stderr.count(": its notice is not installed\n") == 8,
       "notices that the host does not have are named and left out", ended.said, *have)


def licences():
    """The licences of all that a simulator contains are there."""
    words = {"LICENSE": "MIT", "libgmp": "LGPL", "LGPL-3": "LESSER GENERAL PUBLIC", "GPL-3": "GENERAL PUBLIC", "libyaml": "Kirill Simonov",
             "boost": "all copies of\nthe Software|copies of the\nSoftware", "libxxhash": "Yann Collet", "zlib1g": "Mark Adler",
             "libjs-dygraphs": "Dan Vanderkam"}
    where = os.path.join(HOME, "share/doc/kbgen/licences")
    ok(set(os.listdir(where)) == set(words), "there is a licence for each part", *os.listdir(where))
    for file, word in words.items():
        ok(re.search(word, read(os.path.join(where, file))), f"the licence {file} is the right one")


shutil.rmtree(SCRATCH)
ENVIRONMENT = os.environ | {"PATH": f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}", "KBGEN_CACHE": scratch("cache")}
write(os.path.join(folder("root of all", "usr", "bin"), "stranger"), "")
made = make("install", "DESTDIR=" + scratch("root of all"), "PREFIX=/usr")
ok(made.returncode == 0, "make install succeeds", made.said)
packages()
made_by_programs()
licences()
without_notices()
by_make()
by_ninja()
for one in ("Unix Makefiles", "Ninja"):
    by_cmake(one)
run("chmod", "-R", "a-w", HOME)
before, WORK = sums(), folder("work")
for source in (SMALL, os.path.join(ROOT, "docs", "guide", "11_your_own.c")):
    shutil.copy(source, WORK)
works("an installed kbgen tells its version", PROGRAM, "--version")
works("an installed kbgen makes a simulator", PROGRAM, "small.yaml")
works("a simulator made by an installed kbgen runs", os.path.join(WORK, "build", "small"), "info")
works("a kernel finds the installed headers of the library", PROGRAM, "small.yaml", "-k", "11_your_own.c", "-o", "own")
works("the kbgen of the tree makes the same machine", KBGEN, "small.yaml", "-o", "of-tree")
same_bytes(os.path.join(WORK, "build", "small"), os.path.join(WORK, "of-tree"),
           "an installed kbgen and that of the tree make simulators of the same bytes")
write(os.path.join(WORK, "space.yaml"), """topology: small.yaml
bench: gemm
params: { m: 32, k: 32, n: 32 }
space: { params.tile_m: [16, 32] }
objectives: { end_ps: min }
method: grid
""")
works("an installed kbgen searches a space", PROGRAM, "search", "space.yaml", "-j", "1")
works("an installed kbgen prints what it has found", PROGRAM, "front", "space.db")
for place in ("", "impl", "search"):
    of_tree, installed = ({name for name in os.listdir(os.path.join(where, "topologies", place)) if "." in name}
                          for where in (ROOT, os.path.join(HOME, "share", "kbgen")))
    ok(of_tree == installed, f"all files of topologies/{place} are installed", *of_tree ^ installed)
ok(before == sums(), "kbgen writes nothing to where it is installed")
shutil.move(os.path.join(HOME, "lib", "kbgen"), os.path.join(HOME, "lib", "elsewhere"))
refused = run(PROGRAM, "small.yaml", "-o", "none", cwd=WORK)
ok(refused.returncode == 3 and refused.stderr and not os.path.exists(os.path.join(WORK, "none")),
   "kbgen without its archives says so and ends with status 3", refused.said)
run("chmod", "-R", "u+w", HOME)
shutil.move(os.path.join(HOME, "lib", "elsewhere"), os.path.join(HOME, "lib", "kbgen"))
gone = make("uninstall", "DESTDIR=" + scratch("root of all"), "PREFIX=/usr")
left = [name for path in before for name in (path,) if os.path.exists(name)]
kept = [path for path, folders, names in os.walk(HOME) if "kbgen" in os.path.relpath(path, HOME)]
ok(gone.returncode == 0 and left == [os.path.join(HOME, "bin", "stranger")] and not kept,
   "make uninstall removes all that it has installed, and nothing else", gone.said, *left, *kept)
done()
