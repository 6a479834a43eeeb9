#!/usr/bin/python3
"""kbgen: its command line: every option, every exit status, and where it finds its own files. limit: 300"""
import os
import re
import shutil

from harness import BUILD, CC, KBGEN, ROOT, SAN, SCRATCH, done, folder, ok, read, run, same_bytes, scratch, script
from harness import write

LEAST = "system: {name: least}\nsip: {cubes: {rows: 1, cols: 1}}\n"
DUMPS = ("model", "nodes", "links", "routes", "dot", "schema")
VARIANT = not os.path.samefile(BUILD, os.path.join(ROOT, "build"))


def refused(title, status, pattern, *arguments, **options):
    """Checks the exit status and the message; nothing is printed on standard output, nothing is written."""
    where = folder("refused")
    ended = run(KBGEN, *arguments, **({"cwd": where} | options))
    ok(ended.returncode == status and re.search(pattern, ended.stderr) and not ended.stdout and not os.listdir(where),
       f"{title} is refused with status {status}", ended.said, os.listdir(where))


def works(title, *arguments, where=SCRATCH, makes=".", program=KBGEN, home=None):
    """Checks the exit status 0, and that a file is made in the folder where kbgen runs."""
    ended = run(program, *arguments, cwd=where, env=os.environ | ({"KBGEN_HOME": home} if home else {}))
    ok(ended.returncode == 0 and os.path.exists(os.path.join(where, makes)), title, ended.said)
    return ended


def helps():
    shown = works("--help succeeds", "--help")
    words = "-o --output --emit --keep -k --kernel --set --check --dump --cc -O -j --jobs -v --verbose -h -V --version"
    for word in words.split():
        ok(f" {word}" in shown.stdout, f"--help names {word}", shown.stdout)
    ok(shown.stderr == "", "--help is printed on standard output alone")
    ok(re.fullmatch(r"kbgen \d+\.\d+\.\d+\n", run(KBGEN, "--version").stdout),
       "--version prints a version of three numbers")
    for short, long in (("-h", "--help"), ("-V", "--version")):
        ok(run(KBGEN, short).stdout == run(KBGEN, long).stdout, f"{short} is short for {long}")


def standard_input(topology):
    """The topology - is standard input, with its own name in messages; only an exact - is."""
    where = folder("input")
    write(os.path.join(where, "part.yaml"), "sip: {cubes: {rows: 1, cols: 1}}\n")

    def given(text, *words):
        with open(write(os.path.join(where, "given"), text), encoding="utf-8") as file:
            return run(KBGEN, *words, cwd=where, stdin=file)

    made = given("include: part.yaml\nsystem: {name: read}\n", "-", "--keep", topology, "-o", "out/")
    ok(made.returncode == 0 and not made.said.splitlines()[1:] and run(os.path.join(where, "out/read"), "info").returncode == 0,
       "kbgen - makes the machine of standard input, beside others, with includes from the current folder", made.said)
    ok("from standard input " in read(os.path.join(where, "out/read.c/machine.h")),
       "generated C says that it is made from standard input")
    piped = run("sh", "-c", f"cat '{topology}' | '{KBGEN}' - --check", cwd=where)
    ok(piped.returncode == 0 and not piped.stderr, "kbgen - reads a pipe", piped.said)
    wrong = given("system: {nmae: x}\n", "-")
    ok(wrong.returncode == 2 and "standard input:1:10: error: unknown key 'nmae'" in wrong.stderr,
       "an error of standard input is told with its place", wrong.said)
    itself = given("include: given\n", "-")
    ok(itself.returncode == 2 and "'given' includes itself" in itself.stderr,
       "standard input that includes its own file is refused", itself.said)
    closed = run("sh", "-c", f"'{KBGEN}' - <&-", cwd=where)
    ok(closed.returncode == 2 and "kbgen: cannot read standard input: Bad file descriptor" in closed.stderr,
       "a standard input that is closed is told", closed.said)
    twice = given(LEAST, "-", "-")
    ok(twice.returncode == 2 and "it is named twice" in twice.stderr, "standard input is one topology", twice.said)
    write(os.path.join(where, "-"), LEAST)
    ok(given("", "./-", "--check").returncode == 0, "./- is the file of that name")


