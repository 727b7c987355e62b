"""Blocking and non-blocking collectives of ordinary MPI programs: seeded random programs with and without the interposer."""

import re
import unittest

from harness import FULL, MPICH, PROGRAMS, Case, args, mpirun, possible, rest, seeded, under_hips


class Collectives(Case):
    PROGRAMS_PER_LAUNCH = 250 if FULL else 16

    def check_random(self, launch, types="alike"):
        random = seeded()
        for ranks in possible(2, 3, 4, 9) if FULL else random.sample(possible(2, 3, 4, 9), 2):
            seed = random.randrange(1 << 32)
            with self.subTest(ranks=ranks, seed=seed):
                outcome = launch(ranks, "collectives", str(seed), str(self.PROGRAMS_PER_LAUNCH), types)
                self.assert_exact(outcome)
                self.assertRegex(outcome.out, rf"programs {self.PROGRAMS_PER_LAUNCH} calls \d+ wrong 0")
                yield outcome

    def test_native_mpi_alone_is_exact(self):
        for _ in self.check_random(lambda ranks, program, *more, **limits:
                                   mpirun(ranks, PROGRAMS[program], *more, **limits)):
            pass

    def test_hips_with_a_plan_is_exact(self):
        for outcome in self.check_random(lambda ranks, program, *more, **limits:
                                         under_hips(ranks, program, *more, options=["--report"], **limits),
                                         types="differ"):
            (calls, _), reasons = outcome.report()
            self.assertGreater(calls, 100, outcome.text())
            # In MPICH programs HiPS has a progress thread, which must not call the program's function.
            functions = [reason for reason in reasons if re.fullmatch(r"MPI_I\w+: op a user's op", reason)]
            made = int(re.search(r"^non-blocking by a function (\d+)$", outcome.out, re.MULTILINE).group(1))
            self.assertEqual(sum(reasons.pop(reason) for reason in functions), made if MPICH else 0, outcome.text())
            # Else only calls that HiPS does not support are delegated.
            allowed = r"no data|communicator of 1 rank"
            for reason in reasons:
                self.assertTrue(re.search(allowed, reason), outcome.text())

    def test_hips_in_shared_memory_is_exact(self):
        for outcome in self.check_random(lambda ranks, program, *more, **limits: mpirun(
                ranks, args.hips, "run", "--report", PROGRAMS[program], *more, HIPS_GUARD="off", **limits), types="differ"):
            (calls, _), _ = outcome.report()
            self.assertGreater(calls, 100, outcome.text())

    def test_trials_of_the_guard_are_exact(self):
        for _ in self.check_random(lambda ranks, program, *more, **limits: mpirun(
                ranks, args.hips, "run", "--report", PROGRAMS[program], *more, **limits)):
            pass


class LargeCounts(Case):
    """Functions of MPI 4 with large counts that the random programs do not call."""

    def check(self, program):
        if program not in PROGRAMS:
            self.skipTest("this MPI has no functions of MPI 4")
        self.assert_exact(mpirun(3, PROGRAMS[program]))
        for ranks in (2, 4):
            outcome = under_hips(ranks, program, options=["--report"])
            self.assert_exact(outcome)
            self.assert_reported_as_expected(outcome)

    def test_functions_of_c_take_counts_of_64_bits(self):
        self.check("large_counts")

    def test_functions_of_fortran_take_counts_of_kind_mpi_count_kind(self):
        self.check("fortran_large_mpi_f08")


class CollectivesOfFortran(Case):
    def check(self, program):
        self.assert_exact(mpirun(3, PROGRAMS[program]))
        for ranks in (2, 4):
            with self.subTest(ranks=ranks):
                outcome = under_hips(ranks, program, options=["--report"])
                self.assert_exact(outcome)
                (calls, _), reasons = outcome.report()
                # Each call is counted once, and MPI_IN_PLACE is recognised. MPICH's pmpi_allreduce of Fortran, with
                # which the program compares, calls MPI_Allreduce of C.
                self.assertEqual((calls, reasons), (16 if MPICH else 15, {}), outcome.text())

    def test_programs_with_mpif_h_are_exact(self):
        self.check("fortran_collectives_mpifh")

    def test_programs_with_the_module_mpi_are_exact(self):
        self.check("fortran_collectives_mpi")

    def test_programs_with_the_module_mpi_f08_are_exact(self):
        self.check("fortran_collectives_mpi_f08")


if __name__ == "__main__":
    unittest.main(argv=[__file__, *rest], verbosity=2)
