"""mpi4py: all of its collectives, with and without the interposer, which must agree."""

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
        cls.host = mpirun(RANKS, *PROGRAM)

    def check(self, *options, threads="multiple", taken, **more):
        self.assert_ok(self.host)
        outcome = mpirun(RANKS, args.hips, "run", "--report", *options, *PROGRAM, threads, **more)
        self.assert_ok(outcome)
        self.assertEqual(outcome.out, self.host.out, outcome.text())
        (calls, _), _ = outcome.report()
        self.assertGreaterEqual(calls, taken, outcome.text())
        self.assertRegex(outcome.err, r"of them 135 non-blocking, 0 of persistent")

    def test_by_a_plan(self):
        self.check("-t", TOPOLOGIES[RANKS], taken=342)

    def test_without_threads(self):
        self.check("-t", TOPOLOGIES[RANKS], threads="single", taken=342)

    def test_in_memory(self):
        self.check(taken=342, HIPS_GUARD="off")

    def test_with_the_guard(self):
        self.check(taken=135)


unittest.main(argv=[__file__, *rest], verbosity=2)
