#!/usr/bin/python3
"""import: `SIM import` makes a command stream of a firmware log; a log of a simulated run replays to the same times."""
import json
import os
import re

from harness import GEMM, ROOT, SMALL, ok, read, run, scratch, simulator, suite, write

# Cases whose PEs do all that happens: no map, no memory request, no failure, kernels that start at a barrier.
CASES = ("epilogue_once", "gemm_k_loop", "multicast_cubes_credit", "random_two_launches", "ring_order", "tie_of_stages", "two_composites")
HEAD = "t_ns,pe,do,from,to,bytes\n"
LOAD = "100,0,load,hbm,0x200000,64\n"
LATE = ("--set", "cube.pe_template.components.pe_cpu.attrs.launch_ns=100")

# Of one log: as CSV and as JSON lines.
CSV = """# a comment, a column that nobody knows, a blank line
t_ns,done_ns,pe,do,from,to,bytes,m,k,n,dtype,id,async,tile,op,a,b,c,for,temperature

100,300.5,sip0.cube0.pe0,load,hbm+0x1000,0x200000,4096,,,,,x,,,,,,,,31
150,400,0,gemm,,,,64,64,64,f16,,false,,,,,,,
600,,sip0.cube0.pe0,store,0x200000,0x2000,4096,,,,,,,,,,,,,
500,,1,composite,,,,128,128,128,f16,c0,,64x64x64,gemm,"{""space"": ""hbm""}",{space: hbm},sip0.cube0.pe0.hbm+0x20000,,
5000,,1,wait,,,,,,,,,,,,,,,c0,
5100,,1,send,0x200000,0,64,,,,,,,,,,,,,
""".replace("{space: hbm}", '"{space: hbm, offset: 65536}"')
STREAM = """programs:
  p0:
    - { do: load, from: { space: hbm, offset: 0x1000 }, to: 0x200000, bytes: 4096, id: "x", async: true }
    - { do: delay, ns: 48 }
    - { do: gemm, m: 64, k: 64, n: 64, dtype: f16 }
    - { do: delay, ns: 198 }
    - { do: store, from: 0x200000, to: { va: 0x2000 }, bytes: 4096, async: true }
  p1:
    - { do: delay, ns: 400 }
    - { do: composite, m: 128, k: 128, n: 128, dtype: f16, tile: [64, 64, 64], op: gemm, a: { "space": "hbm" }, b: { space: hbm, offset: 65536 }, c: { sip: 0, cube: 0, pe: 0, space: hbm, offset: 0x20000 }, id: "c0" }
    - { do: wait, for: ["c0"] }
    - { do: delay, ns: 98 }
    - { do: send, from: 0x200000, to: sip0.cube0.pe0, bytes: 64, async: true }
launches:
  - { parts: [
      { program: p0, targets: [sip0.cube0.pe0] },
      { program: p1, targets: [sip0.cube0.pe1] } ] }
"""
# The sentence of the test, a log, its first error as LINE:COLUMN: MESSAGE.
WRONG = (
    ("a log has records", "", "1:1: error: the log has no record"),
    ("a log has more than comments", "# nothing\n\n", "1:1: error: the log has no record"),
    ("two columns have two names", "t_ns,pe,t_ns\n1,0,2\n", "1:9: error: two columns are called 't_ns'"),
    ("a line has as many cells as there are names", HEAD + "100,0,load\n", "2:1: error: the line has 3 cells, but there are 6 names"),
    ("a line has no more cells", HEAD + LOAD[:-1] + ",x\n", "2:28: error: there are 6 names, but this is cell 7"),
    ("a quote is closed", HEAD + '100,0,"load,hbm\n1,2\n', "2:7: error: this quote is never closed"),
    ("nothing follows a quoted cell", HEAD + '100,0,"load"x,hbm,0x200000,64\n', "2:13: error: the quoted cell has ended before this"),
    ("a JSON line ends", '{"t_ns": 1, "pe": 0, "do": "load"\n', "1:34: error: '}' or ',' is missing here"),
    ("a JSON line that was cut in a text", '{"t_ns": 1, "pe": "sip0\n', "1:19: error: this text has no end on its line"),
    ("a JSON line that was cut before a value", '{"t_ns":\n', "1:9: error: the line ends where a value is missing"),
    ("a list of a cell ends with a word", HEAD + "1,0,send,0x200000,1|,64\n", "2:19: error: '1|' is no list: a word of it is empty"),
    ("a list of a cell begins with a word", HEAD + "1,0,send,0x200000,|1,64\n", "2:19: error: '|1' is no list: a word of it is empty"),
    ("a list of a cell has words between its separators", HEAD + "1,0,send,0x200000,0 | |1,64\n", "2:19: error: '0 | |1' is no list"),
    ("each JSON line is an object", '{"t_ns": 1, "pe": 0, "do": "begin"}\n[1]\n', "2:1: error: a record must be a JSON object"),
    ("a JSON line is one object", '{"t_ns": 1, "pe": 0, "do": "begin"} {}\n', "1:37: error: the record has ended before this"),
    ("a key is there once", '{"t_ns": 1, "t_ns": 2}\n', "1:13: error: 't_ns' is here twice"),
    ("an escape means a character", '{"t_ns": 1, "id": "\\u0000"}\n', "1:20: error: this JSON escape is no character"),
    ("half a surrogate pair is no character", '{"t_ns": 1, "id": "\\ud800x"}\n', "1:20: error: this JSON escape is no character"),
    ("nesting has an end", '{"t_ns": ' + 70 * "[" + "\n", "1:74: error: values are nested more than 64 deep"),
    ("a record says what it is of", '{"t_ns": 1, "pe": 0}\n', "1:1: error: 'do' is missing"),
    ("a record has a PE", '{"t_ns": 1, "do": "math", "op": "add", "elems": 1, "dtype": "f16"}\n', "1:1: error: 'pe' is missing"),
    ("a record has a time", '{"pe": 0, "do": "math", "op": "add", "elems": 1, "dtype": "f16"}\n', "1:1: error: 't_ns' is missing"),
    ("a time is not negative", HEAD + "-" + LOAD, "2:1: error: t_ns must be a time from 0 on, of less than 2^76 ps, not '-100'"),
    ("a time is a number", HEAD + "NaN" + LOAD[3:], "2:1: error: t_ns must be a time from 0 on, of less than 2^76 ps, not 'NaN'"),
    ("a time has a bound", HEAD + "1e30" + LOAD[3:], "2:1: error: t_ns must be a time from 0 on, of less than 2^76 ps, not '1e30'"),
    ("cycles have a clock", HEAD.replace("t_ns", "t_cycles") + LOAD, "2:1: error: t_cycles counts cycles of a clock that is not given"),
    ("a record has one time", '{"t_ns": 1, "t_us": 1, "pe": 0, "do": "begin"}\n', "1:21: error: the record has another time beside t_us"),
    ("a command ends after it begins", '{"t_ns": 2, "done_ns": 1, "pe": 0, "do": "begin"}\n', "1:24: error: the command ends before it begins"),
    ("a PE exists", HEAD + LOAD.replace(",0,", ",9,"), "2:5: error: pe must be a whole number from 0 to 3, not '9'"),
    ("a PE has its name", HEAD + LOAD.replace(",0,", ",sip0.cube0.pe7,"), "2:5: error: there is no PE 'sip0.cube0.pe7'"),
    ("a command exists", HEAD + LOAD.replace("load", "laod"), "2:7: error: do must be load, store, gemm"),
    ("a command has all its fields", HEAD + "100,0,load,hbm,0x200000,\n", "2:1: error: 'bytes' is missing"),
    ("a command has its own fields alone", "t_ns,pe,do,from,to,bytes,m\n100,0,load,hbm,0,64,5\n", "1:26: error: unknown key 'm' in a load"),
    ("an address has its form", HEAD + LOAD.replace("hbm", "hmb+4"), "2:12: error: 'hmb+4' is no address"),
    ("an offset is a number", HEAD + LOAD.replace("hbm", "hbm+x"), "2:12: error: offset must be a whole number"),
    ("a wait names what it waits for", '{"t_ns": 1, "pe": 0, "do": "wait"}\n', "1:1: error: a wait needs 'for'"),
    ("what is waited for was issued", "t_ns,pe,do,from,to,bytes,id,for\n1,0,load,hbm,0x200000,64,x,\n2,0,wait,,,,,\"x y\"\n",
     "3:14: error: no command of sip0.cube0.pe0 above has the id 'y'"),
    ("ids of a PE differ", "t_ns,pe,do,from,to,bytes,id\n1,0,load,hbm,0x200000,64,x\n2,0,load,hbm,0x200000,64,x\n",
     "3:26: error: two commands of sip0.cube0.pe0 have the id 'x'"),
    ("a command is there once", "t_ns,pe,cmd,do,from,to,bytes\n1,0,0,load,hbm,0x200000,64\n2,0,1,load,hbm,0x200000,64\n3,0,1,load,hbm,0x200000,64\n",
     "4:1: error: sip0.cube0.pe0: command 1 is here twice"),
    ("all records of a PE have a launch, or none", "t_ns,pe,launch,do,op,elems,dtype\n5,0,1,math,add,8,f16\n6,0,,math,add,8,f16\n7,0,0,math,add,8,f16\n",
     "3:1: error: the record has no 'launch', but others of sip0.cube0.pe0 have one"),
    ("a launch among records without one", "t_ns,pe,launch,do,op,elems,dtype\n6,0,,math,add,8,f16\n5,1,1,math,add,8,f16\n7,0,0,math,add,8,f16\n",
     "4:1: error: the record has a 'launch', but others of sip0.cube0.pe0 have none"),
    ("a kernel begins once", "t_ns,pe,do\n1,0,begin\n2,0,begin\n", "3:1: error: the kernel of sip0.cube0.pe0 has begun already"),
    ("a kernel that has ended does nothing", "t_ns,pe,do\n1,0,begin\n2,0,end\n3,0,end\n", "4:1: error: the kernel of sip0.cube0.pe0 has ended"),
    ("a number of years is too long", HEAD + LOAD + "1e19,0,load,hbm,0x200000,64\n", "3:1: error: the record is more than 100 days after"),
)


