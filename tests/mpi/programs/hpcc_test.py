"""HPC Challenge: residuals and error counts of Linpack, PTRANS, random access, FFT and the others."""

import os
import re
import tempfile
import unittest

from installed import program
from harness import TOPOLOGIES, Case, args, mpirun, rest

RANKS = 4
HPCC = program("hpcc", "hpcc")

# 2 x 2 ranks, every broadcast of panels, every factorisation.
INPUT = """HPLinpack benchmark input file

HPL.out
8            device out
1            # of problems sizes (N)
300          Ns
1            # of NBs
32           NBs
0            PMAP process mapping
1            # of process grids (P x Q)
2            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs
1            # of recursive stopping criterium
4            NBMINs
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs
1            # of broadcast
1            BCASTs
1            # of lookahead depth
1            DEPTHs
2            SWAP
64           swapping threshold
0            L1 in
0            U  in
1            Equilibration
8            memory alignment in double
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
"""


class Hpcc(Case):
    def run_in_folder(self, *command, **more):
        """Runs it and returns its output file, which it writes to its working directory."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="utf-8") as file:
                file.write(INPUT)
            outcome = mpirun(RANKS, "--wdir", folder, *command, HPCC, **more)
            self.assertEqual(outcome.code, 0, outcome.text())
            with open(os.path.join(folder, "hpccoutf.txt"), encoding="utf-8") as file:
                return outcome, file.read()

    def residuals(self, text):
        self.assertRegex(text, r"(?m)^Success=1$", text)
        self.assertNotIn("FAILED", text)
        self.assertRegex(text, r"(?m)^PTRANS_residual=0$")
        for errors in re.findall(r"Found (\d+) errors", text):
            self.assertEqual(errors, "0", text)
        self.assertGreaterEqual(len(re.findall(r"Found 0 errors in \d+ locations \(passed\)", text)), 4, text)
        self.assertLess(float(re.search(r"MPIFFT_maxErr=(\S+)", text).group(1)), 1e-10, text)
        return re.findall(r"\|\|Ax-b\|\|_oo/\(\S+=\s+(\S+) ", text)

    def check(self, *options, taken, **more):
        _, text = self.run_in_folder()
        native = self.residuals(text)
        self.assertEqual(len(native), 1, text)
        outcome, text = self.run_in_folder(os.path.abspath(args.hips), "run", "--report", *options, **more)
        self.assertEqual(self.residuals(text), native)
        (calls, _), _ = outcome.report()
        self.assertGreaterEqual(calls, taken, outcome.text())

    def test_residuals_with_a_plan_are_those_of_native_mpi(self):
        self.check("-t", TOPOLOGIES[RANKS], taken=1000)

    def test_residuals_in_shared_memory_are_those_of_native_mpi(self):
        self.check(taken=1000, HIPS_GUARD="off")

    def test_residuals_with_the_guard_are_those_of_native_mpi(self):
        self.check(taken=100)


unittest.main(argv=[__file__, *rest], verbosity=2)
