"""A Slurm cluster of several nodes on this machine: slurmctld, a slurmd for each node, munged, all in one folder.

Needs root, for a mount namespace in which the nodes' names lead to this machine, and a process namespace with which everything ends.
"""

import os
import socket
import subprocess
import sys
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo", "unshare")

CONFIGURATION = """
ClusterName=hips
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
TmpFS={folder}/tmp/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def missing():
    """Why there can be no cluster here; "" if there can."""
    if os.geteuid() != 0:
        return "it needs root"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    absent = [name for name in PROGRAMS if not any(os.access(os.path.join(folder, name), os.X_OK) for folder in path.split(":"))]
    return f"{', '.join(absent)} not found" if absent else ""


def enter():
    """Starts this script again in namespaces of its own, once."""
    if os.environ.get("HIPS_TEST_IN_NAMESPACE") != "1":
        os.environ["HIPS_TEST_IN_NAMESPACE"] = "1"
        os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
        os.execvp("unshare", ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, *sys.argv])


class Cluster:
    """Starts in the folder, and waits until all nodes are idle."""

    def __init__(self, folder, nodes):
        self.folder = folder
        os.chmod(folder, 0o755)
        for name in ("state", *(f"{kind}/n{node}" for kind in ("spool", "tmp") for node in range(1, nodes + 1))):
            os.makedirs(os.path.join(folder, name))
        host = socket.gethostname()
        first = self._free_ports(nodes + 1)
        self._write("hosts", f"127.0.0.1 localhost {host} " + " ".join(f"n{node}" for node in range(1, nodes + 1)) + "\n")
        self._run("mount", "--bind", os.path.join(folder, "hosts"), "/etc/hosts")
        self._write("slurm.conf", CONFIGURATION.format(folder=folder, host=host, port=first, nodes=nodes, first=first + 1, last=first + nodes))
        with open(os.path.join(folder, "munge.key"), "wb") as key:
            key.write(os.urandom(1024))
        os.chmod(os.path.join(folder, "munge.key"), 0o400)
        os.environ["SLURM_CONF"] = os.path.join(folder, "slurm.conf")
        options = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid", "seed-file": "munge.seed", "log-file": "munge.log"}
        self._run("munged", "--force", *(f"--{option}={folder}/{name}" for option, name in options.items()))
        self._run("slurmctld", "-c", "-L", os.path.join(folder, "slurmctld.log"))
        for node in range(1, nodes + 1):
            self._run("slurmd", "-N", f"n{node}", "-L", os.path.join(folder, f"slurmd-n{node}.log"))
        deadline = time.monotonic() + 60
        while self._run("sinfo", "-h", "-o", "%T %D").split("\n")[0] != f"idle {nodes}":
            if time.monotonic() > deadline:
                raise RuntimeError("the nodes do not become idle:\n" + self._run("sinfo", "-R") + self.logs())
            time.sleep(0.2)

    def logs(self):
        """The ends of all logs."""
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                    text += f"{name}:\n{file.read()[-1500:]}\n"
        return text

    def srun(self, *arguments, timeout=100, **variables):
        """Runs srun: (exit code, output, errors)."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("HIPS_") or name == "HIPS_SEED"}
        env.update(variables)
        done = subprocess.run(["srun", "--quiet", *arguments], env=env, capture_output=True, text=True, timeout=timeout, check=False)
        return done.returncode, done.stdout, done.stderr

    def _write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    @staticmethod
    def _run(*command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed: {done.stdout}{done.stderr}")
        return done.stdout

    @staticmethod
    def _free_ports(count):
        """The first of so many free ports, one after the other."""
        while True:
            sockets = [socket.socket() for _ in range(count)]
            try:
                sockets[0].bind(("127.0.0.1", 0))
                first = sockets[0].getsockname()[1]
                for number, one in enumerate(sockets[1:], 1):
                    one.bind(("127.0.0.1", first + number))
                return first
            except (OSError, OverflowError):
                continue
            finally:
                for one in sockets:
                    one.close()