def usage(topology):
    refused("no topology", 2, "^kbgen: no topology file")
    refused("two topologies to one file", 2, "-o takes a folder .* not 'file'", topology, topology, "-o", "file")
    refused("--dump of two topologies", 2, "--dump takes one topology", topology, topology, "--dump", "nodes")
    for word, said in (("--fast", "no option '--fast'; kbgen --help lists the options"),
                       ("--chekc", "no option '--chekc'; did you mean '--check'?"),
                       ("-x", "no option '-x'; kbgen --help lists the options"),
                       ("-vx", "no option '-x'; kbgen --help lists the options"),
                       ("--ke", "--ke may be --keep or --kernel: write it out"),
                       ("--check=3", "--check takes no value; kbgen --help lists the options"),
                       ("-o", "-o needs a value; kbgen --help lists the options"),
                       ("--set", "--set needs a value; kbgen --help lists the options")):
        refused(f"the option {word}", 2, f"^kbgen: {re.escape(said)}\n$", topology, word)
    for option, name, one, other in (("-o", "-o", "a", "b"), ("--output", "-o", "a", "a"), ("--emit", "--emit", "c", "exe"),
                                     ("--dump", "--dump", "nodes", "links"), ("--cc", "--cc", "gcc", "clang"),
                                     ("-O", "-O", "0", "2"), ("-j", "-j", "1", "2"), ("--jobs", "-j", "1", "1")):
        refused(f"a second {option}", 2, f"^kbgen: {name} is given twice, as '{one}' and '{other}'; it takes one value\n$",
                topology, option, one, option, other)
    refused("an unknown --dump", 2, "--dump takes one of model, nodes, .*; not 'node'", topology, "--dump", "node")
    refused("an unknown --emit", 2, "--emit takes one of exe, c, lib; not 'so'", topology, "--emit", "so")
    refused("an unknown -O", 2, "-O takes one of 0, 1, .*; not '4'", topology, "-O4")
    for jobs in ("0", "x", "1e3", "", "9999999999999999999999"):
        refused(f"-j {jobs!r}", 2, "-j takes a number", topology, "-j", jobs)
    refused("an empty -o", 2, "-o takes the path of a file", topology, "-o", "")
    refused("-o of a folder for one simulator", 2, "-o takes the path of a file", topology, "-o", "folder/")
    refused("an empty --cc", 2, "--cc names no compiler", topology, "--cc", " ", "-o", scratch("never"))
    refused("--impl of a file that does not exist", 2, "--impl mine.c: No such file .*; check its name; a path begins at",
            topology, "--impl", "mine.c")
    no_file = "No such file or directory; "
    refused("a topology that does not exist", 2, fr"^kbgen: cannot open none\.yaml: {no_file}check its name; a path begins "
            f"at the current folder, {re.escape(SCRATCH)}/refused\n$", "none.yaml")
    refused("a topology whose name is misspelt", 2, fr"cannot open \.\./lesat\.yaml: {no_file}did you mean "
            r"'\.\./least\.yaml'\?", "../lesat.yaml")
    refused("a topology without its ending", 2, fr"cannot open \.\./least: {no_file}did you mean '\.\./least\.yaml'\?",
            "../least")
    refused("a topology in a folder that does not exist", 2, fr"cannot open no/x\.yaml: {no_file}there is no folder no/",
            "no/x.yaml")
    refused("an empty path", 2, f"cannot open : {no_file}the path is empty; name a file", "")
    refused("a topology that is a folder", 2, "Is a directory; name a file in it", SCRATCH + "/refused")
    refused("a kernel that does not exist", 2, f"^kbgen: -k none.c: {no_file}check", topology, "-k", "none.c")
    refused("--set of an unknown key", 2, "--set:1:", topology, "--set", "system.pices.bw_gbs=1")
    wrong = write(scratch("wrong.yaml"), "system: {nmae: x}\n")
    for option in ((), ("--check",), ("--dump", "nodes"), ("--emit", "c")):
        refused(f"a wrong topology with {' '.join(option) or 'no option'}", 2, "wrong.yaml:1:10: error", wrong, *option)
    large = write(scratch("large.yaml"),
                  "system: {name: x, sips: 256}\nsip: {cubes: {rows: 16, cols: 16}}\n"
                  "cube: {memory_map: {hbm_slices_per_cube: 64}}\n")
    refused("a machine too large for a simulator", 2, r"large.yaml:1:25: error: .* MiB of state", large, "--check")


