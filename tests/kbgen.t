#!/usr/bin/python3
"""kbgen: its command line: every option, what each exit status says, where it finds its own files. limit: 300"""
import os
import re
import shutil

from harness import BUILD, KBGEN, ROOT, SCRATCH, done, folder, ok, read, run, script, write

LEAST = "system: {name: least}\nsip: {cubes: {rows: 1, cols: 1}}\n"
CC, SANITIZED = os.environ.get("CC") or "gcc", os.environ.get("SAN")
DUMPS = ("model", "nodes", "links", "routes", "dot", "schema")
VARIANT = not os.path.samefile(BUILD, os.path.join(ROOT, "build"))


def refused(title, status, pattern, *arguments, **options):
    """The exit status, one thing said on standard error, nothing on standard output, nothing written."""
    where = folder("refused")
    ended = run(KBGEN, *arguments, **({"cwd": where} | options))
    ok(ended.returncode == status and re.search(pattern, ended.stderr) and not ended.stdout and not os.listdir(where),
       title, ended.said, os.listdir(where))


def works(title, *arguments, where=SCRATCH, makes=".", program=KBGEN, home=None):
    """Status 0, and what it makes in the folder where it runs."""
    ended = run(program, *arguments, cwd=where, env=os.environ | ({"KBGEN_HOME": home} if home else {}))
    ok(ended.returncode == 0 and os.path.exists(os.path.join(where, makes)), title, ended.said)
    return ended


def helps():
    shown = works("--help", "--help")
    words = "-o --output --emit --keep -k --kernel --set --check --dump --cc -O -j --jobs -v --verbose --version"
    for word in words.split():
        ok(f" {word}" in shown.stdout, f"--help names {word}", shown.stdout)
    ok(shown.stderr == "", "--help is a result")
    ok(re.fullmatch(r"kbgen \d+\.\d+\.\d+\n", run(KBGEN, "--version").stdout), "--version")


def usage(topology):
    refused("no topology", 2, "^kbgen: no topology file")
    refused("two topologies to one file", 2, "-o takes a folder .* not 'file'", topology, topology, "-o", "file")
    refused("--dump of two", 2, "--dump takes one topology", topology, topology, "--dump", "nodes")
    refused("an unknown option", 2, "unrecognized option '--fast'", topology, "--fast")
    refused("an option without its argument", 2, "requires an argument", topology, "-o")
    refused("--dump of nothing", 2, "--dump takes one of model, nodes, .*; not 'node'", topology, "--dump", "node")
    refused("--emit of nothing", 2, "--emit takes one of exe, c; not 'so'", topology, "--emit", "so")
    refused("-O of nothing", 2, "-O takes one of 0, 1, .*; not '4'", topology, "-O4")
    for jobs in ("0", "x", "1e3", "", "9999999999999999999999"):
        refused(f"-j {jobs!r}", 2, "-j takes a number", topology, "-j", jobs)
    refused("-o of nothing", 2, "-o takes the path of a file", topology, "-o", "")
    refused("-o of a folder", 2, "-o takes the path of a file", topology, "-o", "folder/")
    refused("--cc of nothing", 2, "--cc names no compiler", topology, "--cc", " ", "-o", os.path.join(SCRATCH, "never"))
    refused("--impl", 2, "--impl mine.c: No such file", topology, "--impl", "mine.c")
    refused("a topology that is not there", 2, r"none\.yaml", "none.yaml")
    refused("a topology that is a folder", 2, "refused", SCRATCH + "/refused")
    refused("a kernel that is not there", 2, "^kbgen: -k none.c: No such file", topology, "-k", "none.c")
    refused("a --set of an unknown key", 2, "--set:1:", topology, "--set", "system.pices.bw_gbs=1")
    wrong = write(os.path.join(SCRATCH, "wrong.yaml"), "system: {nmae: x}\n")
    for option in ((), ("--check",), ("--dump", "nodes"), ("--emit", "c")):
        refused(f"a wrong topology with {' '.join(option) or 'no option'}", 2, "wrong.yaml:1:10: error", wrong, *option)
    large = write(os.path.join(SCRATCH, "large.yaml"),
                  "system: {name: x, sips: 256}\nsip: {cubes: {rows: 16, cols: 16}}\n"
                  "cube: {memory_map: {hbm_slices_per_cube: 64}}\n")
    refused("a machine beyond what a simulator holds", 2, r"large.yaml:1:25: error: .* MiB of state", large, "--check")


