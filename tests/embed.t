#!/usr/bin/python3
"""embed: a simulator as a library: instances, failures, what it asks of the system, its interface. limit: 120"""
import itertools
import json
import os
import re
import shutil

from harness import KBGEN, ROOT, SAN, SMALL, folder, ok, read, run, scratch, simulator, skip, suite, topology, without_host, write

HERE = os.path.join(ROOT, "tests", "embed")
KERNELS = os.path.join(ROOT, "tests", "ends", "ends.c")
CC = os.environ["CC"].split()
FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", *(["-fsanitize=address,undefined"] if SAN else [])]
STREAM = """launches:
  - { program: a, targets: ["*"] }
programs:
  a:
    - { do: composite, id: c0, op: gemm, m: 128, k: 64, n: 128, tile: [32, 32, 32], dtype: f16, a: {space: hbm, offset: 0}, b: {space: hbm, offset: 0x100000}, c: {space: hbm, offset: 0x200000} }
    - { do: store, from: 0x200000, to: {space: sram, offset: 0}, bytes: 4096 }
"""
SIZES = ("m=64", "m=96", "m=160", "m=224")


def library(file, name, *options):
    """The folder of the library of a topology file."""
    path = scratch(name + ".lib")
    made = run(KBGEN, file, "--emit", "lib", "-o", path, *options)
    ok(made.returncode == 0, f"kbgen makes a library of {name}", made.said)
    return path


def program(name, libraries, archives=False):
    """A program of tests/embed, linked with libraries."""
    path = scratch(name + ("-a" if archives else ""))
    names = [os.path.basename(lib).removesuffix(".lib") for lib in libraries]
    links = [word for lib, name_of in zip(libraries, names)
             for word in ([f"{lib}/lib{name_of}.a"] if archives else [f"-L{lib}", f"-l{name_of}", f"-Wl,-rpath,{lib}"])]
    made = run(*CC, *FLAGS, os.path.join(HERE, name + ".c"), "-o", path, *(f"-I{lib}" for lib in libraries), *links,
               "-ldl", "-lpthread")
    ok(made.returncode == 0, f"a program links {'archives' if archives else 'shared libraries'} of two machines", made.said)
    return path


def tell(ended, least):
    """What a program has checked."""
    lines = [re.match(r"(not )?ok (.*)", line) for line in ended.stdout.splitlines()]
    for found in filter(None, lines):
        ok(not found[1], found[2], found[2])
    ok(ended.returncode == 0 and sum(map(bool, lines)) >= least, f"it comes to its end after {least} checks", ended.said)


