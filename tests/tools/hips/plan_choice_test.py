"""hips plan shows the plan that a call gets, whichever setting chooses it: plan_choice_test.py HIPS."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HIPS = sys.argv.pop()


def hips(*args, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HIPS_")}
    return subprocess.run([HIPS, *args], env={**clean, **environment}, capture_output=True, text=True, timeout=60,
                          check=False)


class PlanChoice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.stored = os.path.join(folder.name, "plan.json")
        with open(cls.stored, "w", encoding="utf-8") as file:
            file.write(hips("plan", "-t", "bcube:3,1", "-a", "flat-ring", "--all", "--json").stdout)

    def assert_refused(self, words, *args, **environment):
        done = hips("plan", *args, **environment)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn(words, done.stderr)

    def test_it_shows_the_plan_of_the_plan_file(self):
        done = hips("plan", "-t", "bcube:3,1", HIPS_PLAN_FILE=self.stored)
        self.assertEqual(done.stdout.splitlines()[0], "flat ring of 9 ranks over 2 of 2 NICs, neighbour cycles", done.stderr)
        self.assertIn(f"\nselected    flat-ring, for all sizes by HIPS_PLAN_FILE={self.stored}\n", done.stdout)
        done = hips("plan", "-t", "bcube:3,1", "--json", HIPS_PLAN_FILE=self.stored)
        self.assertEqual(json.loads(done.stdout)["notes"]["selected"], "flat-ring")

    def test_the_plan_file_names_its_topology(self):
        done = hips("plan", "--json", HIPS_PLAN_FILE=self.stored)
        self.assertEqual(json.loads(done.stdout)["notes"]["topology"], "bcube:3,1", done.stderr)

    def test_an_algorithm_of_the_command_line_overrides_the_plan_file(self):
        done = hips("plan", "-t", "bcube:3,1", "-a", "hips", HIPS_PLAN_FILE=self.stored)
        self.assertEqual(done.stdout.splitlines()[0], "HiPS, 2 lanes, mesh on both levels", done.stderr)

    def test_a_plan_file_that_a_job_rejects_is_rejected(self):
        self.assert_refused("is a plan for 9 ranks, but switch:4 has 4", "-t", "switch:4", HIPS_PLAN_FILE=self.stored)
        self.assert_refused("unset HIPS_ALGORITHM", "-t", "bcube:3,1", HIPS_PLAN_FILE=self.stored, HIPS_ALGORITHM="hips")
        self.assert_refused("unset HIPS_REPRODUCIBLE", "-t", "bcube:3,1", HIPS_PLAN_FILE=self.stored,
                            HIPS_REPRODUCIBLE="any")
        self.assert_refused("nowhere.json", "-t", "bcube:3,1", HIPS_PLAN_FILE="nowhere.json")
        with open(self.stored, encoding="utf-8") as file:
            plan = json.load(file)
        # Rank 0 no longer sends its last message.
        sends = [step for step in plan["programs"][0]["steps"] if step["op"] == "send"]
        plan["programs"][0]["steps"].remove(sends[-1])
        with tempfile.NamedTemporaryFile("w", suffix=".json") as edited:
            json.dump(plan, edited)
            edited.flush()
            self.assert_refused(edited.name, "-t", "bcube:3,1", HIPS_PLAN_FILE=edited.name)

    def test_it_shows_the_mesh_of_reproducible_any(self):
        done = hips("plan", "-t", "bcube:3,1", HIPS_REPRODUCIBLE="any")
        self.assertEqual(done.stdout.splitlines()[0], "flat mesh of 9 ranks", done.stderr)
        self.assertIn("\nselected    flat-mesh, for all sizes by HIPS_REPRODUCIBLE=any\n", done.stdout)
        for level in ("off", "run"):
            done = hips("plan", "-t", "bcube:3,1", "--bytes", "18K", HIPS_REPRODUCIBLE=level)
            self.assertEqual(done.stdout.splitlines()[0], "HiPS, 2 lanes, mesh on both levels", done.stderr)
        # An algorithm on the command line is shown; one beside it in the environment is an error in a job, too.
        done = hips("plan", "-t", "bcube:3,1", "-a", "hips", HIPS_REPRODUCIBLE="any")
        self.assertEqual(done.stdout.splitlines()[0], "HiPS, 2 lanes, mesh on both levels", done.stderr)
        self.assert_refused("unset HIPS_ALGORITHM, HIPS_PATTERN", "-t", "bcube:3,1", HIPS_REPRODUCIBLE="any", HIPS_PATTERN="mesh")


if __name__ == "__main__":
    unittest.main(verbosity=2)
