#!/usr/bin/python3
"""cache: what another user can have written is not used, nothing blocks, and killed kbgens leave nothing. limit: 300"""
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile

from harness import BUILD, CC, KBGEN, ROOT, SAN, SCRATCH, folder, ok, read, read_bytes, run, script, skip, suite
from harness import wait_until, write

REUSED = "no compiler, no linker"
LEAST = "system: {name: least}\nsip: {cubes: {rows: 1, cols: 1}}\n"
NOBODY = 65534
ROOT_ONLY = "only root can make files of another user"
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


def set_up(name, mode=0o755):
    """A folder with a topology and a cache with one simulator; returns the folder, the cache and that entry."""
    where = folder(name)
    write(os.path.join(where, "m.yaml"), LEAST)
    kept = os.path.join(where, "cache")
    ended = build(where, kept)
    os.chmod(kept, mode)
    found = [os.path.join(kept, file) for file in os.listdir(kept) if file.startswith("simulator")]
    ok(ended.returncode == 0 and len(found) == 1 and not ended.stderr.count("not used"),
       f"the cache of {name} holds a simulator", ended.said)
    return where, kept, found[0]


def build(where, kept, *words, around=(), program=KBGEN, timeout=60):
    """Builds a machine with another number, so that a simulator in the cache would do, and checks that it runs."""
    out = os.path.join(where, "m")
    if os.path.exists(out):
        os.unlink(out)
    return run(*around, program, "m.yaml", "-v", "-o", out, "--cc", CC, *words, cwd=where, timeout=timeout,
               env=os.environ | {"KBGEN_CACHE": kept, "CCACHE_DISABLE": "1"})


def is_refused(title, where, kept, path, why, *words):
    """The simulator is compiled instead, and the message names the path, the reason and the way out."""
    ended = build(where, kept, *words)
    said = f"kbgen: (the cache )?{re.escape(path)} is not used: {why}.*; remove it"
    ok(ended.returncode == 0 and REUSED not in ended.stderr and len(re.findall(said, ended.stderr)) == 1,
       f"{title} is not used, which is said once", ended.said)
    return ended


def is_used(title, where, kept, **options):
    ended = build(where, kept, **options)
    ok(ended.returncode == 0 and REUSED in ended.stderr and "not used" not in ended.stderr, f"{title} is used",
       ended.said)


def modes():
    where, kept, entry = set_up("modes")
    is_used("a cache that only its user can write", where, kept)
    for title, path in (("an entry", entry), ("a cache", kept)):
        os.chmod(path, 0o777)
        is_refused(f"{title} that every user can write", where, kept, path, r"every user can write it \(mode 0777\)")
        os.chmod(path, 0o755)
        is_used(f"{title} that was made again", where, kept)
    os.chmod(kept, 0o1777)
    is_refused("a sticky cache that every user can write", where, kept, kept, r"every user can write it \(mode 1777\)")
    os.chmod(kept, 0o755)
    link = os.path.join(where, "link")
    os.symlink(kept, link)
    is_used("a cache behind a link of the user's own", where, link)
    for mask, title in ((0o000, "none"), (0o002, "one that lets the group write")):
        made = os.path.join(where, f"mask{mask}")
        before = os.umask(mask)
        first, second = build(where, made), build(where, made)
        os.umask(before)
        ok(first.returncode == 0 and REUSED in second.stderr and "not used" not in first.stderr + second.stderr
           and not [name for name in (made, *(os.path.join(made, file) for file in os.listdir(made)))
                    if os.stat(name).st_mode & 0o022], f"no umask, such as {title}, makes a cache that others can write",
           first.said, second.said)


def groups():
    """Group permission counts as others' if anyone else is in the group, or an access list names others."""
    if os.geteuid():
        return skip("a cache that its group can write is used or not by who is in the group", ROOT_ONLY)
    where, kept, _ = set_up("groups", 0o775)
    os.chown(kept, 0, 0)
    is_used("a cache that a group of root alone can write", where, kept)
    os.chown(kept, 0, NOBODY)
    is_refused("a cache that another user's group can write", where, kept, kept, "other users of its group can write it")
    os.chown(kept, 0, 54321)
    is_refused("a cache that a group without a name can write", where, kept, kept, "other users of its group")
    os.chown(kept, 0, 0)
    try:
        os.setxattr(kept, "system.posix_acl_access", access_list(NOBODY))
    except OSError as why:
        skip("a cache that an access list lets another user write is not used", str(why))
    else:
        is_refused("a cache that an access list lets another user write", where, kept, kept, "other users")


