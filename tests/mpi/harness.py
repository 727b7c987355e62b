"""Shared by the tests under mpirun: starts programs with and without `hips run`, and reads what they print."""

import argparse
import os
import random
import re
import signal
import subprocess
import time
import unittest

parser = argparse.ArgumentParser()
parser.add_argument("--hips", required=True)
parser.add_argument("--mpi", choices=("openmpi", "mpich"), default="openmpi")
parser.add_argument("--mpirun", required=True, help="the launcher of that MPI")
parser.add_argument("--programs", nargs="+", default=[])
args, rest = parser.parse_known_args()
PROGRAMS = {os.path.basename(path).replace(".mpich", ""): path for path in args.programs}
MPICH = args.mpi == "mpich"
NATIVE = "MPICH" if MPICH else "Open MPI"
LIBRARY_NAME = "libhips_mpich.so" if MPICH else "libhips_mpi.so"
LIBRARY = os.path.join(os.path.dirname(args.hips), "../../lib/mpi", LIBRARY_NAME)
LAUNCHER = "mpiexec.hydra" if MPICH else "mpirun"  # the launcher that messages name
# MPICH spins while it waits: with more ranks than cores, of which there may be two, a call takes tens of milliseconds.
MOST_RANKS = 4 if MPICH else 27

TOPOLOGIES = {2: "switch:2", 3: "bcube:3,0", 4: "bcube:2,1", 8: "torus:2x2x2", 9: "bcube:3,1", 16: "torus:4x4",
              27: "bcube:3,2"}
TOPOLOGIES = {ranks: spec for ranks, spec in TOPOLOGIES.items() if ranks <= MOST_RANKS}
FULL = bool(os.environ.get("HIPS_TEST_FULL"))
LIMIT_S = 1200 if FULL else 240  # far beyond what a loaded machine takes: a run that lasts longer hangs


def seeded():
    seed = int(os.environ.get("HIPS_SEED", time.time_ns()))
    print(f"HIPS_SEED={seed}", flush=True)
    return random.Random(seed)


def environment(**more):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HIPS_", "OMPI_", "PMIX_", "PMI_", "HYDI_"))}
    # mpirun 4.1 sometimes reads a wrong length while it prints the text of an abort and allocates gigabytes, which
    # is slow only where malloc fills them.
    env.pop("MALLOC_PERTURB_", None)
    # Programs of tests are short: HiPS would leave them to native MPI. adoption_test.py says HIPS_ADOPT="auto".
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", HIPS_ADOPT="always")
    env.update(more)
    return env


class Outcome:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def text(self):
        return f"exit status {self.code} after {self.seconds:.1f} s\n{self.out}\n{self.err}"

    def lines_of_hips(self):
        return [line for line in self.err.splitlines() if line.startswith("hips")]

    def report(self):
        """(calls, bytes) that HiPS took, and calls that it delegated to native MPI, by reason."""
        taken = re.search(r"^hips report: taken (\d+) calls?, (\d+) bytes", self.err, re.MULTILINE)
        delegated = re.search(r"^hips report: delegated to native MPI.*\n((?:hips report:   .*\n)*)", self.err, re.MULTILINE)
        if not taken or not delegated:
            raise AssertionError("no report\n" + self.text())
        reasons = {}
        for line in delegated.group(1).splitlines():
            calls, reason = re.match(r"hips report:   (\d+) calls?: (.*)", line).groups()
            reasons[reason] = int(calls)
        return tuple(map(int, taken.groups())), reasons

    def expected(self):
        """The same, as counted by the program itself."""
        taken = re.search(r"^expect taken (\d+) (\d+)", self.out, re.MULTILINE)
        delegated = re.findall(r"^expect delegated (\d+) (.*)", self.out, re.MULTILINE)
        return tuple(map(int, taken.groups())), {reason: int(calls) for calls, reason in delegated}


def run(command, limit_s=LIMIT_S, **more):
    begin = time.monotonic()
    with subprocess.Popen(
        command, env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            # mpirun ends its ranks on SIGTERM; if it does not, its whole session is killed.
            process.terminate()
            try:
                out, err = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
            raise AssertionError(f"hangs: {' '.join(command)}\n{out}\n{err}") from None
    return Outcome(process.returncode, out, err, time.monotonic() - begin)


def mpirun(ranks, *command, **more):
    options = [] if MPICH else ["--oversubscribe"]
    return run([args.mpirun, *options, "-n", str(ranks), *command], **more)


def under_hips(ranks, program, *arguments, options=(), topology=None, **more):
    return mpirun(
        ranks, args.hips, "run", "-t", topology or TOPOLOGIES[ranks], *options, PROGRAMS[program], *arguments, **more
    )


def possible(*ranks):
    """The numbers of ranks among these that this MPI can run."""
    return [num for num in ranks if num <= MOST_RANKS]


def left_in_dev_shm():
    return sorted(name for name in os.listdir("/dev/shm") if "hips" in name)


class Case(unittest.TestCase):
    def assert_exact(self, outcome):
        self.assertEqual(outcome.code, 0, outcome.text())
        self.assertIn("wrong 0\n", outcome.out, outcome.text())

    def assert_ok(self, outcome):
        self.assertEqual(outcome.code, 0, outcome.text())
        self.assertIn("ok\n", outcome.out, outcome.text())

    def assert_reported_as_expected(self, outcome):
        self.assertEqual(outcome.report(), outcome.expected(), outcome.text())
