"""Runs programs in the guests of `hips lab` and looks at what the lab leaves behind."""
import json
import os
import subprocess
import sys


def environment(**extra):
    """This process's, without what says something to HiPS. The search for leaks needs ptrace, which the lab's processes may
    not have."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("HIPS_")}
    if "ASAN_OPTIONS" in own:
        own["ASAN_OPTIONS"] += ":detect_leaks=0"
    return {**own, **extra}


def skip_unless_possible(servers="guests"):
    """Ends this program with meson's code for "skipped" where the machine itself forbids guests with a network: a
    container without rights. A missing program is no such reason: tools/check has installed it."""
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    probes = [("network namespaces", ["unshare", *rights, "--net", "--pid", "--fork", "true"])]
    if servers == "guests":
        probes.append(("/dev/net/tun", ["test", "-w", "/dev/net/tun"]))
    for what, probe in probes:
        if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
            print(f"SKIPPED: this machine has no {what} for us, so no lab was started", file=sys.stderr)
            sys.exit(77)


def command(hips, *arguments):
    return [hips, "lab", "run", *arguments]


def run(hips, *arguments, timeout=1500, **extra):
    """A CompletedProcess of `hips lab run ARGUMENTS`."""
    return subprocess.run(command(hips, *arguments), env=environment(**extra), text=True, capture_output=True,
                          timeout=timeout, check=False)


def descendants(pid):
    """Process ids of all children and children's children."""
    found = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        for task in tasks:
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                for child in file.read().split():
                    found += [int(child), *descendants(int(child))]
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def command_line_of(pid):
    """The words of a process's command line; none if it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
            return file.read().split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return []


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def alive(pids):
    """Those that still run; a zombie that its reaper has not got to yet runs no more."""
    running = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                if file.read().rpartition(")")[2].split()[0] not in ("Z", "X"):
                    running.append(pid)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return running


def enter_network(pid):
    """The words before a command that runs in the network namespace of another process."""
    own, its = (os.readlink(f"/proc/{of}/ns/user") for of in ("self", pid))
    return ["nsenter", "--target", str(pid), "--net", *([] if own == its else ["--user", "--preserve-credentials"])]


def interfaces(*prefix):
    """Names of the network interfaces that a command sees: ours, or with nsenter those of a lab."""
    text = subprocess.run([*prefix, "ip", "-json", "link"], capture_output=True, text=True, check=True).stdout
    return sorted(link["ifname"] for link in json.loads(text))
