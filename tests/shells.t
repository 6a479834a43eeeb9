#!/usr/bin/python3
"""shells: completion in bash, zsh and fish, and manual pages: both know every option that --help names. plain build only"""
import os
import pty
import re
import select
import shutil
import subprocess
import time

from harness import BUILD, KBGEN, SCRATCH, SLOW, SMALL, done, folder, ok, run, skip, write

# What is typed, and what a TAB makes of it. A blank behind it says that the word is complete.
COMPLETED = {
    "an option": ("kbgen --dum", "kbgen --dump "),
    "the word of an option": ("kbgen --dump mode", "kbgen --dump model "),
    "the word of an option behind =": ("kbgen --dump=no", "kbgen --dump=nodes "),
    "a file of the option's ending": ("kbgen -k my_", "kbgen -k my_kernel.c "),
    "a file of the ending behind =": ("kbgen --kernel=my_", "kbgen --kernel=my_kernel.c "),
    "a folder on the way to a file": ("kbgen tops/one", "kbgen tops/one.yaml "),
    "a subcommand": ("kbgen sea", "kbgen search "),
    "an option of a subcommand": ("kbgen front --obj", "kbgen front --objective "),
    "the second file of a list": ("kbgen merge a.db b", "kbgen merge a.db b.db "),
    "a key of the topology": ("kbgen --set cube.noc.link_b", "kbgen --set cube.noc.link_bw_gbs="),
    "a bench": ("./duo run gemm_2", "./duo run gemm_2d "),
    "a parameter of the bench": ("./duo run gemm tile_m", "./duo run gemm tile_m="),
    "a simulator's option behind a parameter": ("./duo run gemm m=64 --time-", "./duo run gemm m=64 --time-limit "),
    "a number of the simulator": ("./duo info --set cube.noc.link_b", "./duo info --set cube.noc.link_bw_gbs="),
    "a word of a subcommand": ("./duo schema wh", "./duo schema whatif "),
}
PROMPT = "ready>"


def words_of(subcommand):
    return (subcommand,) if subcommand else ()


def options_of(text):
    return set(re.findall(r"^ +(?:-\w+, )?--([\w-]+)", text, re.M))


def knows_all(program, subcommands, page):
    """Help, completion and the manual page are made of one table: every option is in each of them."""
    for subcommand in subcommands:
        words = words_of(subcommand)
        helped = options_of(run(program, *words, "--help").stdout)
        offered = run(program, "--complete", *words, "--").stdout
        offered = set(re.findall(r"^--([\w-]+)\t", offered, re.M))
        if subcommand:
            part = page.split(f"\n.Ss {subcommand}\n")[1].split("\n.S")[0]
        else:
            part = page.split("The options are:")[1].split("\n.S")[0]
        shown = set(re.findall(r"^\.It.* Fl Fl ([\w-]+)", part, re.M))
        name = f"{os.path.basename(program)} {subcommand}".strip()
        ok(helped == offered == shown >= {"help", "version"},
           f"help, completion and manual page of {name} have the same options",
           f"help alone {helped - offered - shown}, completion {offered ^ helped}, page {shown ^ helped}")


def page_is_clean(name, page):
    """Neither mandoc nor groff has anything to say of a page."""
    path = write(os.path.join(SCRATCH, name + ".1"), page)
    if shutil.which("mandoc"):
        said = run("mandoc", "-Tlint", path).stdout
        said = "".join(line for line in said.splitlines(True) if "referenced manual not found" not in line)
        ok(not said, f"mandoc has nothing to say of the page {name}", said)
    else:
        skip(f"mandoc reads the page {name}", "there is no mandoc")
    if shutil.which("groff"):
        ended = run("groff", "-mandoc", "-Tutf8", "-ww", path)
        ok(ended.returncode == 0 and not ended.stderr and "SUBCOMMANDS" in re.sub(r"\x1b\[\d+m|.\x08", "", ended.stdout),
           f"groff has nothing to say of the page {name}", ended.stderr)
    else:
        skip(f"groff reads the page {name}", "there is no groff")