def times(result):
    """What a result says of commands and PEs, and its end."""
    return result["end_ps"], [(launch["start_ps"], launch["done_ps"], launch["pes"], launch["commands"]) for launch in result["launches"]]


def round_trip(program, name, *command, numbers=()):
    """Runs, logs, imports and replays, with options that replace numbers of the machine. Returns the two results."""
    log, stream = scratch(name + ".jsonl"), scratch(name + ".yaml")
    first = run(program, *command, "--command-log", log, "--json", "-", *numbers)
    made = run(program, "import", log, "-o", stream, *numbers)
    second = run(program, "replay", stream, "--json", "-", "--command-log", scratch(name + ".again"), *numbers)
    if made.returncode or second.returncode:
        return None, made.said + second.said
    return json.loads(first.stdout), json.loads(second.stdout)


def cases():
    for case in CASES:
        path = os.path.join(ROOT, "tests/conformance", case)
        first, second = round_trip(simulator(os.path.join(path, "topo.yaml"), case), case, "replay", os.path.join(path, "stream.yaml"))
        ok(first and times(first) == times(second), f"the log of {case} replays to the same times", first or second)
        ok(read(scratch(case + ".jsonl")) == read(scratch(case + ".again")), f"and the log of that is the log of {case}")


def bench(program):
    first, second = round_trip(program, "gemm", "run", "gemm", *GEMM, "--data", "off")
    ok(first and len(first["launches"][0]["commands"]) > 1 and times(first) == times(second), "a bench becomes a stream of the same times",
       first or second)
    first, second = round_trip(program, "late", "run", "gemm", *GEMM, "--data", "off", numbers=LATE)
    ok(first and times(first) == times(second), "so it does if a kernel's body begins after its start", first or second)


