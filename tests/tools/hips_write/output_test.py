"""hips-write-bw and hips-write-lat report output that they could not write: output_test.py FOLDER_OF_PROGRAMS."""
import os
import subprocess
import sys
import unittest

FOLDER = os.path.abspath(sys.argv.pop())


class Output(unittest.TestCase):
    def test_a_full_disk_is_an_error(self):
        for name in ("hips-write-bw", "hips-write-lat"):
            for flag in ("--help", "--version"):
                with self.subTest(name=name, flag=flag), open("/dev/full", "w", encoding="ascii") as full:
                    done = subprocess.run([os.path.join(FOLDER, name), flag], stdout=full, stderr=subprocess.PIPE,
                                          text=True, timeout=240, check=False)
                    self.assertEqual(done.returncode, 1)
                    self.assertEqual(done.stderr, f"{name}: cannot write the output: No space left on device\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
