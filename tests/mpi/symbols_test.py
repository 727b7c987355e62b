"""The interposer exports the MPI symbols of signatures.def that native MPI has, and nothing else but hips_*."""

import argparse
import pathlib
import re
import subprocess
import unittest

parser = argparse.ArgumentParser()
parser.add_argument("--mpi", choices=("openmpi", "mpich"), required=True)
parser.add_argument("--interposer", required=True)
parser.add_argument("--native-libdir", required=True)
parser.add_argument("--signatures", required=True, help="signatures.def")
args, rest = parser.parse_known_args()
MPICH = args.mpi == "mpich"


def lines_of(kind):
    """The lines of one kind in signatures.def, as lists of their words."""
    with open(args.signatures, encoding="utf-8") as file:
        found = re.findall(rf"^{kind}\((.+)\)$", file.read(), re.MULTILINE)
    return [[word.strip() for word in line.split(",")] for line in found]


# Names after "MPI_", in lower case. PMPI_ names are native MPI's own.
COUNTED, UNCOUNTED, PERSISTENT = [], [], []
for _, _, name, _, counts, persistence, *_ in lines_of("HIPS_COLLECTIVE"):
    (COUNTED if counts == "COUNTED" else UNCOUNTED).extend([name, f"i{name}"])
    if persistence == "PERSISTENT":
        PERSISTENT.append(f"{name}_init")
REQUESTS = [words[1] for words in lines_of("HIPS_REQUEST_FUNCTION")]
MEMORY = [words[1] for kind in ("HIPS_MEMORY_FUNCTION", "HIPS_WINDOW_FUNCTION") for words in lines_of(kind)]
FREES = [words[1] for words in lines_of("HIPS_FREE_FUNCTION")]
STARTS = ["init", "init_thread"]  # not in the table: those of Fortran have other arguments
CONVERSIONS = [words[0].lower() for words in lines_of("HIPS_REQUEST_CONVERSION")]

if MPICH:
    # Its bindings of Fortran call the functions of C, except for mpi_f08 where no buffer is passed.
    LARGE = [f"{name}_c" for name in COUNTED + PERSISTENT]
    C = "|".join(name.capitalize() for name in COUNTED + UNCOUNTED + PERSISTENT + LARGE + REQUESTS + MEMORY + FREES + STARTS)
    TAKEN = re.compile(rf"^(MPI_({C})|mpi_({'|'.join(REQUESTS + FREES + UNCOUNTED + STARTS)})_f08_)$")
    LIBRARIES = "libmpich*.so"
else:
    # Every binding needs a wrapper of its own.
    ALL = "|".join(COUNTED + UNCOUNTED + PERSISTENT + REQUESTS + MEMORY + FREES + CONVERSIONS + STARTS)
    TAKEN = re.compile(rf"^mpix?_({ALL})(_cptr)?(_f|_f08)?_{{0,2}}$", re.IGNORECASE)
    LIBRARIES = "libmpi*.so"


def symbols(library, which="--defined-only"):
    lines = subprocess.run(
        ["nm", "-D", which, str(library)], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.strip()}


class Symbols(unittest.TestCase):
    def test_the_table_lists_every_kind_of_function(self):
        for names, known in ((COUNTED, "iallgatherv"), (UNCOUNTED, "ibarrier"), (PERSISTENT, "allreduce_init"),
                             (REQUESTS, "waitsome"), (MEMORY, "free_mem"), (FREES, "op_free"), (CONVERSIONS, "request_f2c")):
            self.assertIn(known, names)

    def test_mpi_symbols_are_those_of_native_mpi(self):
        native = set()
        # Both MPIs may be in one folder.
        libraries = [path for path in sorted(pathlib.Path(args.native_libdir).glob(LIBRARIES))
                     if path.name.startswith("libmpich") == MPICH]
        self.assertTrue(libraries, f"no MPI libraries in {args.native_libdir}")
        for library in libraries:
            native |= {name for name in symbols(library) if TAKEN.match(name)}
        known = ("MPI_Allreduce_init", "MPI_Iallgatherv_c") if MPICH else ("mpi_allreduce_", "MPI_ALLOC_MEM_CPTR")
        for name in ("MPI_Allreduce", "mpi_waitsome_f08_", *known):
            self.assertIn(name, native)
        ours = {name for name in symbols(args.interposer) if not name.startswith("hips_")}
        self.assertEqual(ours, native)

    def test_fortran_of_mpich_calls_the_exported_functions_of_c(self):
        if not MPICH:
            self.skipTest("Open MPI's calls PMPI_ names, and the interposer has wrappers for it")
        fortran = pathlib.Path(args.native_libdir) / "libmpichfort.so"
        if not fortran.exists():
            self.skipTest("no libmpichfort.so")
        called = symbols(fortran, "--undefined-only")
        for name in symbols(args.interposer):
            if name.startswith("MPI_"):
                self.assertIn(name, called)

    def test_the_c_api_is_visible(self):
        self.assertIn("hips_allreduce", symbols(args.interposer))

    def test_the_cxx_runtime_is_linked_statically_and_mpi_is_not_linked(self):
        lines = subprocess.run(
            ["readelf", "-d", args.interposer], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        needed = " ".join(line for line in lines if "NEEDED" in line)
        for library in ("libstdc++", "libgcc_s", "libmpi"):
            self.assertNotIn(library, needed)


unittest.main(argv=[__file__, *rest], verbosity=2)
