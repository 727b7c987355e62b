"""Starts a program once for each rank, with the HIPS_ variables and no launcher."""
import os
import random
import socket
import subprocess


def environment(**extra):
    """This process's, without what says something to HiPS or looks like a launcher's."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("HIPS_", "OMPI_", "PMIX_", "PMI_"))}
    return {**kept, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **extra}


def free_port():
    """Below the ports that the kernel gives to connections, which it may do before rank 0 listens."""
    while True:
        port = random.randint(15000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def run_ranks(size, command, timeout=240, **extra):
    """A CompletedProcess for each rank. No rank outlives the call."""
    root = f"127.0.0.1:{free_port()}"
    ranks = []
    try:
        for rank in range(size):
            env = environment(HIPS_RANK=str(rank), HIPS_SIZE=str(size), HIPS_ROOT=root, **extra)
            ranks.append(subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        done = []
        for rank in ranks:
            out, err = rank.communicate(timeout=timeout)
            done.append(subprocess.CompletedProcess(command, rank.returncode, out, err))
        return done
    finally:
        for rank in ranks:
            if rank.poll() is None:
                rank.kill()
                rank.communicate()
