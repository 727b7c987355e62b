"""The interposer exports the MPI symbols that the host has and that it takes, and nothing else but hips_*."""

import argparse
import pathlib
import re
import subprocess
import unittest

parser = argparse.ArgumentParser()
parser.add_argument("--interposer", required=True)
parser.add_argument("--host-libdir", required=True)
args, rest = parser.parse_known_args()

# All bindings of what is taken; PMPI_ names are the host's own, whoever calls them.
FUNCTIONS = ("allreduce|barrier|bcast|reduce|reduce_scatter|reduce_scatter_block|allgather|allgatherv|"
             "iallreduce|ibarrier|ibcast|ireduce|ireduce_scatter|ireduce_scatter_block|iallgather|iallgatherv|"
             "allreduce_init|start|startall|wait|waitall|waitany|waitsome|test|testall|testany|"
             "testsome|request_free|request_get_status|request_c2f|request_f2c|cancel")
TAKEN = re.compile(rf"^mpix?_({FUNCTIONS})(_f|_f08)?_{{0,2}}$", re.IGNORECASE)


def exported(library):
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.strip()}


class Symbols(unittest.TestCase):
    def test_mpi_symbols_are_those_of_the_host(self):
        host = set()
        libraries = sorted(pathlib.Path(args.host_libdir).glob("libmpi*.so"))
        self.assertTrue(libraries, f"no MPI libraries in {args.host_libdir}")
        for library in libraries:
            host |= {name for name in exported(library) if TAKEN.match(name)}
        self.assertIn("MPI_Allreduce", host)
        self.assertIn("mpi_allreduce_", host)
        self.assertIn("mpi_waitsome_f08_", host)
        ours = {name for name in exported(args.interposer) if not name.startswith("hips_")}
        self.assertEqual(ours, host)

    def test_the_c_api_is_visible(self):
        self.assertIn("hips_allreduce", exported(args.interposer))

    def test_cxx_runtime_comes_along_and_the_host_does_not(self):
        lines = subprocess.run(
            ["readelf", "-d", args.interposer], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        needed = " ".join(line for line in lines if "NEEDED" in line)
        for library in ("libstdc++", "libgcc_s", "libmpi"):
            self.assertNotIn(library, needed)


unittest.main(argv=[__file__, *rest], verbosity=2)
