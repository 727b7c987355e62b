"""A wrong call that native MPI refuses on one rank is refused there alike, and takes place nowhere: no rank hangs or gets another
error, and later calls are exact."""

import re
import unittest

from harness import Case, FULL, PROGRAMS, TOPOLOGIES, args, mpirun, possible, rest, seeded

STEPS = 400
SLOW_HIPS = {"LD_PRELOAD": PROGRAMS["slow_hips.so"], "SLOW_HIPS_NS_PER_BYTE": "200", "HIPS_TRANSPORT": "tcp"}


def refused(ranks, *arguments, options=(), **more):
    return mpirun(ranks, args.hips, "run", "--report", *options, PROGRAMS["refused"], *map(str, arguments), **more)


class Refused(Case):
    def test_as_natively_in_each_way_that_a_call_can_take(self):
        ways = {
            "trials, in memory": ((), {}),
            "HiPS, in memory": ((), {"HIPS_GUARD": "off"}),
            "HiPS, by a plan": (("-t",), {}),
            "trials, by a plan": (("-t",), {"HIPS_GUARD": "on"}),
            "adopted while it runs": ((), {"HIPS_ADOPT": "auto"}),
        }
        random = seeded()
        for ranks in possible(2, 4):
            for way, (options, more) in ways.items():
                for _ in range(4 if FULL else 1):
                    seed = random.randrange(1, 1 << 30)
                    named = ("-t", TOPOLOGIES[ranks]) if options else ()
                    with self.subTest(ranks=ranks, way=way, seed=seed):
                        native = mpirun(ranks, PROGRAMS["refused"], str(seed), str(STEPS))
                        self.assert_exact(native)
                        outcome = refused(ranks, seed, STEPS, options=named, **more)
                        self.assert_exact(outcome)
                        self.assertEqual(outcome.out, native.out, outcome.text())
                        if way != "adopted while it runs":
                            self.assertGreater(outcome.report()[0][0], 10, outcome.text())

    def test_where_native_mpi_has_won_the_trials(self):
        outcome = refused(2, 7, 3 * STEPS, HIPS_GUARD="on", **SLOW_HIPS)
        self.assert_exact(outcome)
        self.assertIn("faster in the trials", outcome.err)

    def test_reviews_of_decisions_begin_at_the_same_call_on_all_ranks(self):
        # The trials of a class and 150 more calls come before its first review; and refused ones in between.
        outcome = refused(2, seeded().randrange(1, 1 << 30), 12000)
        self.assert_exact(outcome)
        took, natively = (float(re.search(text + r" ([0-9.]+) s", outcome.err)[1]) for text in ("collectives took", "would have taken"))
        if natively > 7 * took:
            self.skipTest(f"native MPI takes {natively / took:.0f} times as long just now, so its reviews come later")
        self.assertIn("native MPI in a review by the guard", outcome.err)

    def test_the_first_call_of_a_program_may_be_refused(self):
        for more in ({}, {"HIPS_ADOPT": "auto"}, {"HIPS_GUARD": "off"}):
            with self.subTest(**more):
                self.assert_exact(refused(2, "first", **more))

    def test_reductions_of_nothing_begin_on_no_rank_alone(self):
        for more in ({}, {"HIPS_ADOPT": "auto"}, {"HIPS_GUARD": "off"}):
            with self.subTest(**more):
                self.assert_exact(refused(3 if 3 in possible(2, 3, 4) else 2, "nothing", **more))

    def test_after_different_lengths_that_all_ranks_know_of_native_mpi_executes_the_calls(self):
        for ranks in possible(2, 4):
            for more in ({}, {"HIPS_GUARD": "off"}):
                with self.subTest(ranks=ranks, **more):
                    outcome = refused(ranks, "apart", **more)
                    self.assert_exact(outcome)
                    self.assertIn("after ranks passed different arguments", outcome.err, outcome.text())
                    self.assertIn("MPI_Bcast on MPI_COMM_WORLD: ", outcome.err, outcome.text())


unittest.main(argv=[__file__, *rest], verbosity=2)
