"""The example of logistic regression learns, whether its transfers are scheduled or not: logistic_regression_test.py PROGRAM."""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import ranks  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))


class LogisticRegression(unittest.TestCase):
    def learn(self, *options, **environment):
        done = ranks.run_ranks(3, [PROGRAM, "--loss", "0.68", *options], **environment)
        self.assertEqual([rank.returncode for rank in done], [0, 0, 0], done)
        losses = [float(loss) for loss in re.findall(r"loss (\S+)", done[0].stdout)]
        # That of a model that knows nothing is 0.693.
        self.assertLessEqual(losses[-1], 0.68)
        self.assertRegex(done[0].stdout, r"workers: [1-9]\d* steps in")

    def test_learns_on_one_node(self):
        self.learn()

    def test_learns_with_a_shard_on_one_of_three_nodes(self):
        self.learn("--shards", "1", "--workers", "2", HIPS_TOPO="switch:3", HIPS_TRANSPORT="tcp")
        self.learn("--shards", "1", "--workers", "2", "--at-once", HIPS_TOPO="switch:3")

    def test_refuses_options_in_one_line(self):
        done = ranks.run_ranks(1, [PROGRAM, "--floats"])
        self.assertEqual(done[0].returncode, 2)
        self.assertIn('unknown option "--floats"; expected --shards N', done[0].stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
