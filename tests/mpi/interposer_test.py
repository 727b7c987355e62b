"""Ordinary MPI programs with and without the interposer, under mpirun and `hips run`."""

import os
import subprocess
import tempfile
import unittest

from harness import (FULL, LAUNCHER, LIBRARY, MPICH, NATIVE, PROGRAMS, TOPOLOGIES, Case, args, left_in_dev_shm, mpirun,
                     possible, rest, run, seeded, under_hips)

ALGORITHMS = ["hips", "flat-ps", "flat-mesh", "flat-ring", "recursive-doubling", "halving-doubling"]


class ExactResults(Case):
    def test_native_mpi_alone_is_exact(self):
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                outcome = mpirun(ranks, PROGRAMS["exact"])
                self.assert_exact(outcome)
                self.assertEqual(outcome.lines_of_hips(), [])

    def test_hips_is_exact_at_every_number_of_ranks_and_reports_every_call(self):
        for ranks in TOPOLOGIES:
            with self.subTest(ranks=ranks):
                outcome = under_hips(ranks, "exact", "bits", options=["--report"])
                self.assert_exact(outcome)
                self.assert_reported_as_expected(outcome)
                self.assertRegex(outcome.err, r"MPI_COMM_WORLD, \d+ ranks: .* emulated")

    def test_hips_is_exact_without_a_report(self):
        # Calls then skip the counting.
        outcome = under_hips(4, "exact", "bits")
        self.assert_exact(outcome)
        self.assertEqual(outcome.lines_of_hips(), [])

    def test_a_job_that_is_delegated_to_native_mpi_gives_one_warning(self):
        # Its smaller communicators would be delegated without a warning.
        with tempfile.TemporaryDirectory() as folder:
            plan = os.path.join(folder, "four.json")
            with open(plan, "w", encoding="ascii") as file:
                subprocess.run([args.hips, "plan", "-t", "switch:4", "--all", "--json"], stdout=file, timeout=240, check=True)
            outcome = mpirun(3, args.hips, "run", PROGRAMS["exact"], HIPS_PLAN_FILE=plan)
            self.assert_exact(outcome)
            self.assertEqual(outcome.lines_of_hips(), ["hips[0] warn mpi: native MPI executes calls of MPI_COMM_WORLD of 3 "
                                                       f"ranks: {plan} is a plan for 4 ranks, and the communicator has 3"])

    def test_several_ranks_on_each_server_are_exact(self):
        ranks, topology = (4, "switch:2") if MPICH else (8, "bcube:2,1")
        outcome = under_hips(ranks, "exact", options=["--report"], topology=topology)
        self.assert_exact(outcome)
        self.assert_reported_as_expected(outcome)

    def test_every_algorithm_is_exact(self):
        # HiPS itself runs above at all numbers of ranks. Here each number gets one other algorithm, and all are tested.
        flat = ALGORITHMS[1:]
        seeded().shuffle(flat)
        pairs = [(ranks, flat[i % len(flat)]) for i, ranks in enumerate(TOPOLOGIES)]
        if FULL:
            pairs = [(ranks, algorithm) for ranks in TOPOLOGIES for algorithm in flat]
        for ranks, algorithm in pairs:
            with self.subTest(ranks=ranks, algorithm=algorithm):
                outcome = under_hips(ranks, "exact", "bits", options=["--algorithm", algorithm, "--report"])
                self.assert_exact(outcome)
                self.assert_reported_as_expected(outcome)
                self.assertRegex(outcome.err, f"(?i)MPI_COMM_WORLD, {ranks} ranks: .*{algorithm.replace('-', '[- ]')}",
                                 "another algorithm ran")

    def test_every_pattern_is_exact(self):
        for pattern in ("ring", "mesh,ring", "ps:1", "mesh/ring,ring/mesh"):
            with self.subTest(pattern=pattern):
                outcome = under_hips(4, "exact", "bits", options=["--pattern", pattern, "--report"])
                self.assert_exact(outcome)
                self.assert_reported_as_expected(outcome)

    def test_nothing_is_printed_without_a_report(self):
        outcome = under_hips(4, "exact")
        self.assert_exact(outcome)
        self.assertEqual(outcome.err, "")

    def test_no_topology_is_needed(self):
        outcome = mpirun(3, args.hips, "run", "--report", PROGRAMS["exact"], HIPS_GUARD="off")
        self.assert_exact(outcome)
        self.assert_reported_as_expected(outcome)


