"""MPI programs at the limits of MPI and of a machine's resources, with and without the interposer."""

import re
import unittest

from harness import FULL, MPICH, PROGRAMS, Case, args, mpirun, rest, under_hips


class Corners(Case):
    def check(self, *case, ranks=3, on_native=True, **more):
        """Runs a case natively, with a plan and in shared memory; the outcomes of the latter two."""
        if on_native:
            self.assert_ok(mpirun(ranks, PROGRAMS["corners"], *case))
        outcomes = [under_hips(ranks, "corners", *case, options=["--report"], **more),
                    mpirun(ranks, args.hips, "run", "--report", PROGRAMS["corners"], *case, HIPS_GUARD="off", **more)]
        for outcome in outcomes:
            self.assert_ok(outcome)
        return outcomes

    def test_requests_can_be_completed_and_freed_at_the_end_of_finalize(self):
        # MPICH 4.0 takes inactive persistent collectives for outstanding ones.
        for outcome in self.check("freed-in-finalize", on_native=not MPICH):
            self.assertIn("ended\n", outcome.out, outcome.text())
            self.assertGreater(outcome.report()[0][0], 0, outcome.text())

    def test_attributes_of_types_are_not_copied(self):
        self.check("attributes-of-types", on_native=False)

    def test_communicators_of_one_node_need_no_descriptors(self):
        _, outcome = self.check("few-descriptors")
        self.assertNotIn("Too many open files", outcome.text())
        (calls, _), reasons = outcome.report()
        self.assertEqual((calls, reasons), (181, {}), outcome.text())

    def test_native_mpi_executes_calls_where_descriptors_are_short(self):
        for outcome in self.check("no-descriptors"):
            self.assertEqual(len(re.findall(r"warn mpi: .*Too many open files", outcome.err)), 3, outcome.text())
            (calls, _), reasons = outcome.report()
            self.assertEqual(calls, 0, outcome.text())
            for reason in reasons:
                self.assertRegex(reason, "Too many open files|no data")

    def test_a_child_may_free_memory_of_its_parent(self):
        # Without HiPS a child has to leave MPI alone.
        self.check("child-frees", on_native=False)

    def test_all_ranks_get_an_error_where_one_has_no_memory(self):
        for call in ("bcast", "ibcast"):
            with self.subTest(call=call):
                self.check("short-of-memory", call, on_native=False)

    def test_ranks_of_other_thread_levels_reduce_by_functions(self):
        self.check("other-levels")

    @unittest.skipIf(MPICH, "its functions of Fortran call those of C")
    def test_a_stale_handle_is_an_error_in_fortran(self):
        self.check("stale-in-fortran", on_native=False)

    @unittest.skipIf(not FULL, "takes 8 GiB of memory; HIPS_TEST_FULL")
    def test_one_element_may_have_more_than_2_gib(self):
        for outcome in self.check("huge-types", ranks=2, on_native=False):
            self.assertEqual(outcome.report(), ((2, (2 << 30) + 4), {}), outcome.text())

    def test_a_progress_callback_progresses_native_messages(self):
        self.assert_ok(mpirun(2, PROGRAMS["corners"], "progress"))


if __name__ == "__main__":
    unittest.main(argv=[__file__, *rest], verbosity=2)
