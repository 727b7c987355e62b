"""What `meson install` installs is enough to build and run a program: install_test.py BUILD EXAMPLES."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import ranks

EXAMPLES = sys.argv.pop()
BUILD = sys.argv.pop()


def output(*command, **environment):
    done = subprocess.run(command, env={**os.environ, **environment}, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = folder.name
        output("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", cls.root)
        cls.files = {name: os.path.join(path, name) for path, _, names in os.walk(cls.root) for name in names}
        cls.libdir = os.path.dirname(cls.files["libhips.so"])

    def test_programs_link_by_pkg_config_alone(self):
        flags = output("pkg-config", "--cflags", "--libs", "hips", PKG_CONFIG_SYSROOT_DIR=self.root,
                       PKG_CONFIG_PATH=os.path.dirname(self.files["hips.pc"])).split()
        for compiler, source in [(["cc", "-std=c11"], "allreduce.c"), (["c++", "-std=c++20"], "allreduce.cpp")]:
            with self.subTest(source):
                program = os.path.join(self.root, source + ".out")
                output(*compiler, "-Wall", "-Wextra", "-Werror", os.path.join(EXAMPLES, source), *flags, "-o", program)
                done = ranks.run_ranks(2, [program], LD_LIBRARY_PATH=self.libdir)
                self.assertEqual([rank.stdout for rank in done],
                                 [f"rank {rank} of 2: every element is 3\n" for rank in range(2)], done)

    def test_the_installed_tools_run(self):
        for tool in ("hips", "hips-allreduce-perf"):
            self.assertRegex(output(self.files[tool], "--version", LD_LIBRARY_PATH=self.libdir), r"^\S+ \d+\.\d+\.\d+\n$")

    def test_the_library_shows_its_public_functions_only(self):
        symbols = output("nm", "-D", "-C", "--defined-only", self.files["libhips.so"]).splitlines()
        names = {line.split(" ", 2)[2] for line in symbols}
        self.assertIn("hips_allreduce", names)
        # The C API, and what the C++ headers declare: namespace hips itself, none of its inner ones.
        public = re.compile(r"hips_\w+|((typeinfo|typeinfo name|vtable) for )?hips::(Topology::|BlockMap::)?[\w=]+(\[abi:cxx11\])?(\(.*)?")
        self.assertEqual({name for name in names if not public.fullmatch(name)}, set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
