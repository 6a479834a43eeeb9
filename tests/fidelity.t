#!/usr/bin/python3
"""fidelity: the committed table is what the sets give now; a set of one's own; a fit; wrong sets and rows. limit: 240, plain build only"""
import json
import os
import shutil
import subprocess
import sys

from harness import BLESS, BUILD, KBGEN, ROOT, first_difference, ok, read, run, scratch, suite, write

FOLDER = os.path.join(ROOT, "fidelity")
KERNEL = """#include <kb/host.h>
#include <kb/measure.h>
struct copy_args { kb_tensor x; };
KB_KERNEL(copy, struct copy_args)
{
    tl_free(tl, tl_load(tl, tl_my_shard(tl, arg->x)));
}
KB_BENCH(copy, "loads", KB_INT(bytes, 64, 1, 1 << 20, "of a PE"), KB_WORD(how, "slow fast", "nothing"))
{
    struct kb_pes pes = kb_pes("*.pe0");
    kb_tensor x = kb_tensor_new("x", KB_i8, kb_1d(kb_int(bytes)), kb_on(KB_HBM, pes));
    kb_future launch = kb_launch(copy, pes, &(struct copy_args){x});
    kb_wait(launch);
    kb_roofline(launch, &(struct kb_problem){.reads = {x}}, NULL);
}
"""
TOPOLOGY = "system: { name: mine }\nsip: { cubes: { rows: 1, cols: 1 } }\n"
ACCESS, BANDWIDTH = "cube.hbm_ctrl.attrs.access_ns", "cube.noc.link_bw_gbs"
SETTINGS = f"settings: {{ how: {{ slow: {{ {ACCESS}: 80 }} }} }}\n"
SIZES = "sizes: { column: how, bounds: [1, 2] }\n"
SET = "title: Mine\ntopology: topology.yaml\nkernels: [copy.c]\nbench: copy\nrows: rows.csv\nmeasured: time_ns\n"
ROWS = "bytes,how,time_ns\n64,slow,200\n4096,fast,300\n65536,fast,2500\n"


