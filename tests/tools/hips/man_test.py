"""Every program and every command of hips has a manual page, with its name and its options.

man_test.py HIPS PAGE...
"""

import pathlib
import re
import subprocess
import sys
import unittest

HIPS = sys.argv[1]
PAGES = {path.name: path for path in map(pathlib.Path, sys.argv[2:])}
del sys.argv[1:]


class Pages(unittest.TestCase):
    def test_every_command_has_a_page(self):
        help_text = subprocess.run([HIPS, "--help"], capture_output=True, text=True, timeout=240, check=True).stdout
        commands = re.findall(r"^  (\w+) +\S", help_text.partition("Subcommands:")[2], re.MULTILINE)
        self.assertGreater(len(commands), 5)
        for page in ["hips.1", "hips-allreduce-perf.1", *(f"hips-{command}.1" for command in commands)]:
            self.assertIn(page, PAGES)

    def test_each_page_has_a_name_and_a_synopsis(self):
        for name, path in PAGES.items():
            with self.subTest(name):
                text = path.read_text(encoding="utf-8")
                self.assertRegex(text, r"(?m)^\.SH NAME\n\S+ .*\S")
                self.assertRegex(text, r"(?m)^\.SH SYNOPSIS\n\.B hips")
                self.assertIn("help", text)
                self.assertNotIn("/build", text)


if __name__ == "__main__":
    unittest.main()
