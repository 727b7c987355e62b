"""Runs the two ends of a perftest-like program inside a guest of the lab."""
import subprocess
import time

DEVICE, SERVER = "rxe0", "10.100.0.1"
PORT = 18515


def listening(port):
    """Returns whether a process of this node listens on a TCP port."""
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(path, encoding="ascii") as file:
            for line in file.readlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    return True
    return False


class Server:
    """A server process that listens; use it as a context. end() returns all of its output."""

    def __init__(self, command, *arguments, port=PORT, cpu=0):
        self.process = subprocess.Popen(["taskset", "-c", str(cpu), command, *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 240
        while not listening(port) and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self, timeout=240):
        """Waits for its exit and returns its CompletedProcess."""
        out, err = self.process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)


def run_client(command, *arguments, timeout=240, cpu=1):
    return subprocess.run(["taskset", "-c", str(cpu), command, *arguments], capture_output=True, text=True,
                          timeout=timeout, check=False)


def run_both(command, *arguments, timeout=240, server_arguments=None):
    """Runs a client and a server and returns both CompletedProcess. Each has its own core: two that spin on one core
    measure the tick of the scheduler."""
    mine = [*arguments, "-d", DEVICE]
    theirs = mine if server_arguments is None else [*server_arguments, "-d", DEVICE]
    with Server(command, *theirs) as server:
        client = run_client(command, *mine, SERVER, timeout=timeout)
        return client, server.end(timeout)