class Fortran(Case):
    def check(self, program):
        self.assert_exact(mpirun(3, PROGRAMS[program]))
        for ranks in possible(2, 4, 9):
            with self.subTest(ranks=ranks):
                outcome = under_hips(ranks, program, options=["--report"])
                self.assert_exact(outcome)
                # Each call is counted once, and MPI_IN_PLACE is recognised.
                self.assert_reported_as_expected(outcome)

    def test_programs_with_mpif_h_are_exact(self):
        self.check("fortran_mpifh")

    def test_programs_with_the_module_mpi_are_exact(self):
        self.check("fortran_mpi")

    def test_programs_with_the_module_mpi_f08_are_exact(self):
        self.check("fortran_mpi_f08")


class Behaviour(Case):
    def test_an_outstanding_large_message_arrives_while_its_sender_waits(self):
        self.assert_ok(under_hips(3, "behave", "outstanding-large-message"))
        if MPICH:
            return
        # Without single copies from the sender's memory the sender itself has to make progress.
        self.assert_ok(
            under_hips(3, "behave", "outstanding-large-message", OMPI_MCA_btl_vader_single_copy_mechanism="none",
                       OMPI_MCA_btl="self,vader")
        )

    def test_windows_are_served_while_their_ranks_wait(self):
        if MPICH and mpirun(3, PROGRAMS["behave"], "windows").code != 0:
            self.skipTest("this MPICH loses additions to windows natively, too")
        self.assert_ok(under_hips(3, "behave", "windows"))

    def test_some_ranks_may_use_memory_of_mpi_alloc_mem(self):
        self.assert_ok(mpirun(3, PROGRAMS["behave"], "allocated-memory"))
        for ranks in possible(2, 3, 4):
            with self.subTest(ranks=ranks):
                # Without a plan, so that the ranks share memory.
                self.assert_ok(mpirun(ranks, args.hips, "run", PROGRAMS["behave"], "allocated-memory", HIPS_GUARD="off"))
        self.assert_ok(under_hips(4, "behave", "allocated-memory"))

    def test_memory_that_no_collective_uses_is_left_to_native_mpi(self):
        self.assert_ok(mpirun(2, args.hips, "run", PROGRAMS["behave"], "unused-memory", HIPS_GUARD="off", HIPS_ADOPT="always"))

    def test_threads_may_use_communicators_of_their_own(self):
        self.assert_ok(under_hips(3, "behave", "threads"))

    def test_children_do_not_load_the_interposer(self):
        self.assert_ok(under_hips(2, "behave", "children"))

    def test_spawned_processes_are_not_under_hips(self):
        if MPICH:
            self.skipTest("MPICH spawns none for programs that another program starts")
        self.assert_exact(mpirun(2, PROGRAMS["spawn"]))
        outcome = mpirun(2, args.hips, "run", "--report", PROGRAMS["spawn"], HIPS_GUARD="off")
        self.assert_exact(outcome)
        self.assert_reported_as_expected(outcome)

    def test_native_mpi_reports_a_null_communicator(self):
        self.assert_ok(under_hips(2, "behave", "null-communicator"))

    def test_a_fast_rank_may_leave_early(self):
        self.assert_ok(under_hips(4, "behave", "leave-early"))

    def test_finalize_may_come_from_an_exit_handler(self):
        outcome = under_hips(2, "behave", "finalize-at-exit", options=["--report"])
        self.assert_ok(outcome)
        self.assertEqual(outcome.report()[0][0], 1)

    def test_the_exit_status_is_that_of_the_program(self):
        self.assertEqual(under_hips(2, "behave", "exit-status").code, 7)

    def test_errors_return_gives_an_error_code_with_a_text(self):
        outcome = under_hips(2, "behave", "errors-return")
        self.assertEqual(outcome.code, 0, outcome.text())

    def test_a_shell_passes_the_interposer_on(self):
        outcome = mpirun(2, args.hips, "run", "-t", "switch:2", "--report", "sh", "-c",
                         f"ls / > /dev/null; {PROGRAMS['exact']}")
        self.assert_exact(outcome)
        self.assert_reported_as_expected(outcome)


class LoadedLater(Case):
    """A program without MPI loads a module with MPI at local scope, as Python does."""

    def check(self, module, ranks=4):
        outcome = mpirun(ranks, args.hips, "run", "-t", TOPOLOGIES[ranks], "--report", PROGRAMS["loader"],
                         PROGRAMS[module])
        self.assert_exact(outcome)
        self.assert_reported_as_expected(outcome)

    def test_a_module_of_c_is_exact(self):
        self.check("module_c.so")

    def test_a_module_of_fortran_has_its_own_address_of_mpi_in_place(self):
        if "module_fortran.so" not in PROGRAMS:
            self.skipTest("no Fortran compiler of this MPI")
        self.check("module_fortran.so")


