"""hips info select as users meet it.

usage: info_command_test.py <hips>
"""
import json
import os
import re
import subprocess
import sys
import unittest

HIPS = sys.argv.pop(1)


def hips(*args, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HIPS_")}
    return subprocess.run([HIPS, *args], env={**clean, **environment}, capture_output=True, text=True, timeout=60,
                          check=False)


class InfoSelect(unittest.TestCase):
    def test_shows_the_plan_of_each_size_and_what_each_candidate_would_take(self):
        done = hips("info", "select", "-t", "switch:4")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = re.search(r"^ +size  plan +(.*)$", done.stdout, re.MULTILINE).group(1)
        self.assertEqual(re.split(r" {2,}", names), ["hips (us)", "hips, rings (us)", "recursive-doubling (us)"])
        rows = re.findall(r"^ +(\d+ \w+)  (\S.*?)  +([\d.]+) +([\d.]+) +([\d.]+)$", done.stdout, re.MULTILINE)
        self.assertEqual(rows[0][:2], ("4 B", "recursive-doubling"))
        self.assertEqual(rows[-1][:2], ("1 GiB", "hips, rings"))
        for size, plan, *times in rows:
            times = dict(zip(("hips", "hips, rings", "recursive-doubling"), map(float, times)))
            self.assertEqual(times[plan], min(times.values()), size)

    def test_says_why_a_candidate_is_not_taken(self):
        done = hips("info", "select", HIPS_TOPO="bcube:3,1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("BCube(3,1), 9 ranks", done.stdout)
        self.assertRegex(done.stdout, r"recursive-doubling .*; not taken: its messages would have to be relayed")

    def test_json_has_the_same(self):
        report = json.loads(hips("info", "select", "-t", "rail:8,2", "--json").stdout)
        self.assertEqual([candidate["plan"] for candidate in report["candidates"]],
                         ["hips", "hips, rings", "recursive-doubling"])
        self.assertEqual(report["choices"][-1], {"plan": "hips, rings", "up_to_bytes": None})
        for row in report["sizes"]:
            plan = next(choice["plan"] for choice in report["choices"]
                        if choice["up_to_bytes"] is None or row["bytes"] <= choice["up_to_bytes"])
            self.assertEqual(row["plan"], plan)

    def test_mistakes_give_one_line(self):
        for args in ((), ("-t", "switch:0"), ("-t", "nothing:3")):
            done = hips("info", "select", *args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