def many(contract):
    """64 instances of two machines on 8 threads, each as the simulator of its machine."""
    where = folder("many")
    stream = write(os.path.join(where, "stream.yaml"), STREAM)
    ended = run(contract, "many", cwd=where)
    ok(ended.returncode == 0 and not ended.stdout and not ended.stderr, "64 instances run on 8 threads, and print nothing", ended.said)
    wanted = {}
    for machine, seed, size in itertools.product((0, 1), (0, 1), SIZES):
        path = scratch("want.json")
        run(simulator((SMALL, topology("ref_sip"))[machine]), "run", "gemm", size, "n=64", "k=64", "--seed", seed, "--json", path)
        wanted[machine, seed, size] = without_host(read(path))
    for machine in 0, 1:
        run(simulator((SMALL, topology("ref_sip"))[machine]), "replay", stream, "--json", scratch("want.json"))
        wanted[machine] = read(scratch("want.json"))
    for i in range(64):
        text = read(os.path.join(where, f"many-{i}.json"))
        if i // 16 % 2:
            ok(text and text == wanted[i % 2], f"the result of instance {i}, which replays a stream in slices, is that of the simulator",
               text[:300])
            continue
        got = without_host(text)
        ok(got and got == wanted[i % 2, i // 2 % 2, SIZES[i // 4 % 4]], f"the result of instance {i} is that of the simulator",
           got[:300])


def ends(contract):
    where = folder("ends")
    tell(run(contract, "ends", cwd=where), 35)
    alone = simulator(SMALL, "small-ends", [KERNELS])
    for name in ("ends-exit", "bench_ends-_exit", "ends-jump_bench"):
        bench, what = name.split("-")
        path = scratch("end.json")
        run(alone, "run", bench, f"what={what}", "--json", path)
        got = read(os.path.join(where, name + ".json"))
        ok(got and without_host(got) == without_host(read(path)), f"{bench} that ends by {what}: the result is that of the simulator",
           got[:300])


# What libraries import of the C library may do nothing but compute, and ask for memory and files that are named.
FORBIDDEN = re.compile(r"^(v?printf|puts|putchar|perror|exit|_exit|_Exit|abort|quick_exit|atexit|on_exit|signal|sigaction|"
                       r"sigaltstack|timer_create|setitimer|fork|vfork|execv.*|system|popen|kill|malloc|calloc|realloc|"
                       r"stdout|stderr|__assert_fail)$")


def names(lib, name):
    """What the library exports, and what it and its image import."""
    file = f"{lib}/lib{name}.so"
    exported = run("nm", "-D", "--defined-only", file).stdout.split()[2::3]
    symbols = sorted(word.split("@")[0] for word in exported if not word.startswith("KB_"))
    header = read(f"{lib}/kb/sim.h")
    calls = sorted(set(re.findall(r"^(?:enum kb_status|const char \*|uint32_t) ?(kb_\w+)\(", header, re.M)))
    ok(symbols == sorted([*calls, f"kb_machine_{name}"]), "the library exports the calls of its header and its machine alone",
       f"{symbols}\n{calls}")
    image = scratch("image.so")
    data = open(file, "rb").read()
    begin = data.index(b"\x7fELF", 1)
    open(image, "wb").write(data[begin:])
    for what, path in (("library", file), ("image", image)):
        imported = [line.split()[-1].split("@")[0] for line in run("nm", "-D", "--undefined-only", path).stdout.splitlines()]
        bad = [word for word in imported if FORBIDDEN.match(word) and (what == "image" or word != "malloc")]
        ok(imported and not bad, f"the {what} imports nothing that prints, ends, catches signals or starts processes", bad)
    exported = run("nm", "-D", "--defined-only", image).stdout.split()[2::3]
    ok([word for word in exported if not word.startswith("__")] == ["kb_image"], "an image exports one symbol", exported)


def version(libs):
    """Layouts and calls of the first version: who was compiled with it calls this library."""
    made = program("layout", libs)
    known = read(os.path.join(HERE, "abi_1.txt"))
    ended = run(made)
    ok(set(known.splitlines()) <= set(ended.stdout.splitlines()), "structs and enumerators are where version 1 has them",
       ended.stdout)
    ok(ended.stdout.splitlines()[-1] == "old program: ok", "a program with the structs of version 1 runs", ended.said)


def costs(contract):
    ended = run(contract, "cost")
    figures = dict(line.split() for line in ended.stdout.splitlines() if " " in line)
    ok(float(figures.get("create_ms", 99)) < 5, "an instance of 128 PEs is made in less than 5 ms", ended.said)
    ok(int(figures.get("instance_kib", 9999)) < 4096, "and takes less than 4 MiB", ended.said)


def quiet(contract):
    ended = run(contract, "quiet")
    if "skip" in ended.stdout:
        return skip("after its creation an instance asks the system for memory alone", "no seccomp here")
    ok(ended.stdout == "ok quiet\n", "after its creation an instance asks the system for memory alone", ended.said)
    if shutil.which("strace"):
        log = scratch("strace")
        ended = run("strace", "-f", "-o", log, "-e", "trace=%process,%signal,%network,write", contract, "loop", "2")
        own = [line for line in read(log).splitlines()
               if re.search(r"clone|fork|exit\(|rt_sigaction|sigaltstack|socket|write\(2", line)]
        ok(ended.returncode == 0 and not own, "strace sees no thread, no handler, no output", own)


def loops(contract):
    tell(run(contract, "loop", "60"), 2)
    if shutil.which("valgrind"):
        ended = run("valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite",
                    contract, "loop", "5", timeout=100)
        ok(ended.returncode == 0, "valgrind finds nothing in instances that are made, used and destroyed", ended.said[-3000:])


def texts(lib):
    about = json.loads(read(f"{lib}/small.json"))
    header = read(f"{lib}/small.h")
    ok(about["name"] == "small" and len(about["pes"]) == 4 and len(about["memories"]) == 10, "the description has PEs and memories",
       about)
    ok("#define SMALL_PES 4\n" in header and "#define SMALL_KERNEL_GEMM_2D \"gemm_2d\"\n" in header
       and "    SMALL_SIP0_CUBE1_PE0 = 2,\n" in header, "the header has them as constants", header[:2000])
    ended = run(*CC, "-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-pedantic", "-fsyntax-only", f"-I{lib}", f"{lib}/small.h")
    ok(ended.returncode == 0, "the headers are good C++", ended.said)
    ended = run(*CC, "-x", "c", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-fsyntax-only", f"-I{lib}", f"{lib}/small.h")
    ok(ended.returncode == 0, "and good C11", ended.said)
    before = os.stat(f"{lib}/libsmall.so").st_mtime_ns
    made = run(KBGEN, SMALL, "--emit", "lib", "-o", lib, "-k", KERNELS)
    ok(made.returncode == 0 and os.stat(f"{lib}/libsmall.so").st_mtime_ns == before, "a library that is up to date is left alone",
       before, made.said)


def embed():
    libs = [library(SMALL, "small", "-k", KERNELS), library(topology("ref_sip"), "ref_sip")]
    contract = program("contract", libs, archives=True)
    tell(run(contract, "wrong"), 193)
    if SAN:                                             # the rest says nothing of memory
        tell(run(contract, "ends", cwd=folder("ends")), 35)
        tell(run(contract, "loop", "6"), 2)
        return
    contract = program("contract", libs)
    many(contract)
    ends(contract)
    names(libs[1], "ref_sip")
    version(libs)
    costs(contract)
    quiet(contract)
    loops(contract)
    texts(libs[0])


suite(embed)