class Mismatch(Case):
    """Ranks that disagree, or die: each rank gets an error within seconds, and nothing is left behind."""

    def check(self, what, num_errors, *words, ranks=3):
        before = left_in_dev_shm()
        outcome = under_hips(ranks, "behave", "mismatch", what)
        self.assertNotEqual(outcome.code, 0, outcome.text())
        errors = outcome.lines_of_hips()
        self.assertEqual(len(errors), num_errors, outcome.text())
        for line in errors:
            for word in words:
                self.assertIn(word, line)
        self.assertEqual(left_in_dev_shm(), before)

    def test_ranks_with_different_counts_get_an_error(self):
        self.check("count", 3, "rank 2", "count 8", "count 16")

    def test_ranks_with_different_ops_get_an_error(self):
        self.check("op", 3, "rank 2", "max", "sum")

    def test_ranks_with_different_types_get_an_error(self):
        self.check("type", 3, "rank 2", "float32", "int32")

    # The mismatching rank itself waits in native MPI until the others end the job.

    def test_the_others_get_an_error_where_one_rank_passes_count_0(self):
        self.check("zero", 2, "rank 2", "MPI_Allreduce without data")

    def test_a_function_of_the_program_differs_from_an_op_of_mpi(self):
        self.check("other-op", 3, "rank 2", "user op", "sum")

    def test_a_pair_differs_from_an_integer(self):
        self.check("pair", 3, "rank 2", "8 bytes", "int32")

    def test_the_others_get_an_error_where_one_rank_passes_an_unsupported_type(self):
        self.check("other-type", 2, "rank 2", "MPI_Allreduce of a type that HiPS does not have")

    def test_the_job_ends_when_a_rank_dies(self):
        before = left_in_dev_shm()
        outcome = under_hips(4, "behave", "killed-at", "1", "20000")
        self.assertNotEqual(outcome.code, 0, outcome.text())
        self.assertNotIn("wrong sum", outcome.err)
        self.assertNotIn("nobody died", outcome.err)
        self.assertEqual(left_in_dev_shm(), before)

    @unittest.skipIf(MPICH, "mpiexec.hydra ends the others, with -disable-auto-cleanup too")
    def test_the_others_name_a_rank_that_dies(self):
        choose = seeded()
        for trial in range(50 if FULL else 3):
            ranks = choose.choice((2, 3, 4))
            victim = choose.randrange(ranks)
            delay_us = choose.randrange(1, 300000)
            with self.subTest(trial=trial, ranks=ranks, victim=victim, delay_us=delay_us):
                before = left_in_dev_shm()
                # Without recovery mpirun ends the survivors at once, before they print anything. With it, mpirun's
                # own exit status is 0.
                outcome = mpirun(ranks, "--enable-recovery", args.hips, "run", "-t", TOPOLOGIES[ranks],
                                 PROGRAMS["behave"], "killed-at", str(victim), str(delay_us))
                errors = outcome.lines_of_hips()
                self.assertEqual(len(errors), ranks - 1, outcome.text())
                for line in errors:
                    self.assertIn(f"rank {victim} ", line)
                self.assertNotIn("wrong sum", outcome.err)
                self.assertEqual(left_in_dev_shm(), before)


class WrongTopology(Case):
    """`hips run` refuses a wrong topology; a library that was preloaded by hand reports it at the first call."""

    def preloaded(self, ranks, **more):
        return mpirun(ranks, "env", f"LD_PRELOAD={LIBRARY}", *[f"{k}={v}" for k, v in more.items()],
                      PROGRAMS["exact"])

    def test_a_world_of_another_size_is_an_error(self):
        outcome = self.preloaded(3, HIPS_TOPO="bcube:2,1")
        self.assertNotEqual(outcome.code, 0)
        errors = outcome.lines_of_hips()
        self.assertEqual(len(errors), 3, outcome.text())
        for line in errors:
            self.assertIn("bcube:2,1 has 4 ranks, but MPI_COMM_WORLD has 3", line)

    def test_a_malformed_spec_is_an_error(self):
        outcome = self.preloaded(2, HIPS_TOPO="bcube:2")
        self.assertNotEqual(outcome.code, 0)
        errors = outcome.lines_of_hips()
        self.assertEqual(len(errors), 2, outcome.text())
        for line in errors:
            self.assertIn("bcube:2", line)