def access_list(user):
    """A POSIX access list: all rights for the owner, a user, the group and the mask; none for others."""
    none = 0xffffffff
    rows = ((0x01, 7, none), (0x02, 7, user), (0x04, 7, none), (0x10, 7, none), (0x20, 0, none))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)


def put_by_nobody(where, name, data):
    """Another user writes a file into a folder; the folders above may be closed to that user, as those of the tests are."""
    at = os.open(where, os.O_RDONLY | os.O_DIRECTORY)
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=at), "wb") as file:
                file.write(data)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(at)


def owners():
    if os.geteuid():
        return skip("a cache of another user, or an entry of one, is not used", ROOT_ONLY)
    where, kept, entry = set_up("owners")
    os.chown(kept, NOBODY, NOBODY)
    is_refused("a cache of another user", where, kept, kept, "it belongs to user nobody")
    os.chown(kept, 0, 0)
    forged = read_bytes(entry)
    os.chmod(kept, 0o1777)                              # the entry comes into the folder while that is open to all
    os.unlink(entry)
    put_by_nobody(kept, os.path.basename(entry), forged)
    ok(os.path.exists(entry) and os.stat(entry).st_uid == NOBODY, "another user can put an entry into an open cache")
    os.chmod(kept, 0o755)
    ended = is_refused("an entry of another user", where, kept, entry, "it belongs to user nobody")
    ok("  link" in ended.stderr, "instead of another user's entry a simulator is linked", ended.said)
    is_used("the entry that was made in its place", where, kept)
    os.chown(entry, 54321, 0)
    is_refused("an entry of a user without a name", where, kept, entry, "it belongs to user 54321")


def several():
    """Of several machines in one call the refusal of the folder is said once."""
    where, kept, _ = set_up("several", 0o777)
    for name in "ab":
        write(os.path.join(where, name + ".yaml"), f"include: m.yaml\nsystem: {{name: {name}}}\n")
    ended = run(KBGEN, "a.yaml", "b.yaml", "-o", "out/", cwd=where, env=os.environ | {"KBGEN_CACHE": kept})
    ok(ended.returncode == 0 and ended.stderr.count("is not used") == 1,
       "a cache that several machines do not use is said once", ended.said)


def installed(prefix):
    """Puts in place what `make install` does, without make."""
    for to, names in (("bin", ["kbgen"]), ("lib/kbgen", ["runtime.o"])):
        os.makedirs(os.path.join(prefix, to))
        run("cp", "-r", *(os.path.join(BUILD, name) for name in names), os.path.join(prefix, to))
    os.makedirs(os.path.join(prefix, "share/kbgen"))
    run("cp", "-r", *(os.path.join(ROOT, name) for name in ("rt", "templates")), os.path.join(prefix, "share/kbgen"))


def shared_by_root():
    """Root's cache, which others can only read, serves them; a cache of theirs does not serve root."""
    if os.geteuid():
        return skip("a cache of root's serves all users", ROOT_ONLY)
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        installed(os.path.join(top, "kbgen"))
        program, kept, theirs = (os.path.join(top, name) for name in ("kbgen/bin/kbgen", "cache", "theirs"))
        for place in ("root", "nobody"):
            os.mkdir(os.path.join(top, place))
            write(os.path.join(top, place, "m.yaml"), LEAST)
        os.chown(os.path.join(top, "nobody"), NOBODY, NOBODY)
        build(os.path.join(top, "root"), kept, program=program)
        before = sorted(os.listdir(kept))
        is_used("a cache of root's that others can only read", os.path.join(top, "nobody"), kept, program=program,
                around=AS_NOBODY)
        ended = build(os.path.join(top, "nobody"), kept, "--set", "system.sips=2", program=program, around=AS_NOBODY)
        ok(ended.returncode == 0 and sorted(os.listdir(kept)) == before and "not used" not in ended.stderr,
           "a user who cannot write root's cache builds what it lacks, without a word", ended.said)
        os.mkdir(theirs)
        os.chown(theirs, NOBODY, NOBODY)
        build(os.path.join(top, "nobody"), theirs, program=program, around=AS_NOBODY)
        is_used("a user's cache, by that user,", os.path.join(top, "nobody"), theirs, program=program,
                around=AS_NOBODY)
        ended = build(os.path.join(top, "root"), theirs, program=program)
        ok(REUSED not in ended.stderr and f"the cache {theirs} is not used: it belongs to user nobody" in ended.stderr,
           "root does not use a cache of another user's", ended.said)