def imported(program, text, *options, name="log.csv"):
    return run(program, "import", write(scratch(name), text), *options)


def forms(program):
    made = imported(program, CSV)
    ok(made.returncode == 0 and made.stdout == 'name: "log.csv"\n' + STREAM, "a log of waits and of times becomes this stream", made.said)
    ok(re.search(r"log.csv:2:\d+: 'temperature' is not known and ignored\n", made.stderr), "a column that nobody knows is named", made.stderr)
    for title, text in (("CR LF", CSV.replace("\n", "\r\n")), ("a byte order mark", "\ufeff" + CSV), ("no last line break", CSV[:-1]),
                        ("tabs between cells", re.sub(r',(?=([^"]*"[^"]*")*[^"]*$)', "\t", CSV)),
                        ("records that are not in order", "\n".join((lines := CSV.splitlines())[:3] + sorted(lines[3:], reverse=True)))):
        again = imported(program, text)
        ok(again.stdout == made.stdout, f"the same with {title}", again.said)
    us = imported(program, HEAD.replace("t_ns", "t_us") + "1.5,0,load,hbm,0x200000,64\n1.7509406,0,load,hbm,0x200000,64\n")
    cycles = imported(program, HEAD.replace("t_ns", "t_cycles") + "3000,0,load,hbm,0x200000,64\n3501.8811,0,load,hbm,0x200000,64\n", "--clock", "2 GHz")
    epoch = imported(program, HEAD + "".join(f"{1700000000 * 10**9 + at}.9,0,load,hbm,0x200000,64\n" for at in (0, 250)).replace("250.9", "251.8406"))
    ok("delay, ns: 248.941 }" in us.stdout and us.stdout == cycles.stdout == epoch.stdout, "times are exact in every unit, and since any instant",
       us.said, cycles.said, epoch.said)
    fast = imported(program, HEAD + "".join(f"{at},0,load,hbm,0x200000,64\n" for at in (100, 100.5, 101, 200)))
    ok(fast.stdout.count("delay") == 1 and "delay, ns: 94 }" in fast.stdout, "commands faster than pe_cpu's overhead are caught up with later", fast.said)
    tie = imported(program, "t_ns,pe,cmd,do,op,elems,dtype,id,for,pined\n1,0,1,math,add,8,f16,b,,1\n1,0,,wait,,,,,a b,\n1,0,0,math,add,8,f16,a,,\n")
    ok(re.search(r'id: "a".*\n.*id: "b".*\n.*for: \["a", "b"\]', tie.stdout), "of one time, numbers tell the order, and a record without one follows the one above it", tie.said)
    ok("'pined' is not known and ignored; did you mean 'pinned'?" in tie.stderr, "a column that is nearly the key of a step is named", tie.said)
    begun = imported(program, "t_ns,pe,do,op,elems,dtype\n1000,0,begin,,,\n1000,1,begin,,,\n1200,0,math,add,8,f16\n1150,1,end,,,\n",
                     *LATE)
    ok("ns: 98 }\n    - { do: math" in begun.stdout and "ns: 50 }\n" in begun.stdout, "a kernel's time begins launch_ns after its start", begun.said)
    several = imported(program, HEAD + "1,0,send,0x200000,1|sip0.cube0.pe1,64\n2,0,send,0x200000,1,64\n")
    ok("to: [sip0.cube0.pe1, sip0.cube0.pe1]" in several.stdout.replace('"', "") and "to: sip0.cube0.pe1," in several.stdout,
       "a send goes to one PE or to a list", several.said)
    host = imported(program, '{"do": "map", "va": 0, "bytes": 65536, "to": {"space": "hbm", "offset": 0}}\n{"t_ns": 1, "pe": 0, "do": "begin"}\n')
    ok("host:\n  - { \"do\": \"map\"" in host.stdout and "\n  - { do: launch, parts: [" in host.stdout, "a map of the host comes before its launch", host.said)
    alone = imported(program, '{"do": "read", "bytes": 64, "from": [{"space": "sram"}]}\n', name="alone")
    replayed = run(program, "replay", write(scratch("alone.yaml"), alone.stdout))
    ok(replayed.returncode == 0 and "host:\n  - { \"do\": \"read\"" in alone.stdout, "a log may have steps of the host alone", alone.said, replayed.said)
    lost = imported(program, "t_ns,pe,cmd,do,from,to,bytes\n1,0,0,load,hbm,0x200000,64\n3,0,2,load,hbm,0x200000,64\n")
    ok(lost.returncode == 0 and "log.csv:3: sip0.cube0.pe0: command 2 follows, but 1 comes next: records are missing" in lost.stderr,
       "records that are missing are told", lost.said)