def outputs(topology):
    where = folder("outputs")
    works("a simulator is build/NAME below the current folder", topology, where=where, makes="build/least")
    works("-o makes the folders of its path", topology, "-o", "deep/er/sim", where=where, makes="deep/er/sim")
    works("--emit c makes build/NAME.c/", topology, "--emit", "c", where=where, makes="build/least.c/pe.c")
    works("--emit c -o FOLDER writes into the folder", topology, "--emit", "c", "-o",
          "here", where=where, makes="here/machine.c")
    works("--emit c -o FOLDER// writes into the folder", topology, "--emit", "c", "-o",
          "slash//", where=where, makes="slash/machine.c")
    works("--emit exe makes a simulator", topology, "--emit", "exe", "-o", "exe", where=where, makes="exe")
    works("--keep leaves the sources beside the simulator", topology, "--keep", "-o",
          "kept", where=where, makes="kept.c/machine.c")
    for name in os.listdir(os.path.join(where, "here")):
        same = read(os.path.join(where, "here", name)) == read(os.path.join(where, "kept.c", name))
        ok(same, f"--keep and --emit c give the same {name}")
    before = os.stat(os.path.join(where, "here/machine.c")).st_mtime_ns
    works("--emit c succeeds again", topology, "--emit", "c", "-o", "here", where=where)
    ok(os.stat(os.path.join(where, "here/machine.c")).st_mtime_ns == before, "--emit c leaves an equal file alone")
    write(os.path.join(where, "here/mine.txt"), "mine")
    works("--emit c with another number succeeds", topology, "--emit", "c", "-o", "here", "--set",
          "system.sips=3", where=where)
    ok("SIPS = 3, /* --set system.sips */" in read(os.path.join(where, "here/machine.h")),
       "--emit c replaces a file that changes")
    ok(read(os.path.join(where, "here/mine.txt")) == "mine", "--emit c leaves files of others alone")
    found = sorted(os.listdir(where))
    ok(found == ["build", "deep", "exe", "here", "kept", "kept.c", "slash"],
       "kbgen makes nothing but what it is asked for", *found)
    for title, words in (("a folder", ["-o", "here"]), ("the topology", ["-o", topology]),
                         ("a simulator, for sources,", ["-o", "exe", "--emit", "c"])):
        said = run(KBGEN, topology, *words, cwd=where)
        ok(said.returncode == 2 and "names another place" in said.stderr,
           f"kbgen does not write over {title} and says so", said.said)
    ok(read(topology) == LEAST, "kbgen leaves the topology as it was")


def options(topology):
    where = folder("options")
    checked = works("--check succeeds", topology, "--check", where=where)
    ok(not checked.stdout + checked.stderr and not os.listdir(where), "--check says and writes nothing", checked.said)
    many = [write(os.path.join(folder("many"), f"{i}.yaml"), f"system: {{ name: many{i} }}\n") for i in range(200)]
    works("200 topologies are checked at once", *many, "--check", where=where)
    for what in DUMPS:
        dumped = works(f"--dump {what} succeeds", topology, "--dump", what, where=where)
        ok(dumped.stdout and not dumped.stderr and not os.listdir(where),
           f"--dump {what} prints on standard output and writes nothing",
           dumped.said)
    works("--dump schema needs no topology", "--dump", "schema")
    full = run("sh", "-c", f'"{KBGEN}" "{topology}" --dump nodes >/dev/full')
    ok(full.returncode == 3 and "standard output" in full.stderr,
       "a dump onto a full disk ends with status 3", full.said)
    spoken = works("-v succeeds", topology, "-v", "-j", "1", "-o", "v", where=where, makes="v")
    found = re.search(r"ms +compile tables\.c\n.* ms +link\n", spoken.stderr, re.S)
    ok(found, "-v tells how long each step took", spoken.said)
    works("of two --set of one key the later counts", topology, "--set", "system.name=a", "--set",
          "system.name=b", where=where,
          makes="build/b")
    works("-j64 and -O3 are taken", topology, "-j64", "-O3", "-o", "j", where=where, makes="j")
    works("--cc takes a compiler with arguments", topology, "--cc", CC + " -g0", "-o", "g0", where=where, makes="g0")
    for other in () if SAN else ("gcc", "clang"):
        works(f"--cc {other} makes a simulator", topology, "--cc", other, "-o", other, where=where, makes=other)
    script(os.path.join(where, "mycc"), f'exec {CC} "$@"\n')
    works("--cc takes a relative path", topology, "--cc", "./mycc", "-o", "rel", where=where, makes="rel")
    write(os.path.join(where, "one.c"), "int one(void) { return 1; }\n")
    write(os.path.join(where, "two.c"), "int one(void);\nint two(void) { return one(); }\n")
    works("-k can be given twice", topology, "-k", "one.c", "-k", "two.c", "-o", "k", where=where, makes="k")
    write(os.path.join(where, "two.c"), "int one(void) { return 2; }\n")
    twice = run(KBGEN, topology, "-k", "one.c", "-k", "two.c", "-o", "k", cwd=where)
    ok(twice.returncode == 2, "two kernel files that define one name are refused", twice.said)


