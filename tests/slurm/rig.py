"""rig: a real Slurm of several nodes on this host: loopback, without munge, cgroups and services."""
import os
import shutil
import signal
import socket
import subprocess
import time

from harness import SLOW

CONFIG = """ClusterName=kbgen
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={port}
AuthType=auth/none
AuthInfo=cred_expire=5
CredType=cred/none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0
SlurmdParameters=config_overrides
SlurmdTimeout=10
KillWait=2
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Rig:
    """Begin it, then use it in a `with`: at its end everything that it has started is gone."""

    def __init__(self, folder, nodes, cpus):
        shutil.rmtree(folder, ignore_errors=True)                       # spools of an earlier one have its jobs
        self.folder, self.names = folder, [f"n{i}" for i in range(1, nodes + 1)]
        self.config = os.path.join(folder, "slurm.conf")
        os.makedirs(os.path.join(folder, "state"), exist_ok=True)
        host = socket.gethostname().split(".")[0]
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(folder=folder, port=free_port()))
            for name in self.names:
                file.write(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs={cpus} "
                           "RealMemory=1000 State=UNKNOWN\n")
            file.write("PartitionName=sim Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n")

    def begin(self):
        """Raises OSError or CalledProcessError if Slurm does not start on this host, such as one without cgroups."""
        os.environ["SLURM_CONF"] = self.config
        socket.getaddrinfo(socket.gethostname(), None)                  # the controller needs the host's address
        self.start_controller("-c")
        for name in self.names:
            self.start_node(name)
        end = time.monotonic() + 30 * SLOW
        while time.monotonic() < end:
            if self.idle() == len(self.names):
                return
            time.sleep(0.1)
        raise OSError(f"the nodes are not idle after {30 * SLOW:.0f} s: see {self.folder}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Ends all processes that have this Slurm in their environment: daemons, steps, tasks and what those started."""
        for pid in self.processes():
            kill(pid)

    def start_controller(self, *options):
        subprocess.run(["slurmctld", *options, "-f", self.config], check=True)

    def start_node(self, name):
        subprocess.run(["slurmd", "-N", name, "-f", self.config], check=True)

    def idle(self):
        """How many nodes are idle; without a controller, sinfo asks for minutes."""
        try:
            said = subprocess.run(["sinfo", "-h", "-t", "idle", "-o", "%D"], capture_output=True, text=True, check=False,
                                  timeout=5 * SLOW)
        except subprocess.TimeoutExpired:
            return 0
        return int(said.stdout) if said.stdout.strip().isdigit() else 0

    def kill_controller(self):
        with open(os.path.join(self.folder, "slurmctld.pid"), encoding="utf-8") as file:
            kill(int(file.read()))

    def kill_node(self, name):
        """Ends a node's daemon at once, its steps and their tasks."""
        with open(os.path.join(self.folder, f"slurmd.{name}.pid"), encoding="utf-8") as file:
            kill(int(file.read()))
        tasks = [pid for pid in self.processes() if f"SLURMD_NODENAME={name}" in strings(pid, "environ")]
        for pid in {parent(pid) for pid in tasks} | set(tasks):
            if pid in tasks or strings(pid, "comm")[0].startswith("slurmstepd"):
                kill(pid)

    def processes(self):
        mine = f"SLURM_CONF={self.config}"
        return [int(pid) for pid in os.listdir("/proc")
                if pid.isdigit() and int(pid) != os.getpid() and mine in strings(pid, "environ")]


def strings(pid, name):
    """The texts of a file of a process; none once it has ended."""
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read().split("\0")
    except OSError:
        return [""]


def parent(pid):
    stat = strings(pid, "stat")[0].rpartition(")")[2].split()
    return int(stat[1]) if stat else 0


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
