#!/usr/bin/python3
"""slurm: searches in parts: shards of any engine, their stores merged, and a real Slurm. limit: 300; plain build only

tests/slurm.t [POINTS]: that many points go through Slurm (400) while a simulator, a task, a node and the controller are killed.
"""
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "slurm"))

from harness import KBGEN, SMALL, folder, ok, read, read_bytes, remove, run, script, skip, suite, wait_until, write     # noqa: E402
from rig import Rig, free_port                                                                      # noqa: E402
from stores import content, rows                                                                    # noqa: E402

POINTS = int(sys.argv[1]) if sys.argv[1:] else 400
PERILS = os.path.join(HERE, "search", "perils.c")
WHERE = folder("stores")
SPACE = f"""topology: {SMALL}
kernels: [{PERILS}]
bench: perils
params: {{ how: good, us: 100000 }}
space: {{ params.ns: {{ from: 1, to: {POINTS}, step: 1 }} }}
derive: {{ far: "abs(params.ns - 17)" }}
objectives: {{ far: min }}
method: grid
"""
QUICK_SPACE = SPACE.replace("us: 100000", "us: 0").replace(f"to: {POINTS}", "to: 24")
# The variables of the task with index 2 of 4, and whether they tell the 4.
ENGINES = {
    "Slurm": ({"SLURM_ARRAY_TASK_ID": 7, "SLURM_ARRAY_TASK_MIN": 1, "SLURM_ARRAY_TASK_MAX": 10, "SLURM_ARRAY_TASK_STEP": 3}, True),
    "LSF": ({"LSB_JOBINDEX": 3, "LSB_JOBINDEX_END": 4, "LSB_JOBINDEX_STEP": 1}, True),
    "Grid Engine": ({"SGE_TASK_ID": 3, "SGE_TASK_FIRST": 1, "SGE_TASK_LAST": 4, "SGE_TASK_STEPSIZE": 1}, True),
    "PBS": ({"PBS_ARRAY_INDEX": 2}, False),
    "Kubernetes": ({"JOB_COMPLETION_INDEX": 2}, False),
    "AWS Batch": ({"AWS_BATCH_JOB_ARRAY_INDEX": 2, "AWS_BATCH_JOB_ARRAY_SIZE": 4}, True),
    "a step of Slurm": ({"SLURM_PROCID": 2, "SLURM_NTASKS": 4}, True),
    "Open MPI": ({"OMPI_COMM_WORLD_RANK": 2, "OMPI_COMM_WORLD_SIZE": 4}, True),
    "MPICH": ({"PMI_RANK": 2, "PMI_SIZE": 4}, True),
}


def store(name, text):
    """The paths of a space file and of a store that does not exist; all share the simulators that the first one builds."""
    path = os.path.join(WHERE, name + ".db")
    for old in os.listdir(WHERE):
        if old.startswith((name + ".db-", name + ".db", name + ".")) and not old.endswith(".simulators"):
            shutil.rmtree(os.path.join(WHERE, old), ignore_errors=True)
            remove(os.path.join(WHERE, old))
    if not os.path.lexists(path + ".simulators"):
        os.symlink(folder("simulators"), path + ".simulators")
    return write(os.path.join(WHERE, name + ".yaml"), text), path


def search(space, path, *options, **more):
    return run(KBGEN, "search", space, "-o", path, *options, timeout=250, **more)


# ---- shards and their stores

def environments():
    clean = {name: value for name, value in os.environ.items() if not re.match("(SLURM|LSB|SGE|PBS|OMPI|PMI|JOB|AWS)_", name)}
    space, path = store("engines", QUICK_SPACE)
    for name, (variables, whole) in ENGINES.items():
        env = clean | {key: str(value) for key, value in variables.items()}
        ended = search(space, path, "--shard", "auto" if whole else "auto/4", env=env)
        ok(ended.returncode == 0 and "engines.2-of-4.db: 6 of 6 points" in ended.stdout, f"a task of {name} finds its part", ended.said)
        remove(path.replace(".db", ".2-of-4.db"))
        if not whole:
            ended = search(space, path, "--shard", "auto", env=env)
            ok(ended.returncode == 2 and "--shard auto/N does" in ended.stderr, f"{name} does not tell how many parts there are",
               ended.said)
    ended = search(space, path, "--shard", "auto", env=clean)
    ok(ended.returncode == 2 and "none of SLURM_ARRAY_TASK_ID, " in ended.stderr, "without an engine there is no part", ended.said)
    for wrong in ("4/4", "1", "x/4", "1/0", "-1/4", "auto/x", "1/9999999"):
        ended = search(space, path, "--shard", wrong, env=clean)
        ok(ended.returncode == 2 and "--shard" in ended.stderr, f"--shard {wrong} is refused", ended.said)