def world(topology):
    never = scratch("never")
    refused("a compiler that does not exist", 3, "no-such-cc .*--cc.*: No such file", topology, "--cc", "no-such-cc",
            "-o", never)
    refused("a compiler that fails", 3, "false is no C compiler", topology, "--cc", "false", "-o", never)
    refused("a folder that cannot be made", 3, "/proc/none", topology, "-o", "/proc/none/sim")
    home = os.environ | {"KBGEN_HOME": SCRATCH}
    refused("KBGEN_HOME without kbgen's files", 3, "no templates/machine.c.in in .*KBGEN_HOME", topology, env=home)
    ok(not os.path.exists(never), "without a compiler or templates nothing is made")


def installed(prefix):
    """Puts in place what `make install` does, without make."""
    for part, names in (("bin", ["kbgen"]), ("lib/kbgen", ["runtime.o"])):
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
    works("kbgen finds its files beside itself, in lib and share", topology, "-o",
          "a", program=program, where=where, makes="a")
    link = os.path.join(where, "kbgen")
    if not os.path.islink(link):
        os.symlink(program, link)
    works("kbgen finds its files through a link to it", topology, "-o", "b", program=link, where=where, makes="b")
    works("KBGEN_HOME can name an installation", topology, "-o",
          "c", program=elsewhere, home=prefix, where=where, makes="c")
    if not VARIANT:
        works("KBGEN_HOME can name the tree", topology, "-o", "d", program=elsewhere, home=ROOT, where=where, makes="d")
    homeless = {name: value for name, value in os.environ.items() if name != "KBGEN_HOME"}
    lost = run(elsewhere, topology, cwd=where, env=homeless)
    ok(lost.returncode == 3 and "KBGEN_HOME" in lost.stderr,
       "kbgen without its files asks for KBGEN_HOME, with status 3", lost.said)
    run("chmod", "-R", "u+w", prefix)
    # Objects with sanitizers name their sources.
    for other, how in (("b", "a link"), ("c", "KBGEN_HOME")) if not SAN else ():
        same_bytes(os.path.join(where, "a"), os.path.join(where, other),
                   f"kbgen found through {how} makes the same bytes")


def broken_templates(topology):
    home = folder("broken")
    installed(home)
    write(os.path.join(home, "share/kbgen/templates/pe.c.in"), "//@ each pe\n$name$ $nmae$\n//@ end\n")
    both = r"pe\.c\.in:1:10: error: no table 'pe'\n(.*\n)*.*pe\.c\.in:2:9: error: no hole 'nmae'"
    refused("a template with two errors", 2, both, topology, env=os.environ | {"KBGEN_HOME": home})


shutil.rmtree(SCRATCH)
least = write(os.path.join(folder("."), "least.yaml"), LEAST)
helps()
usage(least)
standard_input(least)
outputs(least)
options(least)
world(least)
homes(least)
broken_templates(least)
for name in sorted(one for one in os.listdir(os.path.join(ROOT, "topologies")) if one.endswith(".yaml")):
    works(f"kbgen makes the machine of topologies/{name}", os.path.join(ROOT, "topologies", name), "-o", name + ".sim")
done()