class Refusals(Case):
    """One rank prints one line that says what to type instead."""

    def check(self, outcome, *words):
        self.assertEqual(outcome.code, 2, outcome.text())
        lines = outcome.lines_of_hips()
        self.assertEqual(len(lines), 1, outcome.text())
        for word in words:
            self.assertIn(word, lines[0])

    def test_a_job_without_a_launcher_is_refused(self):
        self.check(run([args.hips, "run", "-t", "bcube:3,1", PROGRAMS["exact"]]), f"{LAUNCHER} -n 9 hips run -t bcube:3,1")

    def test_another_number_of_ranks_is_refused(self):
        self.check(under_hips(4, "exact", topology="bcube:3,1"), "9 ranks", "4 were started", f"{LAUNCHER} -n 9")

    def test_a_missing_program_is_refused(self):
        self.check(mpirun(4, args.hips, "run", "-t", "bcube:2,1", "/nonexistent/app"), "/nonexistent/app")

    def test_a_program_that_is_not_executable_is_refused(self):
        self.check(mpirun(2, args.hips, "run", "-t", "switch:2", __file__), "not executable")

    def test_an_unknown_option_is_refused(self):
        self.check(run([args.hips, "run", "--toplogy", "switch:2", "true"]), "--toplogy")

    def test_an_unknown_algorithm_is_refused(self):
        self.check(under_hips(2, "exact", options=["--algorithm", "fastest"]), "fastest")

    def test_srun_without_pmix_is_refused(self):
        self.check(
            run([args.hips, "run", "-t", "bcube:3,1", PROGRAMS["exact"]], SLURM_STEP_ID="0", SLURM_PROCID="0",
                SLURM_NTASKS="9"),
            "mpiexec.hydra -n 9" if MPICH else "srun --mpi=pmix -n 9",
        )

    def test_the_other_ranks_of_srun_print_nothing(self):
        outcome = run([args.hips, "run", "-t", "bcube:3,1", PROGRAMS["exact"]], SLURM_STEP_ID="0", SLURM_PROCID="5",
                      SLURM_NTASKS="9")
        self.assertEqual((outcome.code, outcome.out, outcome.err), (2, "", ""))


class OtherMpi(Case):
    """Where the other MPI is installed, too; the build sets HIPS_TEST_OTHER_LAUNCHER and HIPS_TEST_OTHER_PROGRAM."""

    def check(self, outcome, type_this):
        self.assertEqual(outcome.code, 2, outcome.text())
        lines = outcome.lines_of_hips()
        self.assertEqual(len(lines), 1, outcome.text())
        self.assertIn("each rank would run alone", lines[0])
        self.assertIn(type_this, lines[0])

    def test_the_launcher_of_the_other_mpi_is_refused(self):
        launcher = os.environ.get("HIPS_TEST_OTHER_LAUNCHER")
        if not launcher:
            self.skipTest("no other launcher")
        outcome = run([launcher, "-n", "2", args.hips, "run", "-t", "switch:2", PROGRAMS["exact"]])
        self.check(outcome, f"{'mpiexec.hydra' if MPICH else 'mpirun.openmpi'} -n 2 hips run -t switch:2")

    def test_a_program_of_the_other_mpi_is_refused(self):
        program = os.environ.get("HIPS_TEST_OTHER_PROGRAM")
        if not program:
            self.skipTest("no compiler of the other MPI")
        outcome = mpirun(2, args.hips, "run", "-t", "switch:2", program)
        self.check(outcome, f"{'mpirun.openmpi' if MPICH else 'mpiexec.hydra'} -n 2 hips run -t switch:2")

    def test_the_report_names_native_mpi(self):
        for options in ([], ["--mpi", args.mpi], ["--mpi", "auto"]):
            outcome = under_hips(2, "exact", options=["--report", *options])
            self.assert_exact(outcome)
            self.assertRegex(outcome.err, rf"(?m)^hips report: rank 0 of 2, native MPI {NATIVE} \S+$")

    def test_a_script_gets_the_interposer_of_its_launcher(self):
        outcome = mpirun(2, args.hips, "run", "-t", "switch:2", "--report", "sh", "-c", f"{PROGRAMS['exact']}")
        self.assert_reported_as_expected(outcome)


unittest.main(argv=[__file__, *rest], verbosity=2)