def merge():
    space, path = store("whole", QUICK_SPACE)
    search(space, path)
    parts = [path.replace(".db", f".{part}-of-3.db") for part in range(3)]
    for part in range(3):
        search(space, path, "--shard", f"{part}/3")
    ok(rows(parts[0], "PRAGMA journal_mode") == [("delete",)], "the store of a shard has no write-ahead log")
    merged = os.path.join(WHERE, "merged.db")
    remove(merged)
    ended = run(KBGEN, "merge", merged, *parts)
    ok(ended.returncode == 0 and content(merged) == content(path), "three shards have what the whole search has", ended.said)
    run(KBGEN, "merge", merged, *parts, path)
    ok(content(merged) == content(path), "merging again changes nothing")
    other, elsewhere = store("other", QUICK_SPACE.replace("abs(params.ns - 17)", "params.ns"))
    search(other, elsewhere)
    ended = run(KBGEN, "merge", merged, elsewhere)
    ok(ended.returncode == 2 and "'far' is " in ended.stderr and content(merged) == content(path),
       "a store in which a name means something else is refused", ended.said)
    rows(elsewhere, "CREATE TRIGGER t AFTER INSERT ON trial BEGIN DELETE FROM point; END")
    for wrong, why in ((elsewhere, "triggers"), (merged, "into itself"), (space, "no store"), ("/nowhere", "no such file")):
        ended = run(KBGEN, "merge", merged, wrong)
        ok(ended.returncode == 2 and why in ended.stderr, f"merge refuses: {why}", ended.said)
    ended = run(KBGEN, "merge", merged)
    ok(ended.returncode == 2, "merge needs a store to add", ended.said)


def parallel():
    if not shutil.which("parallel"):
        skip("GNU parallel runs all parts", "it is not installed")
        return
    space, path = store("parallel", QUICK_SPACE)
    ended = run("parallel", "--will-cite", "-j2", f"{KBGEN} search {space} -o {path} --shard auto/3 # {{}}", ":::", "a", "b", "c")
    parts = [path.replace(".db", f".{part}-of-3.db") for part in range(3)]
    run(KBGEN, "merge", path, *parts)
    ok(content(path) == content(os.path.join(WHERE, "whole.db")), "GNU parallel runs all parts", ended.said)


def without_slurm():
    space, path = store("none", QUICK_SPACE)
    bare = folder("bare")
    for tool in ("gcc", "clang", "ld", "as", "sh"):
        if shutil.which(tool) and not os.path.lexists(os.path.join(bare, tool)):
            os.symlink(shutil.which(tool), os.path.join(bare, tool))
    ended = search(space, path, "--engine", "slurm", env=os.environ | {"PATH": bare})
    ok(ended.returncode == 3 and "run sbatch (this host has no Slurm" in ended.stderr, "a host without Slurm says so", ended.said)


def dry_run():
    space, path = store("it's dry", QUICK_SPACE)
    ended = search(space, path, "--engine", "slurm", "--tasks", "3", "--dry-run", "--sbatch", "--partition=x --time=1:00:00", "--seed", "7")
    ok(ended.returncode == 0 and "--array=0-2 --partition=x --time=1:00:00 " in ended.stdout and "--seed 7 " in ended.stdout
       and not os.path.exists(path), "--dry-run prints what it would submit and does nothing", ended.said)
    script = write(os.path.join(WHERE, "dry.sh"), ended.stdout.split("# Task")[0] + "\nset -- \n" +
                   re.search(r"(?s)\nfor shard in.*?\ndone\n", ended.stdout).group(0) + 'echo "$#"\n')
    ok(run("sh", "-n", script).returncode == 0, "the scripts are those of a shell, whatever a path contains")
    for words in (["--engine", "x"], ["--dry-run"], ["--tasks", "3"], ["--engine", "slurm", "--shard", "0/2"],
                  ["--engine", "slurm", "--tasks", "0"]):
        ended = search(space, path, *words)
        ok(ended.returncode == 2, f"refused: {' '.join(words)}", ended.said)


