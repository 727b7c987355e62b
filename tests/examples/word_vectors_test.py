"""The example of word vectors learns alike on one node and on several: word_vectors_test.py WORD_VECTORS."""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import ranks  # noqa: E402

PROGRAM = sys.argv.pop()


class WordVectors(unittest.TestCase):
    def test_learns_on_one_node_and_on_several(self):
        for num, environment in ((1, {}), (2, {"HIPS_TOPO": "switch:2", "HIPS_TRANSPORT": "tcp"}), (4, {"HIPS_TOPO": "switch:4"})):
            with self.subTest(num):
                done = ranks.run_ranks(num, [PROGRAM], **environment)
                self.assertEqual([rank.returncode for rank in done], [0] * num, done)
                right = [float(share) for share in re.findall(r"epoch \d: ([0-9.]+) % of words", done[0].stdout)]
                self.assertEqual(len(right), 6, done[0].stdout)
                # Several ranks learn in an order that depends on time.
                self.assertLess(right[0], 60 if num == 1 else right[-1])
                self.assertGreater(right[-1], 97 if num == 1 else 90)


if __name__ == "__main__":
    unittest.main(verbosity=2)
