"""Whole ranks of tables keep the guarantees: on one machine, and in the namespaces of a lab: history_test.py HIPS HISTORY_RANKS KILLED_RANKS."""
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools", "lab"))
import lab  # noqa: E402
import ranks  # noqa: E402

KILLED = os.path.abspath(sys.argv.pop(3))
PROGRAM = os.path.abspath(sys.argv.pop(2))
HIPS = os.path.abspath(sys.argv.pop(1))
SEED = os.environ.get("HIPS_SEED") or str(random.SystemRandom().randrange(10**9))
KILLS = 100 if os.environ.get("HIPS_TEST_FULL") == "1" else 1 if os.environ.get("HIPS_TEST_SAMPLE") == "1" else 4
RUNS = 1000 if os.environ.get("HIPS_TEST_FULL") == "1" else 10 if os.environ.get("HIPS_TEST_SAMPLE") == "1" else 60


class Histories(unittest.TestCase):
    def test_on_one_machine(self):
        print(f"HIPS_SEED={SEED}")
        for num, environment in ((3, {}), (4, {"HIPS_TOPO": "switch:2/2"}), (4, {"HIPS_TOPO": "switch:4", "HIPS_TRANSPORT": "tcp"})):
            with self.subTest(environment):
                done = ranks.run_ranks(num, [PROGRAM, SEED, str(RUNS)], timeout=900, **environment)
                self.assertEqual([rank.returncode for rank in done], [0] * num, (SEED, done))
                self.assertEqual(done[0].stdout, f"{RUNS} runs kept the guarantees\n")

    def test_in_namespaces(self):
        try:
            lab.skip_unless_possible("namespaces")
        except SystemExit:
            self.skipTest("this machine has no namespaces for us")
        for topology, options in (("switch:4", []), ("rail:2,2/2", ["--rate", "100mbit"])):
            with self.subTest(topology):
                done = lab.run(HIPS, "--namespaces", "-q", "-t", topology, *options, "--", PROGRAM, SEED, str(RUNS), timeout=900)
                self.assertEqual(done.returncode, 0, (SEED, done.stdout + done.stderr))
                self.assertEqual(done.stdout, f"{RUNS} runs kept the guarantees\n")

    def test_ranks_that_die_in_namespaces_are_named_and_the_others_go_on(self):
        try:
            lab.skip_unless_possible("namespaces")
        except SystemExit:
            self.skipTest("this machine has no namespaces for us")
        for i in range(KILLS):
            seed = str(int(SEED) + i)
            with self.subTest(seed):
                done = lab.run(HIPS, "--namespaces", "-q", "-t", ("switch:4", "rail:2,2/2")[i % 2], "--", KILLED, seed, timeout=300)
                self.assertEqual(done.stdout, "this rank is left\n", done.stderr)
                self.assertEqual(done.stderr.count("was killed by signal 9"), 3, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 3, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["-v"] + sys.argv[1:])
