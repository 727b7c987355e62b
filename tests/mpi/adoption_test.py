"""Communicators stay with native MPI until HiPS is expected to save what their set-up takes (HIPS_ADOPT=auto)."""

import os
import re
import tempfile
import unittest

import harness
from harness import Case, PROGRAMS, args, mpirun, possible

BEFORE = "communicators before HiPS was expected to save what their set-up takes (HIPS_ADOPT=auto)"
NEVER = "communicators on which HiPS would not have saved what their set-up takes (HIPS_ADOPT=auto)"


def adopt(ranks, *arguments, options=(), **more):
    more.setdefault("HIPS_ADOPT", "auto")
    return mpirun(ranks, args.hips, "run", "--report", *options, PROGRAMS["adopt"], *map(str, arguments), **more)


def descriptors(outcome):
    return int(re.search(r"^descriptors (\d+)", outcome.out, re.MULTILINE)[1])


class Adoption(Case):
    def test_a_short_program_stays_with_native_mpi(self):
        for ranks in possible(2, 4):
            with self.subTest(ranks=ranks):
                outcome = adopt(ranks, "calls", 20, 1)
                self.assert_exact(outcome)
                self.assertEqual(outcome.report(), ((0, 0), {NEVER: 21}), outcome.text())

    def test_many_short_calls_or_a_few_long_ones_are_worth_it(self):
        for arguments, most in ((("calls", 2000, 1), 600), (("calls", 60, 1 << 20), 2)):
            with self.subTest(arguments=arguments):
                outcome = adopt(2, *arguments)
                self.assert_exact(outcome)
                (calls, _), reasons = outcome.report()
                self.assertGreater(calls, 0, outcome.text())
                self.assertLessEqual(reasons[BEFORE], most, outcome.text())

    def test_short_lived_communicators_leave_nothing_behind_and_cost_no_descriptor(self):
        outcome = adopt(2, "duplicates", 500, 300)
        self.assert_exact(outcome)
        self.assertEqual(outcome.report(), ((0, 0), {NEVER: 1501}), outcome.text())
        native = mpirun(2, PROGRAMS["adopt"], "duplicates", "500", "300")
        self.assert_exact(native)
        self.assertLessEqual(descriptors(outcome), descriptors(native) + 1, outcome.text())

    def test_what_one_communicator_has_learnt_holds_for_the_next(self):
        outcome = adopt(2, "renewed", 5, 60, HIPS_ADOPT="always")
        self.assert_exact(outcome)
        trials = outcome.report()[1]["trial of native MPI by the guard"]
        # Those of the first one: 7, or 13 where native MPI was faster the first time; and one of the MPI_Reduce at the end.
        self.assertIn(trials, (7, 8, 13, 14), outcome.text())

    def test_communicators_of_processes_that_have_met_are_adopted_sooner(self):
        outcome = adopt(2, "after", 3, 200, HIPS_GUARD="on")
        self.assert_exact(outcome)
        # 600 calls on the world, and the first 50 on each duplicate.
        self.assertIn(outcome.report()[1][BEFORE], range(500 + 3 * 50, 700 + 3 * 60), outcome.text())

    def test_communicators_of_processes_for_which_native_mpi_has_won_stay_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "table")
            self.assert_exact(adopt(2, "after", 1, 200, HIPS_GUARD="on", HIPS_GUARD_TABLE=table))
            with open(table, encoding="utf-8") as file:
                text = file.read()
            text, changed = re.subn(r"(op=sum bytes=4-7) winner=\S+ hips_ns=\d+ host_ns=\d+",
                                    r"\1 winner=host hips_ns=9000 host_ns=1000", text)
            self.assertEqual(changed, 1, text)
            with open(table, "w", encoding="utf-8") as file:
                file.write(text)
            outcome = adopt(2, "after", 3, 200, HIPS_GUARD="on", HIPS_GUARD_TABLE=table)
            self.assert_exact(outcome)
            self.assertEqual(outcome.report()[1][NEVER], 3 * 200, outcome.text())

    def test_ranks_may_ask_for_different_thread_levels(self):
        for adopts in ("auto", "always"):
            with self.subTest(adopts=adopts):
                outcome = adopt(3, "levels", 3, 200, HIPS_ADOPT=adopts)
                self.assert_exact(outcome)
                self.assertGreater(outcome.report()[0][0], 0, outcome.text())

    def test_further_communicators_of_a_node_need_no_exchange(self):
        numbers = []
        for num_duplicates in (1, 20):
            outcome = adopt(3, "after", num_duplicates, 5, HIPS_ADOPT="always", HIPS_GUARD="off",
                            LD_PRELOAD=PROGRAMS["count_native.so"])
            self.assert_exact(outcome)
            numbers.append(int(re.search(r"^native exchanges (\d+)", outcome.out, re.MULTILINE)[1]))
            self.assertGreater(outcome.report()[0][0], 5 * num_duplicates, outcome.text())
        self.assertGreater(numbers[0], 0)
        self.assertEqual(numbers[1], numbers[0])

    def test_a_duplicate_between_nodes_needs_no_set_up_even_where_it_is_the_only_communicator(self):
        numbers = []
        for num_duplicates in (1, 20):
            outcome = adopt(3, "renewed", num_duplicates, 5, HIPS_ADOPT="always", HIPS_GUARD="off", HIPS_TRANSPORT="tcp",
                            HIPS_TOPO="switch:3", LD_PRELOAD=PROGRAMS["count_native.so"])
            self.assert_exact(outcome)
            numbers.append(int(re.search(r"^native exchanges (\d+)", outcome.out, re.MULTILINE)[1]))
        self.assertEqual(numbers[1], numbers[0])

    def test_a_meeting_of_some_of_its_ranks_with_others_changes_no_adoption(self):
        if harness.MPICH:
            self.skipTest("the table names Open MPI")
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "table")
            for calls in (30, 60, 100):
                with self.subTest(calls=calls):
                    # Native MPI has won calls of another size, so the calls before the meeting may have saved nothing.
                    line = "hosts=1x2 transport=memory mpi=Open_MPI_v4.1.4 op=sum bytes={} winner={} hips_ns={} host_ns={}\n"
                    with open(table, "w", encoding="utf-8") as file:
                        file.write("# HiPS guard table 1\n" + line.format("4-7", "hips", 1000, 4000) +
                                   line.format("64-127", "host", 9000, 1000))
                    outcome = adopt(3, "leaders", calls, HIPS_GUARD="on", HIPS_GUARD_TABLE=table, SLOW_NATIVE_US="20",
                                    LD_PRELOAD=PROGRAMS["slow_native.so"])
                    self.assert_exact(outcome)

    def test_parts_that_are_used_again_have_persistent_requests_as_before(self):
        outcome = adopt(6, "halves", 4, 5, HIPS_ADOPT="always", HIPS_GUARD="off", HIPS_TRANSPORT="tcp", HIPS_TOPO="switch:6")
        self.assert_exact(outcome)
        self.assertEqual(outcome.report()[0][0], 4 * 6 + 1, outcome.text())

    def test_non_blocking_calls_count_for_the_adoption_at_the_next_blocking_one(self):
        outcome = adopt(2, "nonblocking", 1500)
        self.assert_exact(outcome)
        (calls, _), reasons = outcome.report()
        self.assertEqual(reasons[BEFORE], 1500, outcome.text())
        self.assertEqual(calls + reasons["trial of native MPI by the guard"], 3, outcome.text())

    def test_traces_are_named_by_the_ranks_of_the_job(self):
        # The first communicator of each process has only some of them.
        for ranks in possible(4):
            with self.subTest(ranks=ranks), tempfile.TemporaryDirectory() as folder:
                self.assert_exact(adopt(ranks, "parts", 12, HIPS_ADOPT="always", HIPS_TRACE=folder))
                self.assertEqual(sorted(os.listdir(folder)), [f"trace-{rank}.json" for rank in range(ranks)])

    def test_parts_are_adopted_each_in_its_own_time(self):
        for ranks in possible(2, 3, 4):
            with self.subTest(ranks=ranks):
                outcome = adopt(ranks, "parts", 12)
                self.assert_exact(outcome)

    def test_who_names_a_topology_on_one_node_sees_it_run_at_once(self):
        outcome = adopt(4, "calls", 3, 1, options=("-t", "bcube:2,1"))
        self.assert_exact(outcome)
        # MPI_Reduce at the end, too.
        self.assertEqual(outcome.report()[0][0], 4, outcome.text())

    def test_one_rank_that_wants_it_decides_for_all(self):
        if harness.MPICH:
            self.skipTest("Open MPI's way to give ranks different variables")
        command = [args.hips, "run", "--report", PROGRAMS["adopt"], "calls", "3", "1"]
        for variable, what in (("HIPS_ADOPT=always", ""), ("HIPS_REPRODUCIBLE=run", "the reproducibility"),
                               ("HIPS_GUARD=off", "the guard (HIPS_GUARD)")):
            with self.subTest(variable=variable):
                outcome = harness.run([args.mpirun, "--oversubscribe", "-n", "1", *command, ":", "-n", "1", "-x", variable, *command],
                                      HIPS_ADOPT="auto")
                if variable.startswith("HIPS_ADOPT"):
                    self.assert_exact(outcome)
                    self.assertNotIn(NEVER, outcome.err)
                else:
                    # Expect: the error that this always was, at the first call, and no hang.
                    self.assertNotEqual(outcome.code, 0)
                    self.assertIn(f"the ranks disagree on {what}", outcome.err)

    def test_a_wrong_variable_is_told_at_the_first_call(self):
        # hips run sees that before; a library that was preloaded by hand does not wait until it is worth a set-up either.
        outcome = mpirun(2, "env", f"LD_PRELOAD={harness.LIBRARY}", "HIPS_TOPO=bcube:2,1", PROGRAMS["adopt"], "calls", "1", "1",
                         HIPS_ADOPT="auto")
        self.assertNotEqual(outcome.code, 0)
        self.assertIn("bcube:2,1 has 4 ranks, but MPI_COMM_WORLD has 2", outcome.err)

    def test_a_tool_that_starts_mpi_itself_changes_nothing(self):
        if harness.MPICH:
            self.skipTest("MPICH's library starts itself by the profiling name")
        for adopts, expected in (("auto", ((0, 0), {NEVER: 6})), ("always", None)):
            outcome = adopt(2, "calls", 5, 1, HIPS_ADOPT=adopts, LD_PRELOAD=PROGRAMS["passed_by.so"])
            self.assert_exact(outcome)
            if expected:
                self.assertEqual(outcome.report(), expected, outcome.text())
            else:
                self.assertNotIn(NEVER, outcome.err)


if __name__ == "__main__":
    unittest.main(argv=[__file__, *harness.rest], verbosity=2)
