"""Starts a Python script on several processes of this node: python3 -m hips.launch -n 4 script.py ARGUMENTS...

hips_torch.launch is the same.

Sets the variables that torchrun sets (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT). For several
nodes use torchrun, srun or mpirun. When one process fails the others are ended, and its exit code is returned.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time


def free_port():
    """A free port, whose next one is free, too: HiPS listens there, where PyTorch's store has the first."""
    while True:
        with socket.socket() as one, socket.socket() as next_one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            try:
                next_one.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port


# What a process has to end after SIGTERM.
GRACE_S = 10


def launch(size, command):
    """Runs the command `size` times; the exit code of the first that failed, or 0."""
    env = dict(os.environ, WORLD_SIZE=str(size), LOCAL_WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    # As torchrun: a process for each rank and threads for each core would be too many.
    env.setdefault("OMP_NUM_THREADS", "1")
    processes = [subprocess.Popen(command, env=dict(env, RANK=str(rank), LOCAL_RANK=str(rank))) for rank in range(size)]
    failed = 0
    try:
        while failed == 0 and any(process.poll() is None for process in processes):
            time.sleep(0.05)
            failed = next((process.returncode for process in processes if process.poll()), 0)
        if failed != 0:
            time.sleep(2)  # the others tell what they have lost
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        end = time.monotonic() + GRACE_S
        for process in processes:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                # One that handles signals in Python does not while it waits in a call.
                process.kill()
                process.wait()
    return failed if failed >= 0 else 128 - failed


def main():
    parser = argparse.ArgumentParser(prog=f"python3 -m {__package__}.launch", description=__doc__.splitlines()[0].split(":")[0] + ".")
    parser.add_argument("-n", "--nproc", type=int, required=True, metavar="N", help="number of processes")
    parser.add_argument("script", help="the script, a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args()
    if options.nproc < 1:
        parser.error(f"-n: {options.nproc} processes; expected 1 or more")
    if not os.path.isfile(options.script):
        parser.error(f"\"{options.script}\" does not exist")
    # So that launch() ends its processes first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(launch(options.nproc, [sys.executable, options.script, *options.arguments]))


if __name__ == "__main__":
    main()
