"""The guard and HIPS_REPRODUCIBLE in MPI programs: a slow or fast native MPI beside HiPS."""

import os
import re
import tempfile
import unittest

from harness import MPICH, NATIVE, PROGRAMS, Case, args, mpirun, possible, rest, seeded


class Guard(Case):
    """Without a topology native MPI and HiPS are timed, and the faster one executes the calls."""

    def without_topology(self, ranks, program, *arguments, **more):
        return mpirun(ranks, args.hips, "run", "--report", PROGRAMS[program], *arguments, **more)

    def decisions(self, outcome):
        """{(op, least bytes): (HiPS' us, native MPI's us, winner)}"""
        found = re.findall(r"^hips report:   MPI_COMM_WORLD, \d+ ranks, (\w+), (\d+) to \d+ bytes: "
                           r"HiPS ([\d.]+) us, native MPI ([\d.]+) us: ([^;\n]*)(?:;.*)?$", outcome.err, re.MULTILINE)
        return {(op, int(least)): (float(hips), float(native), winner) for op, least, hips, native, winner in found}

    # Slowness is injected, far beyond what a loaded machine adds: no test depends on which library is faster.
    def slow(self, native_us=0, native_rank=None, hips_ns_per_byte=0):
        more, libraries = {}, []
        if native_us:
            libraries.append(PROGRAMS["slow_native.so"])
            more["SLOW_NATIVE_US"] = str(native_us)
        if native_rank is not None:
            more["SLOW_NATIVE_RANK"] = str(native_rank)
        if hips_ns_per_byte:
            libraries.append(PROGRAMS["slow_hips.so"])
            more.update(HIPS_TRANSPORT="tcp", SLOW_HIPS_NS_PER_BYTE=str(hips_ns_per_byte))
        return {"LD_PRELOAD": ":".join(libraries), **more}

    SLOW_NATIVE_US = 100000

    def slow_native(self):
        return self.slow(native_us=self.SLOW_NATIVE_US)

    def slow_hips(self):
        """A call of 8.8 MB takes about 0.6 s: native MPI takes some 20 ms, and 0.1 s on a loaded machine."""
        return self.slow(hips_ns_per_byte=50)

    def test_every_result_is_exact_during_trials_and_every_call_is_counted(self):
        for ranks in (2, 3, 4):
            with self.subTest(ranks=ranks):
                outcome = self.without_topology(ranks, "exact", "bits")
                self.assert_exact(outcome)
                (calls, _), reasons = outcome.report()
                (all_calls, _), all_reasons = outcome.expected()
                ours = {reason for reason in reasons if "trial" in reason}
                self.assertEqual(ours & set(all_reasons), set())
                self.assertEqual(calls + sum(reasons[reason] for reason in ours), all_calls, outcome.text())
                self.assertEqual({r: n for r, n in reasons.items() if r not in ours}, all_reasons)
                self.assertIn("hips report: guard on\n", outcome.err)
                self.assertIn("undecided after", outcome.err)

    def test_a_slow_native_mpi_loses_and_is_not_used_again(self):
        outcome = self.without_topology(3, "behave", "repeat", "1000", "60", **self.slow_native())
        self.assert_ok(outcome)
        hips_us, native_us, winner = self.decisions(outcome)["sum", 4096]
        self.assertEqual(winner, "HiPS", outcome.text())
        self.assertGreater(native_us, self.SLOW_NATIVE_US)
        self.assertLess(hips_us, native_us)
        (calls, _), reasons = outcome.report()
        self.assertEqual(reasons, {"trial of native MPI by the guard": 7})
        self.assertEqual(calls, 53)

    def test_a_faster_native_mpi_executes_all_calls_after_the_trials(self):
        outcome = self.without_topology(3, "behave", "repeat", "1100000", "24", **self.slow_hips())
        self.assert_ok(outcome)
        hips_us, native_us, winner = self.decisions(outcome)["sum", 8 << 20]
        self.assertEqual(winner, "native MPI", outcome.text())
        self.assertGreater(hips_us, native_us)
        (calls, _), reasons = outcome.report()
        self.assertEqual(calls, 9, outcome.text())
        self.assertEqual(reasons["trial of native MPI by the guard"], 9)
        self.assertEqual(reasons["faster in the trials"], 6)

    def test_ranks_decide_alike_where_native_mpi_is_slow_on_one_of_them(self):
        # By the times of the other ranks native MPI is faster: deciding by those would make the ranks hang.
        ranks = 2 if MPICH else 3
        for slow in (0, ranks - 1):
            with self.subTest(slow=slow):
                outcome = self.without_topology(ranks, "behave", "repeat", "200000", "20",
                                                **self.slow(native_us=1000000, native_rank=slow, hips_ns_per_byte=20))
                self.assert_ok(outcome)
                hips_us, native_us, winner = self.decisions(outcome)["sum", 1 << 20]
                self.assertEqual(winner, "HiPS", outcome.text())
                self.assertGreater(native_us, 1000000)
                self.assertEqual(outcome.report()[1], {"trial of native MPI by the guard": 7})

    def test_a_named_topology_or_algorithm_turns_the_guard_off(self):
        for options in (["-t", "bcube:2,1"], ["--algorithm", "flat-ring"], ["--pattern", "ring"]):
            with self.subTest(options=options):
                outcome = mpirun(4, args.hips, "run", *options, "--report", PROGRAMS["behave"], "repeat", "10", "40",
                                 **self.slow_native())
                self.assert_ok(outcome)
                self.assertEqual(outcome.report(), ((40, 3200), {}))
                self.assertIn("hips report: guard off: a topology or a plan is named for ranks on one node\n", outcome.err)
        outcome = mpirun(4, args.hips, "run", "-t", "bcube:2,1", "--report", PROGRAMS["behave"], "repeat", "10", "40",
                         HIPS_GUARD="on")
        self.assert_ok(outcome)
        # Either may be faster here: 6 more trials where native MPI is.
        self.assertIn(outcome.report()[1]["trial of native MPI by the guard"], (7, 13))

    def test_hips_guard_off_means_no_trials(self):
        outcome = self.without_topology(2, "behave", "repeat", "10", "40", HIPS_GUARD="off")
        self.assert_ok(outcome)
        self.assertEqual(outcome.report(), ((40, 3200), {}))
        self.assertIn("hips report: guard off: HIPS_GUARD=off\n", outcome.err)

    def test_a_table_replaces_the_trials_of_the_next_run(self):
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "table")
            first = self.without_topology(3, "behave", "repeat", "1100000", "20", HIPS_GUARD_TABLE=table, **self.slow_hips())
            self.assert_ok(first)
            self.assertEqual(os.listdir(folder), ["table"])
            with open(table) as file:
                lines = [line for line in file if not line.startswith("#")]
            self.assertEqual(len(lines), 1, lines)
            self.assertRegex(lines[0], rf"hosts=1x3 transport=tcp mpi={NATIVE.replace(' ', '_')}_\S+ op=sum bytes=8388608-16777215 "
                                       r"winner=host hips_ns=\d+ host_ns=\d+")
            for level in ("off", "run"):
                second = self.without_topology(3, "behave", "repeat", "1100000", "20", HIPS_GUARD_TABLE=table,
                                      HIPS_REPRODUCIBLE=level, **self.slow_hips())
                self.assert_ok(second)
                self.assertEqual(second.report(), ((0, 0), {"faster in the trials": 20}), second.text())
                self.assertEqual(self.decisions(second), self.decisions(first))
            # Another number of ranks is another scope.
            third = self.without_topology(2, "behave", "repeat", "1100000", "20", HIPS_GUARD_TABLE=table, **self.slow_hips())
            self.assert_ok(third)
            self.assertEqual(third.report()[1]["trial of native MPI by the guard"], 9)
            with open(table) as file:
                self.assertEqual(sum(not line.startswith("#") for line in file), 2)

    def test_a_damaged_table_gives_one_warning_and_stays_unchanged(self):
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "table")
            with open(table, "w") as file:
                file.write("# HiPS guard table 1\nhosts=1x2 transport=memory\n")
            outcome = mpirun(2, args.hips, "run", PROGRAMS["behave"], "repeat", "10", "40", HIPS_GUARD_TABLE=table)
            self.assert_ok(outcome)
            lines = outcome.lines_of_hips()
            self.assertEqual(len(lines), 1, outcome.text())
            for word in (table, "line 2", "mpi=", "delete it", "HIPS_GUARD_TABLE"):
                self.assertIn(word, lines[0])
            with open(table) as file:
                self.assertEqual(file.read(), "# HiPS guard table 1\nhosts=1x2 transport=memory\n")

    def test_ranks_with_different_settings_are_refused(self):
        outcome = mpirun(3, "sh", "-c", f"test ${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} = 1 && export HIPS_GUARD=off; "
                         f"exec {args.hips} run {PROGRAMS['behave']} repeat 10 1")
        self.assertNotEqual(outcome.code, 0)
        self.assertEqual(len(outcome.lines_of_hips()), 3, outcome.text())
        for line in outcome.lines_of_hips():
            self.assertIn("disagree on the guard", line)
            self.assertIn("rank 1 has \"off: HIPS_GUARD=off\"", line)

    def check_mismatch(self, what, num_errors, *words):
        outcome = mpirun(3, args.hips, "run", PROGRAMS["behave"], "mismatch", what)
        self.assertNotEqual(outcome.code, 0, outcome.text())
        errors = outcome.lines_of_hips()
        self.assertEqual(len(errors), num_errors, outcome.text())
        for line in errors:
            for word in words:
                self.assertIn(word, line)

    def test_a_trial_finds_different_arguments_before_native_mpi_hangs(self):
        self.check_mismatch("count", 3, "rank 2 has \"count 8 of int32, sum\"", "count 16 of int32, sum")
        self.check_mismatch("op", 3, "rank 2 has \"count 16 of int32, max\"", "count 16 of int32, sum")
        self.check_mismatch("type", 3, "rank 2 has \"count 16 of float32, sum\"", "count 16 of int32, sum")
        self.check_mismatch("other-op", 3, "rank 2 has \"count 16 of 4 bytes, user op\"", "count 16 of int32, sum")
        self.check_mismatch("pair", 3, "rank 2 has \"count 8 of 8 bytes, user op\"", "count 16 of int32, sum")

    def test_a_mismatch_in_a_trial_gives_an_error_code_with_a_text(self):
        outcome = mpirun(2, args.hips, "run", PROGRAMS["behave"], "errors-return")
        self.assertEqual(outcome.code, 0, outcome.text())

    def test_a_trial_finds_calls_that_hips_does_not_support(self):
        self.check_mismatch("zero", 2, "rank 2", "MPI_Allreduce without data")
        self.check_mismatch("other-type", 2, "rank 2", "MPI_Allreduce of a type that HiPS does not have")

    def test_a_trial_finds_a_rank_that_has_delegated_its_call(self):
        # Native MPI wins the class of the first calls; then rank 2 alone makes one more of them.
        outcome = mpirun(3, args.hips, "run", PROGRAMS["behave"], "mismatch-after", "1100000", "20",
                         **self.slow_hips())
        self.assertNotEqual(outcome.code, 0, outcome.text())
        errors = outcome.lines_of_hips()
        self.assertEqual(len(errors), 2, outcome.text())
        for line in errors:
            self.assertIn("rank 2", line)
            self.assertIn("a collective of a kind and size that native MPI executes", line)


