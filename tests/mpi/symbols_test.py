"""The interposer exports the MPI symbols that the host has and that it takes, and nothing else but hips_*."""

import argparse
import pathlib
import re
import subprocess
import unittest

parser = argparse.ArgumentParser()
parser.add_argument("--mpi", choices=("openmpi", "mpich"), required=True)
parser.add_argument("--interposer", required=True)
parser.add_argument("--host-libdir", required=True)
args, rest = parser.parse_known_args()
MPICH = args.mpi == "mpich"

COLLECTIVES = ("allreduce|barrier|bcast|reduce|reduce_scatter|reduce_scatter_block|allgather|allgatherv|"
               "iallreduce|ibarrier|ibcast|ireduce|ireduce_scatter|ireduce_scatter_block|iallgather|iallgatherv|"
               "allreduce_init")
REQUESTS = ("start|startall|wait|waitall|waitany|waitsome|test|testall|testany|testsome|request_free|"
            "request_get_status|cancel")
MEMORY = "alloc_mem|free_mem"
# PMPI_ names are the host's own, whoever calls them.
if MPICH:
    # Its bindings of Fortran call the functions of C, but for mpi_f08 where no buffer is passed.
    LARGE = (f"{name}_c" for name in COLLECTIVES.split("|") if "barrier" not in name)
    C = "|".join(name.capitalize() for name in (*COLLECTIVES.split("|"), *REQUESTS.split("|"),
                                              *MEMORY.split("|"), *LARGE))
    TAKEN = re.compile(rf"^(MPI_({C})|mpi_({REQUESTS}|barrier|ibarrier)_f08_)$")
    LIBRARIES = "libmpich*.so"
else:
    # All bindings of what is taken.
    TAKEN = re.compile(rf"^mpix?_({COLLECTIVES}|{REQUESTS}|{MEMORY}|request_c2f|request_f2c)(_cptr)?(_f|_f08)?_{{0,2}}$", re.IGNORECASE)
    LIBRARIES = "libmpi*.so"


def symbols(library, which="--defined-only"):
    lines = subprocess.run(
        ["nm", "-D", which, str(library)], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.strip()}


class Symbols(unittest.TestCase):
    def test_mpi_symbols_are_those_of_the_host(self):
        host = set()
        # Both may be in one folder.
        libraries = [path for path in sorted(pathlib.Path(args.host_libdir).glob(LIBRARIES))
                     if path.name.startswith("libmpich") == MPICH]
        self.assertTrue(libraries, f"no MPI libraries in {args.host_libdir}")
        for library in libraries:
            host |= {name for name in symbols(library) if TAKEN.match(name)}
        self.assertIn("MPI_Allreduce", host)
        if MPICH:
            self.assertIn("MPI_Allreduce_init", host)
            self.assertIn("MPI_Iallgatherv_c", host)
            self.assertIn("mpi_waitsome_f08_", host)
        else:
            self.assertIn("mpi_allreduce_", host)
            self.assertIn("mpi_waitsome_f08_", host)
        ours = {name for name in symbols(args.interposer) if not name.startswith("hips_")}
        self.assertEqual(ours, host)

    def test_fortran_of_mpich_calls_what_is_taken(self):
        if not MPICH:
            self.skipTest("Open MPI's calls PMPI_ names, and has wrappers of its own")
        fortran = pathlib.Path(args.host_libdir) / "libmpichfort.so"
        if not fortran.exists():
            self.skipTest("no libmpichfort.so")
        called = symbols(fortran, "--undefined-only")
        for name in symbols(args.interposer):
            if name.startswith("MPI_"):
                self.assertIn(name, called)

    def test_the_c_api_is_visible(self):
        self.assertIn("hips_allreduce", symbols(args.interposer))

    def test_cxx_runtime_comes_along_and_the_host_does_not(self):
        lines = subprocess.run(
            ["readelf", "-d", args.interposer], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        needed = " ".join(line for line in lines if "NEEDED" in line)
        for library in ("libstdc++", "libgcc_s", "libmpi"):
            self.assertNotIn(library, needed)


unittest.main(argv=[__file__, *rest], verbosity=2)