def node_copies():
    def task(part, tmp):
        remove(path.replace(".db", f".{part}-of-2.db"))
        env = {name: value for name, value in os.environ.items() if name not in ("TMPDIR", "SLURM_TMPDIR")}
        return search(space, path, "--shard", f"{part}/2", "--node-copies", env=env | tmp)
    space, path = store("copies", QUICK_SPACE)
    tmp = folder("node")
    copies = os.path.join(tmp, f"kbgen-{os.geteuid()}")
    shutil.rmtree(copies, ignore_errors=True)
    first, second = task(0, {"SLURM_TMPDIR": tmp, "TMPDIR": "/nowhere"}), task(1, {"TMPDIR": tmp})
    names = sorted(os.listdir(copies))
    ok(first.returncode == second.returncode == 0 and len(names) == 2 and names[1] == "lock",
       "with --node-copies, tasks of a node share one copy of a simulator in its folder", first.said, second.said, names)
    program = os.path.join(path + ".simulators", names[0])
    ok(read_bytes(program) == read_bytes(os.path.join(copies, names[0])), "which is the simulator")
    merged = path.replace(".db", "-merged.db")
    remove(merged)
    run(KBGEN, "merge", merged, *(path.replace(".db", f".{part}-of-2.db") for part in range(2)))
    ok(content(merged) == content(os.path.join(WHERE, "whole.db")), "and they have the points of one search")
    write(os.path.join(copies, names[0]), "#!/bin/sh\nexit 7\n")
    ended = task(0, {"TMPDIR": tmp})
    ok("12 of 12 points: 0 ok" in ended.stdout, "the copy is what they run", ended.said)
    os.chmod(copies, 0o777)
    for variables, said in (({"TMPDIR": tmp}, "only this user can write to"), ({}, "neither SLURM_TMPDIR nor TMPDIR is set"),
                            ({"TMPDIR": "/nowhere"}, "cannot make folder")):
        ended = task(0, variables)
        ok(ended.returncode == 2 and said in ended.stderr, f"refused: a folder for copies: {said}", ended.said)
    shutil.rmtree(copies)
    folder("node", os.path.basename(copies), names[0] + ".part")
    os.chmod(copies, 0o700)
    ended = task(0, {"TMPDIR": tmp})
    ok(ended.returncode == 0 and "12 ok" in ended.stdout and "Is a directory; simulators run from where they are" in ended.stderr,
       "if no copy can be made, simulators run from where they are", ended.said)


# ---- a real Slurm

