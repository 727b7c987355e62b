"""Non-blocking and persistent calls of ordinary MPI programs give the same results with and without the interposer."""

import os
import re
import unittest

from harness import (FULL, LIBRARY, LIBRARY_NAME, MPICH, NATIVE, PROGRAMS, TOPOLOGIES, Case, args, mpirun, rest, run,
                     seeded, under_hips)


def in_memory(ranks, program, *arguments, **more):
    """Without a plan: ranks of one node reduce in shared memory, without trials."""
    return mpirun(ranks, args.hips, "run", "--report", PROGRAMS[program], *arguments, HIPS_GUARD="off", **more)


def kinds(outcome):
    """Non-blocking calls and starts that HiPS took."""
    found = re.search(r"of these (\d+) non-blocking, (\d+) of persistent requests", outcome.err)
    return tuple(map(int, found.groups())) if found else (0, 0)


class Requests(Case):
    # Each case with the non-blocking calls and the starts of a rank that HiPS takes. They share one launch, since
    # launching takes most of the time; the last one changes the error handler.
    CASES = {"first-calls": (0, 0), "receive-meanwhile": (20, 0), "large-message": (1, 0), "communicator-freed": (5, 5),
            # In MPICH programs HiPS has a progress thread.
            "special-calls": (2, 0) if MPICH else (4, 0),
            "all-forms": (25, 0), "never-freed": (0, 1), "many": (1000, 0), "misuse": (1, 1)}

    def check(self, *cases, taken, on_native=True):
        if on_native:
            self.assert_ok(mpirun(3, PROGRAMS["requests"], *cases))
        for outcome in (under_hips(3, "requests", *cases, options=["--report"]), in_memory(3, "requests", *cases)):
            self.assert_ok(outcome)
            self.assertEqual(kinds(outcome), taken, outcome.text())

    def test_whatever_mpi_allows_works(self):
        self.check(*self.CASES, taken=tuple(map(sum, zip(*self.CASES.values()))), on_native=not MPICH)
        if MPICH:
            # MPICH 4.0 cancels collectives.
            self.assert_ok(mpirun(3, PROGRAMS["requests"], *(case for case in self.CASES if case != "misuse")))

    def test_a_progress_thread_calls_no_functions_for_a_program_of_one_thread(self):
        # Of special-calls, the function of the program and the pairs, which native MPI's function reduces.
        functions = {"MPI_Iallreduce: op a user's op": 1, "MPI_Iallreduce: op MPI_MINLOC": 1}
        others = {"MPI_Iallreduce: no data": 1,
                  "MPI_Iallreduce before the first blocking collective of its communicator": 1}
        for thread, taken, delegated in (("on", 2, {**others, **functions}), ("off", 4, others)):
            with self.subTest(thread=thread):
                outcome = under_hips(3, "requests", "special-calls", options=["--report"], HIPS_PROGRESS_THREAD=thread)
                self.assert_ok(outcome)
                self.assertEqual((kinds(outcome), outcome.report()[1]), ((taken, 0), delegated), outcome.text())

    def test_types_and_communicators_may_be_freed_while_calls_are_outstanding(self):
        # Open MPI 4.1 frees a communicator that its own calls still need.
        self.check("all-freed", taken=(25, 0), on_native=False)

    def test_a_thousand_outstanding_calls_do_not_slow_each_other_down(self):
        outcome = under_hips(4, "requests", "thousand-outstanding")
        self.assert_ok(outcome)

    def test_threads_may_wait_for_calls_and_messages(self):
        self.check("threads", taken=(1200, 0))

    # Kinds and sizes of the calls of one_of_each() on two ranks.
    OTHERS = {"bcast": "8192-16383", "reduce": "8192-16383", "allgather": "8192-16383",
              "reduce_scatter": "16384-32767", "barrier": "1-1"}

    def test_tuning_decisions_hold_for_requests_too(self):
        # Native MPI executes the classes that it has won in earlier runs, HiPS the undecided ones.
        table = os.path.join(os.environ.get("MESON_BUILD_ROOT", "/tmp"), f"requests-guard-{os.getpid()}.table")
        self.addCleanup(lambda: os.path.exists(table) and os.remove(table))
        for table_exists in (False, True):
            outcome = mpirun(2, args.hips, "run", "--report", PROGRAMS["requests"], "receive-meanwhile", "all-forms",
                             HIPS_GUARD_TABLE=table)
            self.assert_ok(outcome)
            if table_exists:
                self.assertEqual(kinds(outcome), (0, 0), outcome.text())
                self.assertEqual(outcome.report()[1]["faster in the trials"], 45)
            else:
                self.assertEqual(kinds(outcome), (45, 0), outcome.text())
                native = re.search(rf"native MPI ({NATIVE} \S+)", outcome.err).group(1).rstrip("\n").replace(" ", "_")
                with open(table, "w", encoding="utf-8") as file:
                    file.write("# HiPS guard table 1\n")
                    for kind, sizes in {"sum": "2097152-4194303", **self.OTHERS}.items():
                        file.write(f"hosts=1x2 transport=memory mpi={native} op={kind} bytes={sizes} winner=host "
                                   "hips_ns=2000000 host_ns=1000000\n")