class Typist:
    """A shell on a terminal of its own, at which somebody types."""

    def __init__(self, *command):
        self.text = ""
        self.child, self.terminal = pty.fork()
        if not self.child:
            os.chdir(WORK)
            os.execvpe(command[0], command, ENVIRONMENT)

    def wait_for(self, ready):
        """Reads until what came since the last call pleases; returns whether it did."""
        end = time.monotonic() + 10 * SLOW
        while not ready(self.text) and (left := end - time.monotonic()) > 0:
            if select.select([self.terminal], [], [], left)[0]:
                self.text += os.read(self.terminal, 65536).decode(errors="replace")
        return ready(self.text)

    def types(self, keys, ready):
        self.text = ""
        os.write(self.terminal, keys.encode())
        return self.wait_for(ready)

    def leaves(self):
        os.close(self.terminal)
        os.waitpid(self.child, 0)


def on_a_line(text):
    """What is on the line of a terminal after it has received a text."""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]", "", text)
    line = []
    for letter in text:
        if letter == "\b":
            line and line.pop()
        elif letter != "\a":
            line.append(letter)
    return "".join(line)


def types_tabs(name, command, begin):
    """Types the beginning of each command line at a real shell, then a TAB."""
    if not shutil.which(name):
        return skip(f"{name} completes", f"there is no {name}")
    shell = Typist(*command)
    shell.wait_for(lambda text: text)
    told = shell.types(begin + f" PS1='{PROMPT}'\r", lambda text: text.count(PROMPT) >= 2)
    ok(told, f"{name} reads the scripts of kbgen and of a simulator", shell.text)
    for what, (typed, completed) in COMPLETED.items():
        shell.types("\x15", lambda text: True)          # what is left of the line before goes
        came = shell.types(typed + "\t", lambda text, end=completed: on_a_line(text).endswith(end))
        ok(came, f"{name} completes {what}", f"{typed!r} became {on_a_line(shell.text)!r}")
    shell.leaves()


def fish_completes():
    if not shutil.which("fish"):
        return skip("fish completes", "there is no fish")
    script = "kbgen --completion fish | source; ./duo --completion fish | source\n" + "".join(
        f'echo "# {what}"; complete -C "{typed}"\n' for what, (typed, _) in COMPLETED.items())
    ended = run("fish", "--no-config", "-c", script, cwd=WORK, env=ENVIRONMENT)
    answers = dict(re.findall(r"^# (.*)\n((?:[^#].*\n)*)", ended.stdout, re.M))
    for what, (_, completed) in COMPLETED.items():
        words = [line.split("\t")[0] for line in answers.get(what, "").splitlines()]
        ok(completed.split()[-1] in words, f"fish completes {what}", ended.stderr, *words[:20])
    plain = answers.get("a file of the option's ending", "")
    ok("my_kernel.txt" not in plain, "fish offers no file of another ending", plain)
    return None


shutil.rmtree(SCRATCH)
WORK = folder("work")
ENVIRONMENT = os.environ | {"PATH": f"{BUILD}:{os.environ['PATH']}", "HOME": WORK, "TERM": "dumb", "PS1": PROMPT, "HISTFILE": ""}
for file in ("my_kernel.c", "my_kernel.txt", "a.db", "b.db", "tops/one.yaml", "tops/one.txt"):
    write(os.path.join(folder("work", *os.path.dirname(file).split("/")) + "/" + os.path.basename(file)), "")
DUO = os.path.join(WORK, "duo")
made = run(KBGEN, SMALL, "-o", DUO)
ok(made.returncode == 0, "kbgen makes a simulator", made.said)
pages = {"kbgen": run(KBGEN, "--man").stdout, "duo": run(DUO, "--man").stdout}
knows_all(KBGEN, ("", "search", "front", "point", "report", "merge"), pages["kbgen"])
listed = re.findall(r"^  (\w+) ", run(DUO, "--help").stdout, re.M)
ok({"list", "run", "replay", "whatif"} <= set(listed), "the help of a simulator lists its subcommands", *listed)
knows_all(DUO, listed, pages["duo"])
for title, text in pages.items():
    page_is_clean(title, text)
wrong = run(KBGEN, "--completion", "csh")
ok(wrong.returncode == 2 and wrong.stderr == "kbgen: --completion csh: bash, zsh or fish is needed\n",
   "a shell without completion is refused", wrong.said)
types_tabs("bash", ("bash", "--noprofile", "--norc", "-i"),
           "source <(kbgen --completion bash); source <(./duo --completion bash);")
types_tabs("zsh", ("zsh", "-f", "-i"),
           "autoload -Uz compinit; compinit -u -D; unsetopt zle_bracketed_paste; source <(kbgen --completion zsh);"
           " source <(./duo --completion zsh);")
fish_completes()
done()