def folder(name, keys=SET, rows=ROWS, **files):
    path = scratch(name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    for file, text in ({"set.yaml": keys, "rows.csv": rows, "topology.yaml": TOPOLOGY, "copy.c": KERNEL} | files).items():
        write(os.path.join(path, file), text)
    return path


def fidelity(*words, script="fidelity.py", **environment):
    return subprocess.run([sys.executable, "-B", os.path.join(FOLDER, script), *words], capture_output=True, text=True, check=False,
                          env=os.environ | {"BUILD": BUILD} | environment)


def table():
    """The table and the page have what comes out now."""
    kept = {name: read(os.path.join(FOLDER, name)) for name in ("table.md", "table.json")}
    ended = fidelity()
    fresh = {name: read(os.path.join(FOLDER, name)) for name in kept}
    for name in kept:
        ok(ended.returncode == 0 and (BLESS or fresh[name] == kept[name]), f"fidelity/{name} is what the sets give",
           first_difference(kept[name], fresh[name]), ended.stderr)
        if not BLESS:
            write(os.path.join(FOLDER, name), kept[name])
    page, lines = read(os.path.join(ROOT, "docs/fidelity.md")), fresh["table.md"].splitlines()
    ok(all(line in page for line in lines), "docs/fidelity.md has the table", *[line for line in lines if line not in page])
    results = json.loads(fresh["table.json"])
    for result in results:
        rows = [row for row in result["errors"] if row["size"] == "all"]
        cells = " | ".join(f"{row['mean_absolute']:.1%}".replace("%", " %") for row in rows)
        line = f"| {result['title']} | {rows[0]['rows']} | {cells} |"
        ok(line in read(os.path.join(ROOT, "README.md")), f"the README has the errors of {result['set']}", line)
    ok({result["set"] for result in results} >= {"tpu_v6e", "n150", "gemmini", "wormhole_noc"}, "all sets are in the table", ended.stderr)


def by_hand():
    """Times and errors of a small set, from runs and sums of this test."""
    path = folder("mine", SET + SETTINGS)
    program = scratch("mine-simulator")
    made = run(KBGEN, os.path.join(path, "topology.yaml"), "-k", os.path.join(path, "copy.c"), "-o", program)
    times = []
    for line in ROWS.splitlines()[1:]:
        size, how, _ = line.split(",")
        ended = run(program, "run", "copy", f"bytes={size}", f"how={how}", "--data", "off", "--json", scratch("one.json"),
                    *(["--set", f"{ACCESS}=80"] if how == "slow" else []))
        times.append(json.loads(read(scratch("one.json")))["figures"]["time_ps"] if ended.returncode == 0 else made.said + ended.said)
    relative = [ps / (1000 * float(line.split(",")[2])) - 1 for ps, line in zip(times, ROWS.splitlines()[1:])]
    ended = fidelity(path)
    row = next((line for line in ended.stdout.splitlines() if "| public figures |" in line), "").split(" | ")
    want = [f"{sum(map(abs, relative)) / 3:.1%}".replace("%", " %"), f"{sum(relative) / 3:+.1%}".replace("%", " %")]
    ok(len(row) > 6 and [row[4], row[6]] == want and row[2] == "3", "errors of a set are as computed here", ended.stdout, ended.stderr, want)
    other = write(scratch("other.csv"), "\ufeffbytes,how,time_ns\r\n64,fast,150\r\n")           # as a spreadsheet writes them
    ended = fidelity(path, ROWS=other)
    ok(ended.returncode == 0 and "| 1 | public figures |" in ended.stdout, "ROWS=FILE has other rows", ended.stdout, ended.stderr)


def fit():
    """Rows that the machine made with another constant lead back to it."""
    path = folder("fitted", SET + f"fit: {{ {ACCESS}: [10.0, 200.0] }}\n")
    program, rows = scratch("mine-simulator"), ["bytes,how,time_ns"]
    for size in (64, 4096, 16384, 65536):
        run(program, "run", "copy", f"bytes={size}", "--data", "off", "--json", scratch("one.json"), "--set", f"{ACCESS}=123")
        rows.append(f"{size},fast,{json.loads(read(scratch('one.json')))['figures']['time_ps'] / 1000}")
    write(os.path.join(path, "rows.csv"), "\n".join(rows) + "\n")
    ended = fidelity(path, script="fit.py")
    found = json.loads(read(os.path.join(path, "constants.json")) or "{}")
    ok(abs(found.get("constants", {}).get(ACCESS, 0) - 123) < 2.5, "a fit finds the constant that made the rows", ended.stdout, ended.stderr)
    ended = fidelity(path)
    ok("| 1 fitted | 0.0 % |" in ended.stdout or "| 1 fitted | 0.1 % |" in ended.stdout, "and the table has what it gives", ended.stdout, ended.stderr)
    other = folder("other", SET + "constants: ../fitted/constants.json\n", rows=read(os.path.join(path, "rows.csv")))
    ended = fidelity(other)
    ok("| 1 fitted | 0.0 % |" in ended.stdout or "| 1 fitted | 0.1 % |" in ended.stdout, "another set may take its constants", ended.stdout, ended.stderr)
    os.remove(os.path.join(path, "constants.json"))
    ended = fidelity("--holdout", path, script="fit.py")
    found = [line.split(" | ") for line in ended.stdout.splitlines()[1:]]
    ok(len(found) == 5 and all(abs(float(line[3]) - 123) < 6 and float(line[2].strip("%")) < 1 for line in found) and not os.path.exists(os.path.join(path, "constants.json")),
       "constants of a half of the rows fit the other half", ended.stdout, ended.stderr)
    wrong = folder("unfit", SET + f"fit: {{ {ACCESS}: [20, 10] }}\n")
    ok(fidelity(wrong, script="fit.py").returncode == 2 and not os.path.exists(os.path.join(wrong, "constants.json")), "bounds have an order")


def kernels():
    """What the TPU's kernels compute, by each way to do a product: whole, panel by panel, streaming, and on the vector unit."""
    program, small = scratch("tpu"), ["--set", "cube.pe_template.components.pe_tcm.attrs.size_mb=48"]
    run(KBGEN, os.path.join(FOLDER, "tpu_v6e/topology.yaml"), "-k", os.path.join(FOLDER, "tpu_v6e/xla_gemm.c"), "-o", program)
    for bench, *words in (("xla_gemm", "m=100", "k=300", "n=700"), ("xla_gemm", "m=5000", "k=1024", "n=1030", *small), ("xla_gemm", "m=2000", "k=4096", "n=2100", *small),
                          ("xla_gemm", "m=1", "k=300", "n=700"), ("xla_gemm", "m=1", "k=2048", "n=3000", *small),
                          ("xla_ffn", "m=100", "k=300", "n=700"), ("xla_ffn", "m=2000", "k=1024", "n=2100", *small), ("xla_ffn", "m=1", "k=300", "n=700"), ("xla_ffn", "m=1", "k=2048", "n=3000", *small)):
        ended = run(program, "run", bench, *words)
        ok(ended.returncode == 0 and "verified" in ended.stdout, f"{bench} {' '.join(words)} verifies", ended.said)


BLOCKS = (("m=3072 k=3072 n=3072 dtype=BFLOAT16", "12 x 3 x 12 tiles, subblocks of 1 x 6"), ("m=3072 k=3072 n=4096 dtype=BFLOAT8_B", "12 x 6 x 16 tiles, subblocks of 1 x 8"),
          ("m=4096 k=4096 n=4096 dtype=BFLOAT8_B in0=DRAM", "8 x 16 x 8 tiles, subblocks of 4 x 2"), ("m=2048 k=3072 n=3072 dtype=BFLOAT16", "8 x 6 x 12 tiles, subblocks of 1 x 6"),
          ("m=512 k=8192 n=512 dtype=BFLOAT8_B in0=DRAM", "2 x 16 x 2 tiles, subblocks of 2 x 2"), ("m=500 k=500 n=500 dtype=BFLOAT16", "2 x 2 x 2 tiles, subblocks of 1 x 2"))


def rules():
    """The blocks of tt-metal's benchmark; mappings that are no layer; traces by their places."""
    program, models = scratch("n150"), [word for name in ("tensix", "unpackers") for word in ("--impl", os.path.join(FOLDER, "n150", name + ".c"))]
    run(KBGEN, os.path.join(FOLDER, "n150.yaml"), "-k", os.path.join(FOLDER, "n150/mcast_matmul.c"), *models, "-o", program)
    for words, blocks in BLOCKS:
        ended = run(program, "run", "mcast_matmul", *words.split(), "--data", "off")
        ok(ended.returncode == 0 and f"blocks of {blocks}" in ended.stdout, f"{words}: {blocks}", ended.said)
    mapping = "L3[WIO] K2 - L2[WI] N1 K16X - L1[O] C4 P8 C16X - L0[W] P16"
    for title, said, layer, text in (("a mapping", None, "K=32", mapping), ("less than the layer", "do not make up the layer", "K=48", mapping),
                                     ("a text that is none", "the mapping cannot be read", "K=32", "K two")):
        rows = write(scratch("mapping.csv"), f"{layer[0]},mapping,gemmini_cycle\n{layer[2:]},{text},10000\n")
        keys = read(os.path.join(FOLDER, "gemmini/set.yaml")).replace("sizes: { column: C, bounds: [128, 1024] }\n", "")
        path = folder("mapped", keys, **{name: read(os.path.join(FOLDER, "gemmini", name)) for name in ("topology.yaml", "gemmini_map.c")})
        ended = fidelity(path, ROWS=rows)
        ok(said in ended.stderr if said else "| 1 | public figures |" in ended.stdout, f"Gemmini takes its rows by mappings: {title}", ended.stdout, ended.stderr)
    places = scratch("places")
    os.makedirs(places, exist_ok=True)
    shutil.copy(os.path.join(FOLDER, "wormhole_noc/traces/DRAM_TO_1x8_HEIGHT.csv"), os.path.join(places, "beside.csv"))
    rows = write(os.path.join(places, "measured.csv"), "trace,cycles\nbeside,2843\nbeside.csv,2843\nnowhere,1\n")
    ended = fidelity(os.path.join(FOLDER, "wormhole_noc"), ROWS=rows)
    ok(ended.returncode == 1 and "| 2 | public figures | 1.3 % |" in ended.stdout and "measured.csv:4: the row could not be run" in ended.stderr,
       "traces may lie beside their rows", ended.stdout, ended.stderr)


def wrong_input():
    four = "fit: { a: [1, 2], b: [1, 2], c: [1, 2], d: [1, 2] }\n"
    for title, said, keys, rows in (
            ("no row", "there is no row", SET, "bytes,time_ns\n"), ("no number", "rows.csv:2: time_ns must be a time above 0", SET, "bytes,time_ns\n64,soon\n"),
            ("a negative time", "must be a time above 0, not '-1'", SET, "bytes,time_ns\n64,-1\n"), ("a cell too few", "rows.csv:3: the row has another number", SET, "bytes,time_ns\n64,1\n64\n"),
            ("no measured column", "there is no column 'time_ns'", SET, "bytes,time\n64,1\n"), ("no unit", "time has no unit", SET.replace("time_ns", "time"), "bytes,time\n64,1\n"),
            ("cycles without a clock", "cycles has no unit", SET.replace("time_ns", "cycles"), "bytes,cycles\n64,1\n"),
            ("an unknown key", "unknown key 'tilte'", SET.replace("title", "tilte"), ROWS), ("a key too few", "bench is missing", SET.replace("bench: copy\n", ""), ROWS),
            ("a wrong type", "kernels has the wrong type", SET.replace("[copy.c]", "copy.c"), ROWS), ("no YAML", "set.yaml: ", "title: [\n", ROWS),
            ("four constants", "4 constants are to be fitted; 3 at most", SET + four, ROWS), ("an unknown parameter", "unknown key 'byets'", SET, "byets,time_ns\n64,1\n"),
            ("no number that is one", "rows.csv:2: time_ns must be a time above 0, not 'nan'", SET, "bytes,time_ns\n64,nan\n"),
            ("blank lines count", "rows.csv:5: time_ns must be a time above 0, not ''", SET, "bytes,time_ns\n64,1\n\n\n64,\n"), ("an empty file", "rows.csv:1: there is no column 'time_ns'", SET, ""),
            ("a column twice", "rows.csv:1: there are two columns 'bytes'", SET, "bytes,bytes,time_ns\n64,64,1\n"), ("a quote that does not end", "rows.csv: ", SET, 'bytes,time_ns\n64,"1\n'),
            ("a wrong cell of a parameter", "rows.csv:3: error: bytes must be", SET, "bytes,time_ns\n64,1\n-64,1\n"), ("a size that is none", "rows.csv:2: how must be a number, not 'fast'", SET + SIZES, ROWS.replace("64,slow,200\n", "")),
            ("sizes of no column", "there is no column 'how'", SET + SIZES, "bytes,time_ns\n64,1\n"), ("bounds that fall", "sizes has the wrong type", SET + SIZES.replace("[1, 2]", "[2, 1]"), ROWS),
            ("a setting without numbers", "settings has the wrong type", SET + "settings: { how: { slow: 1 } }\n", ROWS), ("a file that is none", "kernels has the wrong type", SET.replace("copy.c", "1"), ROWS),
            ("no rows at all", "there are no rows; name some by ROWS=FILE", SET.replace("rows: rows.csv\n", ""), ROWS), ("no such topology", "none.yaml", SET.replace("topology.yaml", "none.yaml"), ROWS),
            ("no such constants", "nowhere.json: No such file", SET + "constants: nowhere.json\n", ROWS), ("no such bench", "copi", SET.replace("bench: copy", "bench: copi"), ROWS), ("a wrong setting", "access_nss", SET + SETTINGS.replace("access_ns", "access_nss"), ROWS)):
        path = folder("wrong", keys, rows)
        ended = fidelity(path)
        ok(ended.returncode == 2 and said in ended.stderr and "Traceback" not in ended.stderr and not ended.stdout, f"a set is refused: {title}", ended.stdout, ended.stderr)
    missing = fidelity(scratch("nowhere"))
    ok(missing.returncode == 2 and "nowhere/set.yaml" in missing.stderr, "a set has to be there", missing.stderr)
    ok(fidelity(ROWS=scratch("other.csv")).returncode == 2, "rows are of one set")
    failing = folder("failing", rows="bytes,time_ns\n64,200\n1048576,1\n", **{"topology.yaml": TOPOLOGY + "cube: { memory_map: { hbm_slice_mb: 1 } }\n"},
                     **{"copy.c": KERNEL.replace("tl_free(", "if (tl_my_shard(tl, arg->x).shape[0] > 4096) tl_fail(tl, 1, \"too large\");\n    tl_free(")})
    ended = fidelity(failing)
    ok(ended.returncode == 1 and "too large" in ended.stderr and "rows.csv:3: the row could not be run" in ended.stderr and "| 1 | public figures |" in ended.stdout,
       "a row that fails is told and left out", ended.stdout, ended.stderr)
    refused = folder("refused", rows="bytes,time_ns\n1048576,1\n64,200\n", **{"topology.yaml": TOPOLOGY + "cube: { memory_map: { hbm_slice_mb: 512 KiB } }\n"})
    ended = fidelity(refused)
    ok(ended.returncode == 1 and "no room for tensor" in ended.stderr and "rows.csv:2: the row could not be run" in ended.stderr and "| 1 | public figures |" in ended.stdout,
       "a row that does not fit is told and left out", ended.stdout, ended.stderr)


suite(table, by_hand, fit, kernels, rules, wrong_input)
