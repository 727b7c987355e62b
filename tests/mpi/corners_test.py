"""MPI programs at the ends of what MPI allows and of what a machine has, with and without the interposer."""

import re
import unittest

from harness import FULL, MPICH, PROGRAMS, Case, args, mpirun, rest, under_hips


class Corners(Case):
    def check(self, *way, ranks=3, on_host=True, **more):
        """Both ways in which HiPS carries calls, after the host; their outcomes."""
        if on_host:
            self.assert_ok(mpirun(ranks, PROGRAMS["corners"], *way))
        outcomes = [under_hips(ranks, "corners", *way, options=["--report"], **more),
                    mpirun(ranks, args.hips, "run", "--report", PROGRAMS["corners"], *way, HIPS_GUARD="off", **more)]
        for outcome in outcomes:
            self.assert_ok(outcome)
        return outcomes

    def test_requests_are_completed_and_freed_at_the_end_of_finalize(self):
        # MPICH 4.0 takes persistent collectives that were not started for ones under way.
        for outcome in self.check("freed-in-finalize", on_host=not MPICH):
            self.assertIn("ended\n", outcome.out, outcome.text())
            self.assertGreater(outcome.report()[0][0], 0, outcome.text())

    def test_attributes_of_types_are_not_copied(self):
        self.check("attributes-of-types", on_host=False)

    def test_the_host_carries_on_where_descriptors_are_short(self):
        _, outcome = self.check("few-descriptors")
        self.assertEqual(len(re.findall(r"warn mpi: .*Too many open files", outcome.err)), 3, outcome.text())
        (calls, _), reasons = outcome.report()
        self.assertGreater(calls, 0)
        for reason in reasons:
            self.assertRegex(reason, "Too many open files|count 0")

    def test_a_child_frees_what_its_parent_allocated(self):
        # Without HiPS a child has to leave MPI alone.
        self.check("child-frees", on_host=False)

    def test_all_hear_of_a_rank_without_memory(self):
        for call in ("bcast", "ibcast"):
            with self.subTest(call=call):
                self.check("short-of-memory", call, on_host=False, limit_s=20)

    @unittest.skipIf(MPICH, "its functions of Fortran call those of C")
    def test_a_stale_handle_in_fortran(self):
        self.check("stale-in-fortran", on_host=False)

    @unittest.skipIf(not FULL, "takes 8 GiB of memory; HIPS_TEST_FULL")
    def test_one_rank_has_more_than_2_gib_in_one_element(self):
        for outcome in self.check("huge-types", ranks=2, on_host=False):
            self.assertEqual(outcome.report(), ((2, (2 << 30) + 4), {}), outcome.text())

    def test_progress_moves_messages_of_the_host(self):
        self.assert_ok(mpirun(2, PROGRAMS["corners"], "progress"))


if __name__ == "__main__":
    unittest.main(argv=[__file__, *rest], verbosity=2)
