"""hips doctor alone, as ranks, and under mpirun. Missing ranks are named, and nothing hangs."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import ranks  # noqa: E402

HIPS = os.path.abspath(sys.argv.pop(1))
MPIRUN = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None


def run(*arguments, **extra):
    return subprocess.run([HIPS, "doctor", *arguments], env=ranks.environment(**extra), text=True,
                          capture_output=True, timeout=240, check=False)


class Alone(unittest.TestCase):
    def test_one_node_is_checked_and_every_warning_has_its_fix(self):
        done = run("--json")
        told = json.loads(done.stdout)
        self.assertEqual(len(told["ranks"]), 1)
        for finding in told["findings"]:
            self.assertIn(finding["level"], ("ok", "note", "warning", "error"))
            if finding["level"] in ("warning", "error"):
                self.assertTrue(finding["fix"], finding)
        errors = [finding for finding in told["findings"] if finding["level"] == "error"]
        self.assertEqual(done.returncode, 1 if errors else 0, done.stdout)
        text = run().stdout
        for section in ("RDMA devices\n", "Limits\n", "Transports\n", "Findings\n"):
            self.assertIn("\n" + section, text)

    def test_an_invalid_variable_is_an_error_and_wrong_usage_exits_with_2(self):
        done = run(HIPS_IB_GID_INDEX="many")
        self.assertEqual(done.returncode, 1)
        self.assertIn("error    environment: HIPS_IB_GID_INDEX=\"many\" is wrong", done.stdout)
        self.assertIn("fix: unset HIPS_IB_GID_INDEX", done.stdout)
        self.assertEqual(run("--no-such-option").returncode, 2)
        self.assertEqual(run(HIPS_RANK="1").returncode, 2)


class Ranks(unittest.TestCase):
    def test_ranks_of_one_node_reach_each_other_by_shared_memory(self):
        done = ranks.run_ranks(3, [HIPS, "doctor", "--json"])
        self.assertEqual([one.returncode for one in done], [0, 0, 0], [one.stderr for one in done])
        self.assertEqual([one.stdout for one in done[1:]], ["", ""])
        told = json.loads(done[0].stdout)
        self.assertEqual(len(told["ranks"]), 3)
        self.assertEqual({(way["from"], way["to"]) for way in told["reach"]},
                         {(a, b) for a in range(3) for b in range(3) if a != b})
        for way in told["reach"]:
            self.assertEqual((way["over"], way["ok"]), ("shm", True))
            self.assertGreater(way["round_trip_us"], 0)

    def test_a_missing_rank_is_named(self):
        root = f"127.0.0.1:{ranks.free_port()}"
        with subprocess.Popen([HIPS, "doctor"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=ranks.environment(HIPS_RANK="0", HIPS_SIZE="3", HIPS_ROOT=root,
                                                    HIPS_TIMEOUT="2")) as first:
            second = run(HIPS_RANK="1", HIPS_SIZE="3", HIPS_ROOT=root, HIPS_TIMEOUT="2")
            out, err = first.communicate(timeout=240)
        self.assertEqual((first.returncode, second.returncode, second.stdout), (1, 1, ""), err + second.stderr)
        self.assertIn("error    meeting: rank 2 of 3 did not connect", out)
        # Rank 0 still reports on its own node.
        self.assertIn("\nLimits\n", out)

    def test_a_rank_reports_that_it_cannot_reach_rank_0(self):
        done = run(HIPS_RANK="1", HIPS_SIZE="2", HIPS_ROOT=f"127.0.0.1:{ranks.free_port()}", HIPS_TIMEOUT="1")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Ahips: doctor: rank 1 on \S+: rank 1 could not reach rank 0 [^\n]*\n\Z")

    def test_the_mismatching_rank_is_named(self):
        root = f"127.0.0.1:{ranks.free_port()}"
        started = [subprocess.Popen([HIPS, "doctor"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    env=ranks.environment(HIPS_RANK=str(rank), HIPS_SIZE="3", HIPS_ROOT=root,
                                                          HIPS_TOPO="torus:3" if rank == 1 else "bcube:3,0"))
                   for rank in range(3)]
        out = [one.communicate(timeout=240)[0] for one in started]
        self.assertRegex(out[0], r"error    rank 1 on \S+: HIPS_TOPO: torus:3, but 2 of 3 ranks have bcube:3,0\n"
                                 r" +fix: mpirun -x HIPS_TOPO=bcube:3,0")
        self.assertEqual([one.returncode for one in started], [1, 0, 0])

    def test_a_rank_without_the_topology_file_is_named(self):
        root = f"127.0.0.1:{ranks.free_port()}"
        with tempfile.TemporaryDirectory() as has, tempfile.TemporaryDirectory() as empty:
            with open(os.path.join(has, "two.yaml"), "w", encoding="utf-8") as file:
                file.write("hips-topology: 1\nshape: switch:3\n")
            started = [subprocess.Popen([HIPS, "doctor"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        cwd=empty if rank == 2 else has,
                                        env=ranks.environment(HIPS_RANK=str(rank), HIPS_SIZE="3", HIPS_ROOT=root,
                                                              HIPS_TOPO="two.yaml"))
                       for rank in range(3)]
            out = [one.communicate(timeout=240)[0] for one in started]
        self.assertRegex(out[0], r"error    rank 2 on \S+: HIPS_TOPO: two.yaml \(.*two.yaml.*\), "
                                 r"but 2 of 3 ranks have two.yaml \(switch:3\)\n")
        self.assertRegex(out[0], r"fix: copy the common file to two.yaml on ")
        self.assertEqual([one.returncode for one in started], [1, 0, 0])


class Mpirun(unittest.TestCase):
    @unittest.skipUnless(MPIRUN, "needs mpirun and a build with PMIx")
    def test_ranks_of_mpirun_find_each_other_without_a_root(self):
        done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "3", HIPS, "doctor", "--json"], text=True,
                              env=ranks.environment(), capture_output=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual(len(told["ranks"]), 3)
        self.assertEqual(sum(way["ok"] for way in told["reach"]), 6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
