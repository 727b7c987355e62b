"""pip install . into a virtual environment, without a network, and two ranks that use it: pip_test.py ROOT."""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT = sys.argv.pop()


class Pip(unittest.TestCase):
    def test_install(self):
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

        def run(*command):
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])
            return done.stdout

        with tempfile.TemporaryDirectory() as folder:
            # What git knows: pip's build is a folder of its own in the tree.
            run("git", "clone", "-q", ROOT, "tree")
            run(sys.executable, "-m", "venv", "--system-site-packages", "env")
            python = os.path.join(folder, "env", "bin", "python")
            run(python, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "./tree")
            with open(os.path.join(folder, "script.py"), "w", encoding="utf-8") as script:
                script.write("import hips\nprint(hips.__file__, hips.Communicator().allreduce(1), hips.Topology('bcube:3,1').plan().check().proved)\n")
            output = run(python, "-m", "hips.launch", "-n", "2", "script.py")
            self.assertEqual(output.count(" 2 True\n"), 2, output)
            self.assertIn(folder, output)
            self.assertIn("BCube(3,1)", run(os.path.join(folder, "env", "bin", "hips"), "topo", "-t", "bcube:3,1"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["-v"] + sys.argv[1:])