def nothing_blocks():
    where, kept, entry = set_up("blocks")
    lock = re.sub("-[0-9a-f]{32}$", ".lock", entry)
    for title, path in (("an entry", entry), ("a lock", lock)):
        for kind, make in (("a FIFO", os.mkfifo), ("a folder", os.mkdir), ("a link to a FIFO", link_to_fifo)):
            if os.path.lexists(path):
                os.unlink(path)
            make(path)
            ended = build(where, kept, timeout=30)
            ok(ended.returncode == 0 and os.access(os.path.join(where, "m"), os.X_OK),
               f"kbgen goes on where {kind} has the name of {title}", ended.said)
            if title == "an entry" and "link" not in kind:
                ok(f"{path} is not used: it is no regular file; remove it" in ended.stderr,
                   f"it is said that {kind} has the name of {title}", ended.said)
            if os.path.isdir(path):
                os.rmdir(path)
    out = folder("blocks", "out")
    os.mkfifo(os.path.join(out, "machine.c"))
    ended = run(KBGEN, "m.yaml", "--emit", "c", "-o", out, cwd=where, timeout=30)
    ok(ended.returncode == 0 and "SIPS" in read(os.path.join(out, "machine.h")) and os.path.isfile(
        os.path.join(out, "machine.c")), "--emit c replaces a FIFO that has the name of a source", ended.said)


def link_to_fifo(path):
    if not os.path.exists(path + ".fifo"):
        os.mkfifo(path + ".fifo")
    os.symlink(path + ".fifo", path)


def of_others():
    """The folder may be one that holds other files: kbgen removes none but its own."""
    where, kept, entry = set_up("others")
    mine = [write(os.path.join(kept, name), "") for name in
            ("thesis.pdf", "simulator-of-mine", "object-0123.tmp", "notes.lock", "simulator-" + 32 * "g" + ".tmp")]
    for path in mine:
        os.truncate(path, 1 << 30)
        os.utime(path, (1, 1))
    old = write(os.path.join(kept, f"object-{32 * '0'}-{32 * '1'}"), "")
    os.truncate(old, 1 << 29)
    os.utime(old, (1, 1))
    ended = build(where, kept, "--set", "system.sips=2")
    ok(ended.returncode == 0 and not os.path.exists(old) and os.path.exists(entry),
       "a cache that is too large loses its oldest entry", ended.said, *os.listdir(kept))
    ok(all(map(os.path.exists, mine)), "a cache that is too large keeps files that are not kbgen's", *os.listdir(kept))


def temporary_of(out, pid):
    """The temporary folders m.PID-N.tmp of a kbgen. N is not always 0: a folder that another kbgen sweeps before its
    maker has locked it is gone, and the maker takes the next number."""
    return [name for name in os.listdir(out) if re.fullmatch(rf"m\.{pid}-\d+\.tmp", name)]


