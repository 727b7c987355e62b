"""mpi4py: all of its collectives give the same results with and without the interposer."""

import os
import unittest

from installed import HERE, python_with
from harness import TOPOLOGIES, Case, args, mpirun, rest

RANKS = 4
PYTHON = python_with("mpi4py", "python3-mpi4py")
PROGRAM = [PYTHON, os.path.join(HERE, "mpi4py_collectives.py")]


class Mpi4py(Case):
    @classmethod
    def setUpClass(cls):
        cls.native = mpirun(RANKS, *PROGRAM)

    def check(self, *options, threads="multiple", taken, **more):
        self.assert_ok(self.native)
        outcome = mpirun(RANKS, args.hips, "run", "--report", *options, *PROGRAM, threads, **more)
        self.assert_ok(outcome)
        self.assertEqual(outcome.out, self.native.out, outcome.text())
        (calls, _), _ = outcome.report()
        self.assertGreaterEqual(calls, taken, outcome.text())
        self.assertRegex(outcome.err, r"of these 135 non-blocking, 0 of persistent")

    def test_results_with_a_plan_are_those_of_native_mpi(self):
        self.check("-t", TOPOLOGIES[RANKS], taken=342)

    def test_results_without_threads_are_those_of_native_mpi(self):
        self.check("-t", TOPOLOGIES[RANKS], threads="single", taken=342)

    def test_results_in_shared_memory_are_those_of_native_mpi(self):
        self.check(taken=342, HIPS_GUARD="off")

    def test_results_with_the_guard_are_those_of_native_mpi(self):
        self.check(taken=135)


unittest.main(argv=[__file__, *rest], verbosity=2)