def outputs(topology):
    where = folder("outputs")
    works("build/NAME below the current folder", topology, where=where, makes="build/least")
    works("-o, and the folders above it", topology, "-o", "deep/er/sim", where=where, makes="deep/er/sim")
    works("--emit c makes build/NAME.c/", topology, "--emit", "c", where=where, makes="build/least.c/pe.c")
    works("--emit c -o", topology, "--emit", "c", "-o", "here", where=where, makes="here/machine.c")
    works("--emit c -o FOLDER/", topology, "--emit", "c", "-o", "slash//", where=where, makes="slash/machine.c")
    works("--emit exe", topology, "--emit", "exe", "-o", "exe", where=where, makes="exe")
    works("--keep", topology, "--keep", "-o", "kept", where=where, makes="kept.c/machine.c")
    for name in os.listdir(os.path.join(where, "here")):
        same = read(os.path.join(where, "here", name)) == read(os.path.join(where, "kept.c", name))
        ok(same, f"--keep and --emit c give the same {name}")
    before = os.stat(os.path.join(where, "here/machine.c")).st_mtime_ns
    works("--emit c again", topology, "--emit", "c", "-o", "here", where=where)
    ok(os.stat(os.path.join(where, "here/machine.c")).st_mtime_ns == before, "an equal file is left alone")
    write(os.path.join(where, "here/mine.txt"), "mine")
    works("other numbers", topology, "--emit", "c", "-o", "here", "--set", "system.sips=3", where=where)
    ok("SIPS = 3, /* --set system.sips */" in read(os.path.join(where, "here/machine.h")), "replace it")
    ok(read(os.path.join(where, "here/mine.txt")) == "mine", "and leave what is not kbgen's alone")
    found = sorted(os.listdir(where))
    ok(found == ["build", "deep", "exe", "here", "kept", "kept.c", "slash"], "nothing else appears", *found)
    for title, words in (("a folder as a simulator", ["-o", "here"]), ("the topology as one", ["-o", topology]),
                         ("a file as a folder", ["-o", "exe", "--emit", "c"])):
        said = run(KBGEN, topology, *words, cwd=where)
        ok(said.returncode == 2 and "names another place" in said.stderr, title, said.said)
    ok(read(topology) == LEAST, "the topology is as it was")


def options(topology):
    where = folder("options")
    checked = works("--check", topology, "--check", where=where)
    ok(not checked.stdout + checked.stderr and not os.listdir(where), "--check says and writes nothing", checked.said)
    for what in DUMPS:
        dumped = works(f"--dump {what}", topology, "--dump", what, where=where)
        ok(dumped.stdout and not dumped.stderr and not os.listdir(where), f"--dump {what} is a result", dumped.said)
    works("--dump schema needs no topology", "--dump", "schema")
    full = run("sh", "-c", f'"{KBGEN}" "{topology}" --dump nodes >/dev/full')
    ok(full.returncode == 3 and "standard output" in full.stderr, "a dump onto a full disk", full.said)
    spoken = works("-v", topology, "-v", "-j", "1", "-o", "v", where=where, makes="v")
    found = re.search(r"ms +compile machine\.c\n.* ms +link\n", spoken.stderr, re.S)
    ok(found, "-v says what took how long", spoken.said)
    works("--set twice, the later counts", topology, "--set", "system.name=a", "--set", "system.name=b", where=where,
          makes="build/b")
    works("-j 64 and -O3", topology, "-j64", "-O3", "-o", "j", where=where, makes="j")
    works("--cc with an argument", topology, "--cc", CC + " -g0", "-o", "g0", where=where, makes="g0")
    for other in () if SANITIZED else ("gcc", "clang"):
        works(f"--cc {other}", topology, "--cc", other, "-o", other, where=where, makes=other)
    script(os.path.join(where, "mycc"), f'exec {CC} "$@"\n')
    works("--cc with a relative path", topology, "--cc", "./mycc", "-o", "rel", where=where, makes="rel")
    write(os.path.join(where, "one.c"), "int one(void) { return 1; }\n")
    write(os.path.join(where, "two.c"), "int one(void);\nint two(void) { return one(); }\n")
    works("-k twice", topology, "-k", "one.c", "-k", "two.c", "-o", "k", where=where, makes="k")
    write(os.path.join(where, "two.c"), "int one(void) { return 2; }\n")
    twice = run(KBGEN, topology, "-k", "one.c", "-k", "two.c", "-o", "k", cwd=where)
    ok(twice.returncode == 2, "two files that define one name", twice.said)


