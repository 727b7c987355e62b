"""The example of tables: factorization_test.py MATRIX_FACTORIZATION."""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import ranks  # noqa: E402

PROGRAM = sys.argv.pop()


def losses(num, *args, **environment):
    """The mean square error of each epoch, which rank 0 prints."""
    done = ranks.run_ranks(num, [PROGRAM, *args], **environment)
    assert [rank.returncode for rank in done] == [0] * num, done
    return [float(loss) for loss in re.findall(r"mean square error ([0-9.]+), ", done[0].stdout)]


class Factorization(unittest.TestCase):
    def test_learns_as_on_one_node_where_rows_move_between_several(self):
        alone = losses(1)
        self.assertEqual(len(alone), 5)
        self.assertEqual(alone, sorted(alone, reverse=True))
        for num, transport in ((2, "tcp"), (3, "tcp"), (4, "shm")):
            with self.subTest(num):
                several = losses(num, HIPS_TOPO=f"switch:{num}", HIPS_TRANSPORT=transport)
                self.assertEqual(several, alone)  # to the last bit: no push is lost, doubled or early
        with self.subTest(5):
            for one, other in zip(alone, losses(5, HIPS_TOPO="switch:5"), strict=True):
                self.assertLess(abs(one - other), 0.03 * one)

    def test_learns_alike_where_rows_stay(self):
        classic = losses(2, "--classic", HIPS_TOPO="switch:2")
        self.assertEqual(classic, losses(1)[:1])

    def test_learns_alike_where_popular_columns_are_replicated_copied_or_move(self):
        alone = losses(1, "--popular")
        self.assertEqual(alone, sorted(alone, reverse=True))
        for num, way, transport in ((2, "--popular", "tcp"), (4, "--popular", "shm"), (3, "--popular-copied", "tcp"), (2, "--popular-moved", "shm")):
            with self.subTest(way, num=num):
                several = losses(num, way, HIPS_TOPO=f"switch:{num}", HIPS_TRANSPORT=transport)
                self.assertEqual(len(several), 5)
                for one, other in zip(alone, several):
                    self.assertLess(abs(one - other), 0.03 * one)

    def test_names_a_flag_that_it_does_not_know(self):
        done = ranks.run_ranks(1, [PROGRAM, "--popula"])
        self.assertEqual(done[0].returncode, 2)
        self.assertIn("--popula: expected", done[0].stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