class Reproducible(Case):
    """HIPS_REPRODUCIBLE: which runs give the same bits."""

    def bits(self, ranks, seed, options=(), **more):
        outcome = mpirun(ranks, args.hips, "run", *options, PROGRAMS["behave"], "reduction-order", "50000", str(seed), **more)
        self.assert_ok(outcome)
        return re.search(r"^bits (\w+)$", outcome.out, re.MULTILINE).group(1)

    def test_any_gives_the_same_bits_on_every_topology_and_backend(self):
        choose = seeded()
        for ranks, topologies in ((4, ["bcube:2,1", "torus:2x2", "switch:2/2"]), (9, ["bcube:3,1", "rail:9,2"])):
            if ranks not in possible(ranks):
                continue
            seed = choose.randrange(1 << 30)
            memory = self.bits(ranks, seed, HIPS_REPRODUCIBLE="any")
            for topology in topologies:
                for more in ({}, {"HIPS_SEGMENT_BYTES": "64", "HIPS_STAGING_BYTES": "64K"}):
                    with self.subTest(ranks=ranks, topology=topology, more=more):
                        self.assertEqual(
                            self.bits(ranks, seed, ["-t", topology], HIPS_REPRODUCIBLE="any", **more), memory)

    def test_run_gives_the_same_bits_in_every_run(self):
        seed = seeded().randrange(1 << 30)
        for more in ({}, {"HIPS_TRANSPORT": "shm"}):
            runs = {self.bits(3, seed, HIPS_REPRODUCIBLE="run", **more) for _ in range(4)}
            self.assertEqual(len(runs), 1)

    def test_reproducible_runs_delegate_no_call_that_hips_supports(self):
        for level in ("run", "any"):
            outcome = mpirun(2, args.hips, "run", "--report", PROGRAMS["behave"], "repeat", "10", "40",
                             HIPS_REPRODUCIBLE=level)
            self.assert_ok(outcome)
            self.assertEqual(outcome.report(), ((40, 3200), {}))
            self.assertIn(f"HIPS_REPRODUCIBLE={level}", outcome.err)


unittest.main(argv=[__file__, *rest], verbosity=2)
