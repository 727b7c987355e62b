"""hips-ps-perf: ps_perf_test.py HIPS_PS_PERF."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ranks  # noqa: E402

PROGRAM = sys.argv.pop()
QUICK = ["-n", "2000", "-l", "1,8", "-k", "20", "-i", "50", "-r", "1"]


class PsPerf(unittest.TestCase):
    def run_json(self, num, *options, **environment):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ps.json")
            done = ranks.run_ranks(num, [PROGRAM, *QUICK, *options, "-J", path], **environment)
            self.assertEqual([rank.returncode for rank in done], [0] * num, done)
            self.assertEqual([rank.stdout for rank in done[1:]], [""] * (num - 1))
            with open(path, encoding="utf-8") as file:
                return json.load(file), done[0].stdout

    def test_times_rows_of_this_node_and_of_another(self):
        figures, text = self.run_json(2, HIPS_TOPO="switch:2", HIPS_TRANSPORT="tcp")
        self.assertGreater(figures["ping_pong_us"], 0)
        kinds = {(line["operation"], line["rows"], line["row_length"], line["keys"], line["outstanding"]) for line in figures["lines"]}
        for length in (1, 8):
            for kind in (("pull", "local", length, 1, 1), ("push", "remote", length, 20, 1), ("pull", "remote", length, 1, 64),
                         ("localize", "remote", length, 20, 1), ("intent", "remote", length, 1, 1), ("intent", "remote", length, 20, 1)):
                self.assertIn(kind, kinds)
        self.assertEqual(len(kinds), len(figures["lines"]))
        self.assertIn("ping-pongs", text)
        for line in figures["lines"]:
            self.assertGreater(line["keys_per_s"], 0)

    def test_compares_with_a_table_that_never_moves_rows(self):
        figures, text = self.run_json(2, "--compare", "classic", HIPS_TOPO="switch:2", HIPS_TRANSPORT="tcp")
        us = {(line["operation"], line["rows"], line["row_length"], line["keys"]): line["us_per_call"] for line in figures["lines"]
              if line["outstanding"] == 1}
        for operation in ("pull", "push"):
            for length in (1, 8):
                for keys, words in ((1, "1 key"), (20, "20 keys")):
                    ratio = us[operation, "classic", length, keys] / us[operation, "local", length, keys]
                    floats = "1 float" if length == 1 else "8 floats"
                    self.assertIn(f"# {operation} of {words} of {floats}: classic takes {ratio:.1f} times as long as after localize", text)

    def test_says_that_there_is_no_other_node(self):
        figures, text = self.run_json(2)
        self.assertIn("# all ranks are on one node: its rows only", text)
        self.assertEqual({line["rows"] for line in figures["lines"]}, {"local"})

    def test_times_steps_with_frequent_keys_and_loses_no_push(self):
        figures, text = self.run_json(3, "--zipf", "1", HIPS_TOPO="switch:3")
        self.assertIn("# 2000 keys, 3 ranks; steps of all ranks with Zipf's law, exponent 1", text)
        self.assertEqual([(line["operation"], line["rows"], line["row_length"]) for line in figures["lines"]],
                         [("step", rows, length) for length in (1, 8) for rows in ("unmoved", "localized", "intents", "replicas")])

    def test_times_updates_of_a_model_and_loses_none(self):
        figures, text = self.run_json(4, "--model", "40000", "--shards", "1", "--workers", "3", "--seconds", "0.2", "--replica-lag", "2",
                                      HIPS_TOPO="switch:4")
        self.assertIn("# a model of 40000 floats, 4 ranks; steps of the last 3, each 0.2 s, medians of 1 rounds", text)
        self.assertEqual([(line["operation"], line["rows"], line["row_length"], line["keys"]) for line in figures["lines"]],
                         [("update", name, 40000, 1) for name in ("scheduled", "replicas", "at-once")])
        for line in figures["lines"]:
            self.assertGreater(line["keys_per_s"], 0)

    def test_refuses_options_in_one_line(self):
        for args, text in ((["-n", "7"], "--keys"), (["--floats", "3"], 'unknown option "--floats"'),
                           (["-n", "1000", "-k", "900"], "expected at least four times --keys-per-call"),
                           (["-n", "20000000", "-z", "1"], "expected at most 10000000 with --zipf"),
                           (["-z", "1", "--compare", "classic"], "--compare is given with --zipf or --model; expected it without"),
                           (["--compare", "ps-lite"], "--compare"),
                           (["-z", "1", "-m", "100"], "--zipf and --model are both given; expected one of them")):
            done = ranks.run_ranks(1, [PROGRAM, *args])
            self.assertEqual(done[0].returncode, 2)
            self.assertIn(text, done[0].stderr)
            self.assertEqual(done[0].stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
