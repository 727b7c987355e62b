"""The examples without a launcher: examples_test.py PROGRAM..."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import ranks  # noqa: E402

PROGRAMS = sys.argv[1:]
del sys.argv[1:]


class Examples(unittest.TestCase):
    def test_three_ranks_get_the_sum(self):
        for program in PROGRAMS:
            with self.subTest(program):
                done = ranks.run_ranks(3, [program])
                self.assertEqual([rank.returncode for rank in done], [0, 0, 0], done)
                self.assertEqual([rank.stdout for rank in done],
                                 [f"rank {rank} of 3: every element is 6\n" for rank in range(3)])

    def test_a_malformed_topology_is_one_line(self):
        for program in PROGRAMS:
            with self.subTest(program):
                done = ranks.run_ranks(1, [program], HIPS_TOPO="bcube:3")
                self.assertEqual(done[0].returncode, 1)
                self.assertRegex(done[0].stderr, r"^allreduce: .*bcube:3.*\n$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