def victims(path, word):
    """Processes with two words in their command lines."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = read(f"/proc/{pid}/cmdline")
        except OSError:
            continue
        if word in words and path in words and not os.path.basename(words.split("\0")[0]).startswith("slurm"):
            found.append(int(pid))
    return found


def kill_one(name, *words):
    """Kills one such process; they come and go."""
    def gone():
        pids = victims(*words)
        try:
            return pids and os.kill(random.choice(pids), signal.SIGKILL) is None
        except ProcessLookupError:
            return False
    ok(wait_until(gone), f"{name} is killed")


def stored(path):
    """Trials in all parts."""
    count = 0
    for name in os.listdir(WHERE):
        if re.fullmatch(re.escape(os.path.basename(path)[:-3]) + r"\.\d+-of-\d+\.db", name):
            try:
                count += rows(os.path.join(WHERE, name), "SELECT count(*) FROM trial")[0][0]
            except sqlite3.Error:
                continue
    return count


def killed(rig):
    space, path = store("killed", SPACE)
    with subprocess.Popen([KBGEN, "search", space, "-o", path, "--engine", "slurm", "--tasks", "8"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as driver:
        wait_until(lambda: stored(path) > POINTS // 20, 60)
        kill_one("a simulator", path + ".simulators", "--metrics")
        kill_one("a task", path, "--shard")
        rig.kill_node("n3")
        rig.start_node("n3")
        rig.kill_controller()
        time.sleep(2)
        rig.start_controller()
        said, _ = driver.communicate(timeout=250)
    counts = rows(path, "SELECT count(*), count(DISTINCT number), count(DISTINCT hash), min(number), max(number) FROM trial")
    ok(driver.returncode == 0 and counts == [(POINTS, POINTS, POINTS, 0, POINTS - 1)],
       f"with all of them killed, {POINTS} of {POINTS} points are there, each once", f"status {driver.returncode}", said, counts)
    quick, alone = store("alone", SPACE.replace("us: 100000", "us: 0"))
    search(quick, alone)
    ends = "SELECT number, end_ps, far FROM trial JOIN point USING(hash) ORDER BY number"
    ok(rows(path, ends) == rows(alone, ends), "they are those of a search on this machine")


def generations(_):
    text = QUICK_SPACE.replace("method: grid", "method: {name: nsga2, population: 8}\nbudget: {points: 16}")
    text = text.replace("space: {", "space: { sip.cubes.cols: [1, 2], cube.noc.rows: [2, 3, 4],")
    text += 'where: [ "cubes.cols = 1 OR noc.rows = 2" ]\n'
    space, path = store("nsga2", text)
    built = shutil.rmtree(folder("structures")) or folder("structures")
    os.unlink(path + ".simulators")
    os.symlink(built, path + ".simulators")
    record = write(os.path.join(WHERE, "record"), "")
    script(os.path.join(folder("wrapper"), "sbatch"), f'ls {built} | tr "\\n" " " >> {record}; echo >> {record}\n'
           f'exec {shutil.which("sbatch")} "$@"\n')
    ended = search(space, path, "--engine", "slurm", "--tasks", "3", "--node-copies",
                   env=os.environ | {"TMPDIR": folder("node"), "PATH": folder("wrapper") + ":" + os.environ["PATH"]})
    _, alone = store("nsga2 alone", text)
    search(space, alone)
    ok(content(path) == content(alone), "nsga2 takes one array for each generation, and has the points of this machine", ended.said)
    lists = [line.split() for line in read(record).splitlines()]
    needed = rows(path, "SELECT count(DISTINCT structure) FROM point")[0][0]
    ok(len(lists) == 4 and len(lists[0]) > 1 and len(lists[2]) == needed and sorted(os.listdir(built)) == sorted(lists[2]),
       "before an array is submitted, the simulators that its points need are built, and no others", lists, needed, ended.said)


def refused(_):
    space, path = store("refused", QUICK_SPACE)
    ended = search(space, path, "--engine", "slurm", "--sbatch", "--partition=none")
    ok(ended.returncode == 3 and "sbatch" in ended.stderr, "a partition that does not exist is told", ended.said)


def without_controller():
    """Nobody listens where the controller should be; a signal ends the search while it tries again."""
    space, path = store("lost", QUICK_SPACE)
    config = write(os.path.join(WHERE, "lost.conf"), "ClusterName=lost\nSlurmctldHost=localhost(127.0.0.1)\nAuthType=auth/none\n"
                   f"SlurmctldPort={free_port()}\nCredType=cred/none\nMessageTimeout=2\nNodeName=n1 NodeAddr=127.0.0.1\n"
                   "PartitionName=sim Nodes=ALL Default=YES\n")
    with subprocess.Popen([KBGEN, "search", space, "-o", path, "--engine", "slurm"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, env=os.environ | {"SLURM_CONF": config}) as process:
        said = b""
        while b"no controller of Slurm answers" not in said and (line := process.stderr.readline()):
            said += line
        process.send_signal(signal.SIGINT)
        said += process.stderr.read()
    ok(process.returncode == 130, "a search ends at a signal while no controller of Slurm answers", process.returncode, said)


def slurm():
    if os.getuid() != 0 or not shutil.which("slurmctld"):
        skip("a real Slurm runs a search in parts", "slurm-wlm is not installed, or this is not root")
        return
    without_controller()
    rig = Rig(folder("rig"), 4, 2)
    try:
        rig.begin()
    except (OSError, subprocess.CalledProcessError) as why:             # slurmd needs the cgroups of its host
        rig.__exit__()
        skip("a real Slurm runs a search in parts", f"Slurm does not start on this host: {str(why)[:200]}; see {rig.folder}")
        return
    with rig:
        for part in (refused, generations, killed):
            part(rig)


suite(environments, merge, parallel, without_slurm, dry_run, node_copies, slurm)
