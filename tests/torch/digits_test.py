"""examples/train_digits.py learns as it does with Gloo, and the same bits again: digits_test.py SCRIPT."""

import os
import re
import subprocess
import sys
import unittest

SCRIPT = sys.argv.pop()


def losses(ranks, backend, **env):
    done = subprocess.run([sys.executable, "-m", "hips_torch.launch", "-n", str(ranks), SCRIPT, "--backend", backend, "--epochs", "3"],
                          env=dict(os.environ, **env), capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"loss (\S+)", done.stdout)
    assert len(found) == 3, done.stdout
    return [float(one) for one in found]


class Digits(unittest.TestCase):
    def test_the_loss_is_that_of_gloo(self):
        for ranks in (2, 4):
            with self.subTest(ranks=ranks):
                for ours, theirs in zip(losses(ranks, "hips"), losses(ranks, "gloo")):
                    # More than two ranks reduce in another order, which rounds otherwise.
                    self.assertAlmostEqual(ours, theirs, delta=1e-6 if ranks == 2 else 2e-2 * theirs)

    def test_a_run_repeats_itself(self):
        self.assertEqual(losses(4, "hips", HIPS_REPRODUCIBLE="run"), losses(4, "hips", HIPS_REPRODUCIBLE="run"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["-v"] + sys.argv[1:])
