"""LAMMPS: the energies, pressure and positions of a melt are those that the host's reductions give."""

import os
import unittest

from installed import HERE, program
from harness import TOPOLOGIES, Case, args, mpirun, rest

RANKS = 4
LAMMPS = [program("lmp", "lammps"), "-in", os.path.join(HERE, "melt.lammps"), "-log", "none"]


class Lammps(Case):
    def table(self, outcome):
        """Of the steps, as printed."""
        self.assertEqual(outcome.code, 0, outcome.text())
        lines = outcome.out.splitlines()
        begin = next(i for i, line in enumerate(lines) if line.split()[:2] == ["Step", "Temp"])
        end = next(i for i, line in enumerate(lines) if line.startswith("Loop time"))
        return [line.split() for line in lines[begin:end]]

    def check(self, *options, taken, **more):
        host = self.table(mpirun(RANKS, *LAMMPS))
        self.assertEqual([line[0] for line in host], ["Step", "0", "10", "20", "30"])
        outcome = mpirun(RANKS, args.hips, "run", "--report", *options, *LAMMPS, **more)
        # Sums in another order differ in their last bits, which the steps to come let grow.
        table = self.table(outcome)
        self.assertEqual(table[:2], host[:2], outcome.text())
        for line, right in zip(table[2:], host[2:], strict=True):
            for value, expected in zip(line, right, strict=True):
                self.assertAlmostEqual(float(value), float(expected), delta=1e-5 * max(1, abs(float(expected))))
        (calls, _), _ = outcome.report()
        self.assertGreaterEqual(calls, taken, outcome.text())

    def test_by_a_plan(self):
        self.check("-t", TOPOLOGIES[RANKS], taken=150)

    def test_in_memory(self):
        self.check(taken=150, HIPS_GUARD="off")

    def test_with_the_guard(self):
        self.check(taken=50)


unittest.main(argv=[__file__, *rest], verbosity=2)