def world(topology):
    never = os.path.join(SCRATCH, "never")
    refused("no compiler", 3, "no-such-cc .*--cc.*: No such file", topology, "--cc", "no-such-cc", "-o", never)
    refused("a compiler that fails", 3, "false is no C compiler", topology, "--cc", "false", "-o", never)
    refused("a folder that cannot be made", 3, "/proc/none", topology, "-o", "/proc/none/sim")
    home = os.environ | {"KBGEN_HOME": SCRATCH}
    refused("no home", 3, "no templates/machine.c.in in .*KBGEN_HOME", topology, env=home)
    ok(not os.path.exists(never), "and nothing is made")


def installed(prefix):
    """What `make install` puts in place, without make."""
    for part, names in (("bin", ["kbgen"]), ("lib/kbgen", ["libkb.a", "libcommon.a", "kernels"])):
        os.makedirs(os.path.join(prefix, part), exist_ok=True)
        for name in names:
            run("cp", "-r", os.path.join(BUILD, name), os.path.join(prefix, part))
    os.makedirs(os.path.join(prefix, "share/kbgen"), exist_ok=True)
    for name in ("rt", "templates"):
        run("cp", "-r", os.path.join(ROOT, name), os.path.join(prefix, "share/kbgen"))


def homes(topology):
    where, prefix = folder("homes"), folder("prefix")
    installed(prefix)
    run("chmod", "-R", "a-w", prefix)
    program, elsewhere = os.path.join(prefix, "bin/kbgen"), shutil.copy(KBGEN, folder("elsewhere"))
    works("beside itself, in lib and share", topology, "-o", "a", program=program, where=where, makes="a")
    link = os.path.join(where, "kbgen")
    if not os.path.islink(link):
        os.symlink(program, link)
    works("through a link", topology, "-o", "b", program=link, where=where, makes="b")
    works("KBGEN_HOME, an installation", topology, "-o", "c", program=elsewhere, home=prefix, where=where, makes="c")
    if not VARIANT:
        works("KBGEN_HOME, the tree", topology, "-o", "d", program=elsewhere, home=ROOT, where=where, makes="d")
    homeless = {name: value for name, value in os.environ.items() if name != "KBGEN_HOME"}
    lost = run(elsewhere, topology, cwd=where, env=homeless)
    ok(lost.returncode == 3 and "KBGEN_HOME" in lost.stderr, "nowhere", lost.said)
    run("chmod", "-R", "u+w", prefix)
    for other in () if SANITIZED else "bc":             # a sanitizer's objects name their sources
        same = run("cmp", "a", other, cwd=where)
        ok(same.returncode == 0, f"{other} is the same bytes as a", same.said)


def broken_templates(topology):
    home = folder("broken")
    installed(home)
    write(os.path.join(home, "share/kbgen/templates/pe.c.in"), "//@ each pe\n$name$ $nmae$\n//@ end\n")
    both = r"pe\.c\.in:1:10: error: no table 'pe'\n(.*\n)*.*pe\.c\.in:2:9: error: no hole 'nmae'"
    refused("a template with errors", 2, both, topology, env=os.environ | {"KBGEN_HOME": home})


shutil.rmtree(SCRATCH)
least = write(os.path.join(folder("."), "least.yaml"), LEAST)
helps()
usage(least)
outputs(least)
options(least)
world(least)
homes(least)
broken_templates(least)
for name in sorted(one for one in os.listdir(os.path.join(ROOT, "topologies")) if one.endswith(".yaml")):
    works(f"topologies/{name}", os.path.join(ROOT, "topologies", name), "-o", name + ".sim")
done()
