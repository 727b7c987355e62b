"""A program of ps-lite on HiPS finds exact sums, and says in one line what is wrong: ps_lite_test.py PS_LITE_SUM."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import ranks  # noqa: E402

PROGRAM = sys.argv.pop()


class PsLite(unittest.TestCase):
    def test_sums_are_exact_on_one_node_and_several(self):
        for num, environment in ((1, {}), (3, {}), (4, {"HIPS_TOPO": "switch:2/2", "HIPS_TRANSPORT": "tcp"})):
            with self.subTest(num):
                done = ranks.run_ranks(num, [PROGRAM], **environment)
                self.assertEqual([rank.returncode for rank in done], [0] * num, done)
                self.assertEqual(done[0].stdout, f"10000 keys, {num} workers: exact\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