def wrong(program):
    for title, text, said in WRONG:
        out = scratch("wrong.yaml")
        ended = imported(program, text, "-o", out, name="wrong")
        ok(ended.returncode == 2 and f"wrong:{said}" in ended.stderr.split("\n")[0] and not os.path.exists(out), title, ended.said[:600])
    many = imported(program, HEAD + 50 * LOAD.replace("load", "laod"), name="wrong")
    ok(many.returncode == 2 and "30 more errors" in many.stderr, "all errors are counted", many.stderr[-200:])
    log = write(scratch("itself.csv"), HEAD + LOAD)
    ended = run(program, "import", log, "-o", log)
    ok(ended.returncode == 2 and "the stream would replace the log" in ended.stderr and read(log) == HEAD + LOAD, "a log is not replaced", ended.said)
    none = run(program, "import", scratch("nowhere"))
    ok(none.returncode == 2 and "cannot open" in none.stderr, "a log has to be there", none.said)


def large(program):
    text = "t_ns,pe,do,from,to,bytes,id\n" + "".join(f"{100 * i},{i % 2},load,hbm+{i % 1000 * 4096},0x200000,4096,c{i}\n" for i in range(50000))
    ended = imported(program, text, "-o", scratch("large.yaml"))
    ok(ended.returncode == 0 and "50000 commands" in ended.stdout and read(scratch("large.yaml")).count("do: load") == 50000, "50,000 records", ended.said)


def main():
    program = simulator(SMALL, "small")
    forms(program)
    wrong(program)
    large(program)
    bench(program)
    cases()


suite(main)