class RandomRequests(Case):
    """Random programs, many in one launch: native MPI and HiPS give the same results."""

    def test_every_completion_function_gives_the_same_results(self):
        choose = seeded()
        programs = 700 if FULL else 40
        # MPICH 4.0 takes an inactive persistent collective for an outstanding one.
        persistent = ["0"] if MPICH else []
        for ranks in (2, 3, 4):
            seed = str(choose.randrange(1 << 40))
            with self.subTest(ranks=ranks, seed=seed):
                native = mpirun(ranks, PROGRAMS["random_requests"], seed, str(programs), *persistent)
                self.assert_exact(native)
                plan = under_hips(ranks, "random_requests", seed, str(programs), *persistent, options=["--report"])
                memory = in_memory(ranks, "random_requests", seed, str(programs), *persistent)
                for outcome in (plan, memory):
                    self.assert_exact(outcome)
                    self.assertEqual(outcome.out, native.out, outcome.text())
                    nonblocking, starts = kinds(outcome)
                    self.assertGreater(nonblocking, programs, outcome.text())
                    self.assertGreaterEqual(starts, 0 if persistent else programs // 2, outcome.text())


class RequestErrors(Case):
    def test_ranks_that_disagree_get_an_error_from_the_completion_function(self):
        for completion in ("wait", "waitany", "waitall", "gather-wait", "gather-waitall"):
            for outcome in (under_hips(3, "requests", "mismatch", completion),
                            in_memory(3, "requests", "mismatch", completion)):
                with self.subTest(completion=completion):
                    self.assert_ok(outcome)
                    errors = [line for line in outcome.lines_of_hips() if " error " in line]
                    self.assertEqual(len(errors), 3, outcome.text())

    @unittest.skipIf(MPICH, "mpiexec.hydra ends the others, with -disable-auto-cleanup too")
    def test_ranks_that_wait_name_a_rank_that_dies(self):
        outcome = mpirun(3, "--enable-recovery", args.hips, "run", "-t", TOPOLOGIES[3], PROGRAMS["requests"], "killed")
        errors = outcome.lines_of_hips()
        self.assertEqual(len(errors), 2, outcome.text())
        for line in errors:
            self.assertIn("MPI_Iallreduce", line)
            self.assertIn("rank 1 ", line)


class RequestsOfFortran(Case):
    def test_the_three_bindings_of_fortran_are_exact(self):
        for program in ("fortran_requests_mpifh", "fortran_requests_mpi", "fortran_requests_mpi_f08"):
            with self.subTest(program=program):
                if program not in PROGRAMS:
                    self.skipTest("no Fortran compiler of this MPI")
                self.assert_exact(mpirun(3, PROGRAMS[program]))
                outcome = under_hips(3, program, options=["--report"])
                self.assert_exact(outcome)
                self.assert_reported_as_expected(outcome)
                self.assertEqual(kinds(outcome), (16, 8), outcome.text())


class RequestsOfOtherMpi(Case):
    """The interposer preloaded by hand into a program of the other MPI, whose handles have another size."""

    def test_the_program_is_unaffected_or_refused(self):
        launcher = os.environ.get("HIPS_TEST_OTHER_LAUNCHER")
        program = os.environ.get("HIPS_TEST_OTHER_REQUESTS")
        if not launcher or not program:
            self.skipTest("no other MPI")
        seed = str(seeded().randrange(1 << 40))
        # See RandomRequests.
        arguments = [seed, "40", "0"]
        expected = mpirun(2, PROGRAMS["random_requests"], *arguments)
        self.assert_exact(expected)
        for preload in ([], ["env", f"LD_PRELOAD={LIBRARY}"]):
            outcome = run([launcher, "-n", "2", *preload, program, *arguments], HIPS_MPI_REPORT="1")
            if preload and MPICH:
                # Handles of Open MPI do not fit into MPICH's 32 bits, so the program ends.
                self.assertNotEqual(outcome.code, 0, outcome.text())
                self.assertRegex(outcome.err, f"(?m)^hips: {LIBRARY_NAME} is for programs of MPICH.*--mpi openmpi")
                continue
            self.assert_exact(outcome)
            self.assertEqual(outcome.out, expected.out, outcome.text())
            self.assertEqual(outcome.lines_of_hips(), [])


unittest.main(argv=[__file__, *rest], verbosity=2)
