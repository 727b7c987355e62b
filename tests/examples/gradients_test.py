"""The gradients example: gradients_test.py GRADIENTS BROKEN_ALLREDUCE MPIRUN."""
import os
import re
import subprocess
import sys
import unittest

MPIRUN = sys.argv.pop()
BROKEN = sys.argv.pop()
GRADIENTS = sys.argv.pop()

ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def run(*args, ranks=None, preload=None):
    command = [GRADIENTS, *args]
    if ranks:
        command = [MPIRUN, "--oversubscribe", "-n", str(ranks)] + (["-x", "LD_PRELOAD=" + preload] if preload else []) + command
    return subprocess.run(command, env=ENVIRONMENT, text=True, capture_output=True, timeout=60, check=False)


def result(done):
    """The fields of the RESULT line."""
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert len(lines) == 1, done.stdout + done.stderr
    return dict(re.findall(r"(\w+)=(\S+)", lines[0]))


class Networks(unittest.TestCase):
    def test_their_tensors_are_those_of_the_papers(self):
        for name, tensors, parameters in [("mnist-mlp", 6, 1068810), ("lenet5", 10, 61706),
                                          ("resnet50", 161, 25557032), ("vgg19", 38, 143667240)]:
            with self.subTest(name):
                done = run(name, "--list")
                self.assertIn(f"{name}: {tensors} tensors, {parameters} parameters", done.stdout)
                rows = re.findall(r"^  (\S+) +(\d+)$", done.stdout, re.MULTILINE)
                self.assertEqual(len(rows), tensors)
                self.assertEqual(len({row[0] for row in rows}), tensors)
                self.assertEqual(sum(int(row[1]) for row in rows), parameters)

    def test_single_tensors_of_resnet50(self):
        rows = dict(re.findall(r"^  (\S+) +(\d+)$", run("resnet50", "--list").stdout, re.MULTILINE))
        self.assertEqual(rows["conv1.weight"], str(64 * 3 * 7 * 7))
        self.assertEqual(rows["layer1.0.downsample.0.weight"], str(256 * 64))
        self.assertEqual(rows["layer4.2.conv2.weight"], str(512 * 512 * 3 * 3))
        self.assertEqual(rows["fc.weight"], str(2048 * 1000))


class Steps(unittest.TestCase):
    def test_the_sums_of_four_ranks_are_exact(self):
        done = run("lenet5", "--steps", "3", ranks=4)
        self.assertEqual(done.returncode, 0, done.stderr)
        fields = result(done)
        self.assertEqual((fields["ranks"], fields["bytes"], fields["steps"], fields["wrong"]),
                         ("4", str(61706 * 4), "3", "0"))
        self.assertGreater(float(fields["median_s"]), 0)
        self.assertAlmostEqual(float(fields["busbw_GBps"]), float(fields["algbw_GBps"]) * 1.5, places=4)

    def test_one_wrong_element_of_one_rank_fails_the_run(self):
        done = run("lenet5", "--steps", "2", "--warmup", "0", ranks=3, preload=BROKEN)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(result(done)["wrong"], "2")
        self.assertRegex(done.stderr, r"rank 2, step 0: 1 of 48000 elements of fc1\.weight are wrong.*\[24000\]")

    def test_an_unchecked_run_says_so(self):
        self.assertEqual(result(run("lenet5", "--no-check", "--steps", "1"))["wrong"], "unchecked")

    def test_mistakes_give_one_line_with_the_value(self):
        for args, text in [(["alexnet"], 'no network "alexnet"'), (["lenet5", "--steps", "0"], '--steps "0"'),
                           (["lenet5", "--steps"], '--steps ""'), (["lenet5", "-x"], 'unknown argument "-x"')]:
            with self.subTest(args):
                done = run(*args)
                self.assertEqual(done.returncode, 2)
                self.assertIn(text, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
