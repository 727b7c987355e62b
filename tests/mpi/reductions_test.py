"""Reductions of all types and operations of MPI, and of functions of the program, are right with and without the interposer."""

import re
import unittest

from harness import FULL, MPICH, PROGRAMS, Case, args, mpirun, possible, rest, seeded, under_hips


# In MPICH programs HiPS has a progress thread, on which it calls no functions for programs of one thread.
ALL_TAKEN = {"HIPS_PROGRESS_THREAD": "off"} if MPICH else {}


class Reductions(Case):
    """Random calls, many in one launch. The program compares each result with one that it computes in rank order."""

    def check(self, start, *arguments, taken=True):
        choose = seeded()
        for ranks in possible(2, 3, 4, 9) if FULL else possible(2, 3, 4):
            seed = str(choose.randrange(1 << 40))
            with self.subTest(ranks=ranks, seed=seed):
                # MPICH spins while it waits, and calls of more ranks than cores take long.
                calls = 200 if MPICH else 8000 if FULL else 1200
                outcome = start(ranks, "reductions", seed, str(calls), *arguments)
                self.assert_exact(outcome)
                yield ranks, seed, calls, outcome
                if taken:
                    (num_taken, _), reasons = outcome.report()
                    self.assertEqual(num_taken, outcome.expected()[0][0], outcome.text())
                    # Whatever MPI allows for a type is taken, but for long elements and persistent calls that pack.
                    for reason in reasons:
                        self.assertRegex(reason, "no data|communicator of 1 rank|: type (a derived type|Dup)")

    @staticmethod
    def native(ranks, program, *arguments):
        return mpirun(ranks, PROGRAMS[program], *arguments)

    @staticmethod
    def by_a_plan(ranks, program, *arguments, **more):
        return under_hips(ranks, program, *arguments, options=["--report"], **{**ALL_TAKEN, **more})

    @staticmethod
    def in_memory(ranks, program, *arguments):
        return mpirun(ranks, args.hips, "run", "--report", PROGRAMS[program], *arguments, HIPS_GUARD="off", **ALL_TAKEN)

    @staticmethod
    def hierarchical(ranks, program, *arguments):
        return under_hips(ranks, program, *arguments, options=["--report"], topology="switch:2/2", **ALL_TAKEN)

    def test_hips_with_a_plan_gives_what_native_mpi_gives(self):
        for ranks, seed, calls, outcome in self.check(self.by_a_plan):
            native = self.native(ranks, "reductions", seed, str(calls))
            self.assert_exact(native)
            self.assertEqual(outcome.out, native.out, outcome.text())

    def test_shared_memory_is_exact(self):
        for _ in self.check(self.in_memory):
            pass

    def test_types_and_operations_may_be_freed_while_calls_are_outstanding(self):
        # Open MPI 4.1 itself does not keep all of them.
        for start in (self.by_a_plan, self.in_memory):
            for _ in self.check(start, "freed"):
                pass

    def test_several_nodes_and_small_segments_are_exact(self):
        choose = seeded()
        for more in ({"topology": "switch:2/2"}, {"HIPS_SEGMENT_BYTES": "1024", "HIPS_CREDITS": "1"},
                     {"HIPS_REPRODUCIBLE": "any"}, {"HIPS_PROGRESS_THREAD": "on"}):
            seed = str(choose.randrange(1 << 40))
            with self.subTest(seed=seed, more=more):
                self.assert_exact(self.by_a_plan(4, "reductions", seed, "200" if MPICH else "600", **more))

    @unittest.skipIf(MPICH, "it has no more ranks than cores here")
    def test_elements_too_long_for_the_slices_of_shared_memory_go_to_native_mpi(self):
        # A program that has such calls.
        for guard in ("off", "on"):
            outcome = mpirun(9, args.hips, "run", "--report", PROGRAMS["reductions"], "7", "200", HIPS_STAGING_BYTES="4K",
                             HIPS_GUARD=guard)
            self.assert_exact(outcome)
            self.assertLess(outcome.report()[0][0], outcome.expected()[0][0], outcome.text())

    def test_trials_of_the_guard_are_exact(self):
        for _ in self.check(lambda ranks, program, *arguments: mpirun(
                ranks, args.hips, "run", "--report", PROGRAMS[program], *arguments), taken=False):
            pass

    def test_functions_of_fortran_are_called(self):
        programs = [name for name in PROGRAMS if name.startswith("fortran_functions")]
        if not programs:
            self.skipTest("no Fortran compiler of this MPI")
        for name in programs:
            self.assert_exact(mpirun(3, PROGRAMS[name]))
            for outcome in (self.by_a_plan(3, name, "freed"), self.in_memory(3, name, "freed")):
                self.assert_exact(outcome)
                (num_taken, _), reasons = outcome.report()
                self.assertEqual((num_taken, reasons), (9 if MPICH else 8, {}), outcome.text())


unittest.main(argv=[__file__, *rest], verbosity=2)
