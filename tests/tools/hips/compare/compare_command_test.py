"""hips compare: tables, JSON, errors of one sentence, and the time it takes.

usage: compare_command_test.py <hips> <docs/tuning.md>
"""
import json
import os
import re
import resource
import subprocess
import sys
import unittest

HIPS, PAGE = sys.argv.pop(1), sys.argv.pop(1)
HIPS_IS_SANITIZED = subprocess.run(["grep", "-qE", "__(asan|tsan)_init", HIPS], check=False).returncode == 0
TWELVE_SIZES = "1K:2G,4G"


def compare(*args, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HIPS_")}
    return subprocess.run([HIPS, "compare", *args], env={**clean, **environment}, capture_output=True, text=True,
                          timeout=240, check=False)


class Compare(unittest.TestCase):
    def report(self, *args):
        done = compare(*args, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_prints_plans_and_times_and_marks_the_best_of_each_size(self):
        done = compare("-t", "bcube:3,1", "--bytes", "1K:64M", "--factor", "4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("BCube(3,1) (bcube:3,1): 9 ranks, 2 NICs a server", done.stdout)
        self.assertRegex(done.stdout, r"\n  hips  +4 +4 +16 +2  .*, server <\d\d> NIC . \w+ +100 %\n")
        head, *rows = re.search(r"\n  time (.*?)\n  \* of bound", done.stdout, re.DOTALL).group(1).split("\n")
        self.assertEqual(head.split(), ["1K", "4K", "16K", "64K", "256K", "1M", "4M", "16M", "64M"])
        self.assertEqual(len(rows), 12)
        # One asterisk for each of nine sizes, beside the legend's.
        self.assertEqual(sum(row.count("*") for row in rows), 9)
        self.assertEqual([row.split()[0] for row in rows if row.endswith("*")], ["hips:ring"])
        self.assertRegex(done.stdout, r"\n  default between nodes: hips up to \w+; hips, rings above\n")

    def test_many_sizes_are_split_into_several_tables(self):
        done = compare("-t", "switch:4", "--bytes", "4:1G", "--factor", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("\n  time "), 3)
        self.assertLess(max(map(len, done.stdout.split("\n"))), 140)

    def test_json_has_the_values_of_the_table(self):
        report = self.report("-t", "bcube:3,1", "--bytes", "1K:1M", "--baseline")
        self.assertEqual((report["format"], report["version"]), ("hips-compare", 1))
        (topology,) = report["topologies"]
        self.assertEqual((topology["topology"], topology["num_ranks"], topology["nics_per_server"]),
                         ("bcube:3,1", 9, 2))
        plans = {plan["plan"]: plan for plan in topology["plans"]}
        self.assertEqual(plans["flat-ring, 1 NIC"]["topology"], "switch:9")
        self.assertEqual(plans["flat-ring, 2 NICs"]["topology"], "rail:9,2")
        # The same bytes as with as many NICs, but fewer steps; half the bytes of one NIC.
        busiest = {name: plan["sizes"][-1]["busiest_bytes"] for name, plan in plans.items()}
        self.assertAlmostEqual(busiest["hips"] / busiest["flat-ring, 2 NICs"], 1, places=3)
        self.assertAlmostEqual(busiest["hips"] / busiest["flat-ring, 1 NIC"], 0.5, places=3)
        self.assertEqual((plans["hips"]["num_steps"], plans["flat-ring"]["num_steps"]), (4, 16))
        self.assertEqual((plans["hips"]["fan_in"], plans["flat-mesh, 1 NIC"]["fan_in"]), (2, 8))
        for row, size in zip(topology["best"], range(6)):
            mine = [plan["sizes"][size]["seconds"] for plan in topology["plans"]
                    if not plan["baseline"] and not plan["relays"]]
            self.assertEqual(plans[row["plan"]]["sizes"][size]["seconds"], min(mine))
        self.assertIsNone(topology["default"][-1]["up_to_bytes"])

    def test_baselines_are_marked_as_relative_to_their_own_bound(self):
        report = compare("-t", "bcube:3,1", "--bytes", "1G", "-a", "flat-ring", "--baseline").stdout
        self.assertIn("No allreduce of 1G takes less than 76.4 ms there: what ", report)
        self.assertRegex(report, r"flat-ring, 1 NIC \(switch:9\) .* 100 %  \[b\]\n")
        self.assertIn("[b] baseline, on the topology in parentheses; its \"of bound\" is relative to the bound of that topology",
                      report)
        self.assertNotIn("[b]", compare("-t", "bcube:3,1", "--bytes", "1G").stdout)
        self.assertIn("the bound of that network", compare("--help").stdout)

    def test_several_topologies_are_printed_in_turn(self):
        report = self.report("-t", "bcube:3,1", "-t", "torus:3x3@25Gb", "--bytes", "1M", "-a", "hips,flat-ring")
        self.assertEqual([topology["topology"] for topology in report["topologies"]], ["bcube:3,1", "torus:3x3@25Gb"])
        text = compare("-t", "bcube:3,1", "-t", "torus:3x3@25Gb", "--bytes", "1M").stdout
        self.assertLess(text.index("BCube(3,1)"), text.index("(torus:3x3@25Gb)"))
        self.assertEqual(text.count("Times are estimates of the model"), 1)

    def test_the_topology_may_come_from_the_environment(self):
        self.assertIn("(bcube:4,1)", compare("--bytes", "1M", HIPS_TOPO="bcube:4,1").stdout)

    def test_the_bytes_of_the_busiest_link_equal_those_of_hips_plan(self):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HIPS_")}
        for spec in ("bcube:3,1", "torus:3x3", "switch:5"):
            (topology,) = self.report("-t", spec, "--bytes", "1M", "-a", "hips")["topologies"]
            command = [HIPS, "plan", "-t", spec, "--algorithm", "hips", "--bytes", "1M", "--json"]
            done = subprocess.run(command, env=clean, capture_output=True, text=True, timeout=240, check=True)
            notes = json.loads(done.stdout)["notes"]
            self.assertEqual(topology["plans"][0]["sizes"][0]["busiest_bytes"],
                             max(notes["nic_out_bytes"][1], notes["nic_in_bytes"][1]))

    def test_theory_prints_the_table_and_the_published_figures(self):
        done = compare("--theory", "-N", "1024", "-n", "32", "-K", "2", "-b", "64M", "-B", "25Gb")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"HiPS BCube, mesh per level +4  2\(N-1\)W/\(NKB\) ")
        self.assertIn("Published:\n", done.stdout)
        theory = self.report("--theory", "-n", "3", "-K", "2", "-b", "1G")
        rows = {row["scheme"]: row for row in theory["schemes"]}
        self.assertAlmostEqual(rows["HiPS BCube, mesh per level"]["barrier_seconds"], 2 * 8 * 2**30 / (9 * 2 * 12.5e9))
        self.assertEqual(rows["flat ring, 1 NIC"]["num_steps"], 16)

    def test_the_readme_shows_the_printed_text(self):
        with open(PAGE, encoding="utf-8") as file:
            example = re.search(r"```\n\$ hips compare (.*)\n((?:.*\n)*?)```\n", file.read())
        self.assertEqual(example.group(2), compare(*example.group(1).split()).stdout)

    def test_invalid_arguments_give_one_sentence(self):
        for args, words in [
            ((), "no topology; give -t SPEC"),
            (("-t", "bcube:3"), 'topology "bcube:3"'),
            (("-t", "bcube:3,1", "-t", "nothing:3"), 'topology "nothing:3"'),
            (("-t", "bcube:3,1", "--bytes", "64X"), 'invalid size "64X"'),
            (("-t", "bcube:3,1", "--bytes", "1G:1K"), 'range "1G:1K" is descending'),
            (("-t", "bcube:3,1", "--factor", "1"), "--factor: 1 is out of range"),
            (("-t", "bcube:3,1", "--factor", "2.5"), '--factor: invalid number "2.5"; give 2 to 1024'),
            (("-t", "bcube:3,1", "--factor", "two"), '--factor: invalid number "two"'),
            (("-t", "bcube:4,1[0,15]"), "2 components"),
            (("-t", "bcube:3,1", "-t", "bcube:4,1[0,15]"), "no plan for bcube:4,1[0,15] has an estimate; hips: "),
            (("-t", "bcube:3,1", "-a", "flat-ps:99"), "no plan for bcube:3,1 has an estimate; flat-ps:99: "),
            (("-t", "bcube:3,1", "-a", "flat-ps:99", "--baseline"), "invalid number of leaders 99 (valid: 1 to 9, the number of ranks)"),
            (("-t", "bcube:3,1", "-a", "nccl"), 'unknown algorithm "nccl"'),
            (("-t", "bcube:3,1", "-a", "flat-mesh:2"), "flat-mesh has no parameter"),
            (("--theory", "-N", "10"), "10 is not n^K"),
            (("--theory", "-b", "1K:1M"), "--theory takes one"),
            (("--theory", "-B", "fast"), 'invalid rate "fast"'),
            (("--theory", "-B", "25Gb/2"), 'invalid rate "25Gb/2"'),
        ]:
            done = compare(*args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for args in (("-t", "bcube:3,1", "--format", "xml"), ("-t", "bcube:3,1", "-n", "3"),
                     ("--theory", "-t", "bcube:3,1")):
            done = compare(*args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)

    def test_a_thousand_servers_and_a_million_take_seconds(self):
        for spec in ("bcube:32,1", "bcube:10,5", "torus:100x100x100", "fattree:160", "rail:1000000,4"):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = compare("-t", spec, "--bytes", TWELVE_SIZES, "--baseline")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.assertEqual(done.returncode, 0, done.stderr)
            # CPU time, and far more than is needed: programs of all ranks would take hours.
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            if not HIPS_IS_SANITIZED:
                self.assertLess(used, 60, spec)


if __name__ == "__main__":
    unittest.main(verbosity=2)
