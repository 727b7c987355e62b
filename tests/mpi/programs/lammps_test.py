"""LAMMPS: energies, pressure and positions of a melt are those that reductions of native MPI give."""

import os
import unittest

from installed import HERE, program
from harness import TOPOLOGIES, Case, args, mpirun, rest

RANKS = 4
LAMMPS = [program("lmp", "lammps"), "-in", os.path.join(HERE, "melt.lammps"), "-log", "none"]
ALL_DIGITS = ["-var", "form", "%.17g"]
NATIVE_ALGORITHMS = range(1, 7)  # of MPI_Allreduce in Open MPI's component tuned


def steps(outcome):
    """The lines of the steps, as lists of words."""
    lines = outcome.out.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.split()[:2] == ["Step", "Temp"])
    end = next(i for i, line in enumerate(lines) if line.startswith("Loop time"))
    return [line.split() for line in lines[begin:end]]


class Lammps(Case):
    @classmethod
    def setUpClass(cls):
        # Sums in another order differ in their last bits, and later steps amplify that: native MPI shows how far.
        cls.native = [steps(mpirun(RANKS, *LAMMPS, OMPI_MCA_coll_tuned_use_dynamic_rules="1",
                                 OMPI_MCA_coll_tuned_allreduce_algorithm=str(algorithm)))
                    for algorithm in NATIVE_ALGORITHMS]

    def run_with(self, *options, words=(), **more):
        outcome = mpirun(RANKS, args.hips, "run", "--report", *options, *LAMMPS, *words, **more)
        self.assertEqual(outcome.code, 0, outcome.text())
        return outcome

    def check(self, *options, taken, **more):
        self.assertEqual([line[0] for line in self.native[0]], ["Step", "0", "10", "20", "30"])
        outcome = self.run_with(*options, **more)
        table = steps(outcome)
        self.assertEqual(table[:2], self.native[0][:2], outcome.text())
        for words, *of_native in zip(table[2:], *(native[2:] for native in self.native), strict=True):
            for word, *values in zip(words, *of_native, strict=True):
                # Printed with eight digits, of which rounding may change the last.
                last_digit = 1e-7 * abs(float(word))
                self.assertGreaterEqual(float(word), min(map(float, values)) - last_digit, outcome.text())
                self.assertLessEqual(float(word), max(map(float, values)) + last_digit, outcome.text())
        (calls, _), _ = outcome.report()
        self.assertGreaterEqual(calls, taken, outcome.text())

    def test_results_with_a_plan_are_those_of_native_mpi(self):
        self.check("-t", TOPOLOGIES[RANKS], taken=150)

    def test_results_in_shared_memory_are_those_of_native_mpi(self):
        self.check(taken=150, HIPS_GUARD="off")

    def test_results_with_the_guard_are_those_of_native_mpi(self):
        self.check(taken=50)

    def test_two_reproducible_runs_give_the_same_bits(self):
        for options in (["-t", TOPOLOGIES[RANKS]], []):
            first, second = (self.run_with(*options, words=ALL_DIGITS, HIPS_REPRODUCIBLE="run") for _ in range(2))
            self.assertEqual(len(steps(first)), 5)
            self.assertEqual(steps(first), steps(second))
            for outcome in (first, second):
                (calls, _), _ = outcome.report()
                self.assertGreaterEqual(calls, 50, outcome.text())


unittest.main(argv=[__file__, *rest], verbosity=2)
