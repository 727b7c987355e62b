"""LAMMPS: the energies, pressure and positions of a melt are those that the host's reductions give."""

import os
import unittest

from installed import HERE, program
from harness import TOPOLOGIES, Case, args, mpirun, rest

RANKS = 4
LAMMPS = [program("lmp", "lammps"), "-in", os.path.join(HERE, "melt.lammps"), "-log", "none"]
ALL_DIGITS = ["-var", "form", "%.17g"]
HOST_ALGORITHMS = range(1, 7)  # of Open MPI's component tuned for MPI_Allreduce


def steps(outcome):
    """What is printed of each step, in words."""
    lines = outcome.out.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.split()[:2] == ["Step", "Temp"])
    end = next(i for i, line in enumerate(lines) if line.startswith("Loop time"))
    return [line.split() for line in lines[begin:end]]


class Lammps(Case):
    @classmethod
    def setUpClass(cls):
        # Sums in another order differ in their last bits, which the steps to come let grow: how far they do by the host.
        cls.host = [steps(mpirun(RANKS, *LAMMPS, OMPI_MCA_coll_tuned_use_dynamic_rules="1",
                                 OMPI_MCA_coll_tuned_allreduce_algorithm=str(algorithm)))
                    for algorithm in HOST_ALGORITHMS]

    def run_with(self, *options, words=(), **more):
        outcome = mpirun(RANKS, args.hips, "run", "--report", *options, *LAMMPS, *words, **more)
        self.assertEqual(outcome.code, 0, outcome.text())
        return outcome

    def check(self, *options, taken, **more):
        self.assertEqual([line[0] for line in self.host[0]], ["Step", "0", "10", "20", "30"])
        outcome = self.run_with(*options, **more)
        table = steps(outcome)
        self.assertEqual(table[:2], self.host[0][:2], outcome.text())
        for words, *of_host in zip(table[2:], *(host[2:] for host in self.host), strict=True):
            for word, *values in zip(words, *of_host, strict=True):
                # Printed to eight digits: rounding may move the last of them.
                last_digit = 1e-7 * abs(float(word))
                self.assertGreaterEqual(float(word), min(map(float, values)) - last_digit, outcome.text())
                self.assertLessEqual(float(word), max(map(float, values)) + last_digit, outcome.text())
        (calls, _), _ = outcome.report()
        self.assertGreaterEqual(calls, taken, outcome.text())

    def test_by_a_plan(self):
        self.check("-t", TOPOLOGIES[RANKS], taken=150)

    def test_in_memory(self):
        self.check(taken=150, HIPS_GUARD="off")

    def test_with_the_guard(self):
        self.check(taken=50)

    def test_two_runs_have_the_same_bits_where_that_is_asked_for(self):
        for options in (["-t", TOPOLOGIES[RANKS]], []):
            first, second = (self.run_with(*options, words=ALL_DIGITS, HIPS_REPRODUCIBLE="run") for _ in range(2))
            self.assertEqual(len(steps(first)), 5)
            self.assertEqual(steps(first), steps(second))
            for outcome in (first, second):
                (calls, _), _ = outcome.report()
                self.assertGreaterEqual(calls, 50, outcome.text())


unittest.main(argv=[__file__, *rest], verbosity=2)