def leftovers():
    """kill -9 leaves temporary folders, files and locks; the next kbgen removes those, and none that is in use."""
    where, kept, _ = set_up("leftovers")
    out = folder("leftovers", "out")
    pids = os.path.join(where, "pids")
    slow = script(os.path.join(where, "slow"),
                  f'case " $* " in *" -c "*) echo $$ >>"{pids}"; exec sleep 600;; esac\nexec {CC} "$@"\n')
    words = [KBGEN, "m.yaml", "-j1", "-o", "out/m", "--cc", slow]
    environment = os.environ | {"KBGEN_CACHE": kept}
    killed, running = (subprocess.Popen([*words, "--set", f"system.sips={sips}"], cwd=where, env=environment)
                       for sips in (2, 3))
    begun = wait_until(lambda: len(read(pids).splitlines()) == 2)
    folders = [temporary_of(out, process.pid) for process in (killed, running)]
    killed.kill()
    killed.wait()
    mine = [folder("leftovers", "out", name) for name in ("m.1-0.tmp.mine", "m.1.tmp", "m.x-0.tmp", "other.1-0.tmp")]
    left = write(os.path.join(kept, f"object-{32 * 'a'}.77.tmp"), "half")
    ok(begun and len(folders[0]) == 1 and temporary_of(out, killed.pid) == folders[0],
       "kill -9 leaves a temporary folder", *os.listdir(out))
    ended = run(KBGEN, "m.yaml", "-o", "out/m", "--set", "system.sips=4", "--cc", CC, cwd=where, env=environment)
    ok(ended.returncode == 0 and not temporary_of(out, killed.pid), "the next kbgen removes the folder of a killed one",
       ended.said, *os.listdir(out))
    ok(len(folders[1]) == 1 and temporary_of(out, running.pid) == folders[1], "a folder of a kbgen that runs stays",
       *os.listdir(out))
    ok(all(map(os.path.isdir, mine)), "folders of other names stay", *os.listdir(out))
    locks = [name for name in os.listdir(kept) if name.endswith(".lock")]
    ok(not os.path.exists(left) and len(locks) == 1,
       "the next kbgen removes locks and temporary files of a killed one from the cache, and no others", *locks)
    running.terminate()
    running.wait()
    for pid in read(pids).split():
        if read(f"/proc/{pid}/cmdline").split("\0")[0] == "sleep":
            os.kill(int(pid), signal.SIGKILL)


def compilers_end():
    """The compiler proper, which the driver starts, has ended before kbgen removes the files that it reads."""
    where, kept, _ = set_up("compilers")
    log = os.path.join(where, "log")
    compiler = f"""case " $* " in *" -c "*)
    for last do :; done
    place=$(dirname "$last")
    (trap 'sleep 0.5; test -d "$place" && echo there >>"{log}" || echo gone >>"{log}"; exit' TERM
     echo begun >>"{log}"; while :; do sleep 0.05; done) &
    wait;;
esac
exec {CC} "$@"
"""
    slow = script(os.path.join(where, "driver"), compiler)
    for name in (signal.SIGINT, signal.SIGTERM):
        write(log, "")
        process = subprocess.Popen([KBGEN, "m.yaml", "-j1", "-o", "out/m", "--cc", slow, "--set", "system.sips=2"],
                                   cwd=where, stderr=subprocess.DEVNULL, env=os.environ | {"KBGEN_CACHE": ""})
        wait_until(lambda: "begun" in read(log))
        process.send_signal(name)
        ended = process.wait()
        said = wait_until(lambda: len(words := read(log).split()) > 1 and words) or []
        ok(ended == -name and said == ["begun", "there"] and not os.listdir(os.path.join(where, "out")),
           f"{name.name} to kbgen alone ends a compiler's own children before their files are removed", ended, *said)
    stubborn = script(os.path.join(where, "stubborn"),
                      f'case " $* " in *" -c "*) trap "" TERM; echo $$ >"{log}"; sleep 600;; esac\nexec {CC} "$@"\n')
    write(log, "")
    process = subprocess.Popen([KBGEN, "m.yaml", "-j1", "-o", "out/m", "--cc", stubborn, "--set", "system.sips=2"],
                               cwd=where, stderr=subprocess.DEVNULL, env=os.environ | {"KBGEN_CACHE": ""})
    wait_until(lambda: read(log))
    process.send_signal(signal.SIGINT)
    ended = process.wait(timeout=30)
    ok(ended == -signal.SIGINT and not os.path.exists(f"/proc/{read(log).strip()}"),
       "a compiler that ignores SIGTERM is killed", ended)


shutil.rmtree(SCRATCH)
# Under the sanitizers who may write a cache is asked of modes and groups; owners take the same way through kbgen.
OF_OWNERS = () if SAN else (owners, several, shared_by_root, of_others)
suite(modes, groups, *OF_OWNERS, nothing_blocks, leftovers, compilers_end)
